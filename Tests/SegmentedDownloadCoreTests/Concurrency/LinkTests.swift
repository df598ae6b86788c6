import SegmentedDownloadCore
import Simulator
import Testing

/// The number of connections that is found, and how work is shared among them, against a downloader that knows the path.
@Suite("Random paths")
struct LinkTests {
    @Test("A file comes nearly as soon as it can, whatever the path is like", arguments: UInt64(0)..<20)
    func anyPath(seed: UInt64) {
        let trial = LinkTrial(seed: seed)
        #expect(trial.violations == [])
        // One path may be the wrong one for any rule; `segdl-simulate links` holds the middle one to 1.1.
        #expect(trial.ratio < 2.5, "\(trial.model)")
        #expect(trial.duplicates <= 0.02, "\(trial.model)")
    }

    private static func trial(length: Int64 = 100 << 20, _ change: (inout Link.Model) -> Void = { _ in }) -> LinkTrial {
        var model = Link.Model(roundTrip: 0.02, capacity: 50e6)
        change(&model)
        return LinkTrial(model, length: length, seed: 1)
    }

    @Test("Where each connection is limited, all are used")
    func connectionCap() {
        let trial = Self.trial { $0.connectionCap = 1e6 }
        #expect(trial.connectionsPeak == 32 && trial.ratio < 1.2)
    }

    @Test("Where all together are limited, nothing is lost by looking for more")
    func totalCap() {
        #expect(Self.trial().ratio < 1.1)
    }

    @Test("A small file over slow connections is cut into small pieces")
    func smallAndSlow() {
        let trial = Self.trial(length: 4 << 20) { $0.connectionCap = 5e4 }
        #expect(trial.connectionsPeak == 32 && trial.ratio < 1.4)
    }

    @Test("Connections on which nothing comes are replaced long before they are given up")
    func silent() {
        let trial = Self.trial {
            $0.connectionCap = 1e6
            $0.silentShare = 0.1
        }
        #expect(trial.ratio < 1.4, "given up after 30 s it would be eight times")
    }

    @Test("An origin that serves two is not asked by many again and again")
    func served() {
        let trial = Self.trial { $0.servedMax = 2 }
        #expect(trial.refusals <= 6 && trial.ratio < 1.2)
    }
}
