import SegmentedDownloadCore
import Simulator
import Testing

/// The number of connections that the engine chooses, and how they share the work, compared with a downloader that has
/// full information about the path.
@Suite("Random paths")
struct LinkTests {
    @Test("A file takes at most 2.5 times the optimum on any path", arguments: UInt64(0)..<20)
    func anyPath(seed: UInt64) {
        let trial = LinkTrial(seed: seed)
        #expect(trial.violations == [])
        // Every rule is wrong for some path; `segdl-simulate links` limits the median to 1.1.
        #expect(trial.ratio < 2.5, "\(trial.model)")
        #expect(trial.duplicates <= 0.02, "\(trial.model)")
    }

    private static func trial(length: Int64 = 100 << 20, _ change: (inout Link.Model) -> Void = { _ in }) -> LinkTrial {
        var model = Link.Model(roundTrip: 0.02, capacity: 50e6)
        change(&model)
        return LinkTrial(model, length: length, seed: 1)
    }

    @Test("With a limit per connection, all connections are used")
    func connectionCap() {
        let trial = Self.trial { $0.connectionCap = 1e6 }
        #expect(trial.connectionsPeak == 32 && trial.ratio < 1.2)
    }

    @Test("With a limit for all connections together, trials of more cost nothing")
    func totalCap() {
        #expect(Self.trial().ratio < 1.1)
    }

    @Test("A small file over slow connections is cut into small pieces")
    func smallAndSlow() {
        let trial = Self.trial(length: 4 << 20) { $0.connectionCap = 5e4 }
        #expect(trial.connectionsPeak == 32 && trial.ratio < 1.4)
    }

    @Test("Connections without a response are replaced long before their timeout")
    func silent() {
        let trial = Self.trial {
            $0.connectionCap = 1e6
            $0.silentShare = 0.1
        }
        #expect(trial.ratio < 1.4, "with the timeout of 30 s the ratio would be eight")
    }

    @Test("An origin that serves two connections is not asked for more again and again")
    func served() {
        let trial = Self.trial { $0.servedMax = 2 }
        #expect(trial.refusals <= 6 && trial.ratio < 1.2)
    }
}
