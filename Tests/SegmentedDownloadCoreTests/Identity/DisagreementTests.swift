import Testing

@testable import SegmentedDownloadCore

/// Answers with another validator than the one recorded, as nodes of a server farm give them.
@Suite("Disagreeing answers")
struct DisagreementTests {
    private static func noted(_ count: Int, versions: Int = 1) -> Disagreement {
        (0..<count).reduce(into: Disagreement()) { $0.note("\($1 % versions)") }
    }

    @Test("One attempt of four is made with the cookies of earlier answers")
    func session() {
        var disagreement = Disagreement()
        var leaves = [disagreement.mayDependOnSession]
        for _ in 1...5 {
            disagreement.note("its tag differs")
            leaves.append(disagreement.mayDependOnSession)
        }
        #expect(leaves == [false, true, true, true, false, true])
    }

    @Test("They are a change after 8 attempts for each version seen, the recorded one among them, and 32 at most")
    func change() {
        for (versions, attempts) in [(1, 16), (2, 24), (3, 32), (40, 32)] {
            #expect(!Self.noted(attempts - 1, versions: versions).isChange, "\(versions) versions")
            #expect(Self.noted(attempts, versions: versions).isChange, "\(versions) versions")
        }
        #expect(!Self.noted(7).isChangeOfFinishedFile && Self.noted(8).isChangeOfFinishedFile)
    }

    @Test("The second attempt follows at once, later ones up to 400 ms apart, and then once a second")
    func delay() {
        let delays = [1, 2, 5, 9, 10, 15].map { Self.noted($0).delay() }
        #expect(delays == [0, 50, 200, 400, 400, 400].map { .milliseconds($0) })
        #expect(Self.noted(16).delay() == .seconds(1))
        // While the recorded version is received there is time.
        #expect([4, 5].map { Self.noted($0).delay(isServed: true) } == [.milliseconds(150), .seconds(1)])
    }

    @Test("The recorded validator ends it; which others there were stays known")
    func resolved() {
        var disagreement = Self.noted(3, versions: 3)
        #expect(disagreement.isOpen && !disagreement.isNew)
        disagreement.resolve()
        #expect(!disagreement.isOpen)
        disagreement.note("0")
        #expect(disagreement.isOpen && disagreement.isNew)
        for _ in 1..<31 { disagreement.note("0") }
        #expect(!disagreement.isChange)
        disagreement.note("0")
        #expect(disagreement.isChange)
    }
}
