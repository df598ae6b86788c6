import Testing

@testable import SegmentedDownloadCore

@Suite("Withdrawing bytes")
struct WithdrawalTests {
    private static func revision(_ withdrawn: [Range<Int64>]) -> Revision {
        Revision(
            withdrawn: withdrawn, reference: .first, resource: RemoteResource(completeLength: 100), remarks: false,
            keepsRecord: false)
    }

    @Test("What is no longer trusted is collected, and withdrawn at once")
    func collected() {
        var withdrawals = Withdrawals()
        #expect(withdrawals.isEmpty && !withdrawals.isDue)
        withdrawals.add(SourceID(1))
        withdrawals.add([0..<10])
        withdrawals.add([20..<30])
        #expect(!withdrawals.isEmpty && withdrawals.isDue)
        let (sources, ranges) = withdrawals.take()
        #expect(sources == [SourceID(1)] && ranges == [0..<10, 20..<30] && withdrawals.isEmpty)
        for isSource in [true, false] {
            var one = Withdrawals()
            if isSource { one.add(.first) } else { one.add([0..<1]) }
            #expect(!one.isEmpty && one.isDue)
        }
    }

    @Test("The next withdrawal waits for the one in progress")
    func inTurn() {
        var withdrawals = Withdrawals()
        withdrawals.begin(Self.revision([0..<10]))
        #expect(!withdrawals.isEmpty && !withdrawals.isDue)
        withdrawals.add([20..<30])
        #expect(!withdrawals.isDue)
        #expect(withdrawals.end() == [0..<10])
        #expect(withdrawals.isDue && withdrawals.revision == nil)
        #expect(withdrawals.end().isEmpty)
    }

    @Test("A byte is being withdrawn from the moment that it is to be, until that is done")
    func contains() {
        var withdrawals = Withdrawals()
        withdrawals.add([0..<10])
        withdrawals.begin(Self.revision([20..<30]))
        #expect([0, 9, 20, 29].allSatisfy { withdrawals.contains($0) })
        #expect(![10, 19, 30].contains { withdrawals.contains($0) })
        _ = withdrawals.end()
        #expect(!withdrawals.contains(20) && withdrawals.contains(0))
    }
}
