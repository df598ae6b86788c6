import Testing

@testable import SegmentedDownloadCore

@Suite("Undecided contradictions")
struct DisputeListTests {
    /// Contradictions of bytes 5 and 6, by the second and the third source.
    private static var two: Disputes {
        var disputes = Disputes()
        for number in 1...2 {
            disputes.add(Dispute(differingSource: SourceID(number), offset: Int64(4 + number), byte: 1))
        }
        return disputes
    }

    @Test("They are decided one at a time, oldest first")
    func order() {
        var disputes = Self.two
        #expect(disputes.next?.offset == 5)
        disputes.ask(LeaseID(7))
        #expect(disputes.next == nil, "a third source is being asked")
        #expect(disputes.asked(by: LeaseID(7))?.offset == 5 && disputes.asked(by: LeaseID(8)) == nil)
        disputes.removeFirst()
        #expect(disputes.next?.offset == 6 && disputes.asked(by: LeaseID(7)) == nil)
        disputes.removeFirst()
        #expect(disputes.isEmpty && disputes.next == nil)
    }

    @Test("A source that contradicts is a differing source until its last contradiction is decided")
    func differingSources() {
        var disputes = Self.two
        #expect([0, 1, 2].map { disputes.contains(differingSource: SourceID($0)) } == [false, true, true])
        disputes.removeFirst()
        #expect(!disputes.contains(differingSource: SourceID(1)))
    }

    @Test("An arbiter that sent something and did not answer is counted, one that sent nothing or was cancelled is not")
    func attempts() {
        var disputes = Self.two
        for (isAttempt, attempts) in [(true, 1), (false, 1), (true, 2)] {
            disputes.ask(LeaseID(7))
            disputes.noteUnanswered(isAttempt: isAttempt)
            #expect(disputes.next?.attempts == attempts)
        }
        disputes.ask(LeaseID(8))
        disputes.cancel()
        #expect(disputes.next?.attempts == 2 && disputes.asked(by: LeaseID(8)) == nil)
        var none = Disputes()
        none.cancel()
        #expect(none.isEmpty)
    }

    @Test("Those that no longer apply are dropped, but not while an answer is awaited")
    func filter() {
        var disputes = Self.two
        #expect(disputes.filter { $0.offset == 6 }.open.map(\.offset) == [6])
        disputes.ask(LeaseID(7))
        #expect(disputes.filter { _ in false }.open.map(\.offset) == [5])
        #expect(disputes.filter { _ in true } == disputes)
    }

    @Test("Those of withdrawn bytes are dropped, even while an answer is awaited")
    func withdrawn() {
        var disputes = Self.two
        disputes.ask(LeaseID(7))
        disputes.remove(in: 0..<6)
        #expect(disputes.open.map(\.offset) == [6] && disputes.next?.offset == 6)
        disputes.removeAll()
        #expect(disputes.isEmpty)
    }
}
