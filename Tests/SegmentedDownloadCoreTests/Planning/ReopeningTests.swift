import Testing

@testable import SegmentedDownloadCore

@Suite struct ReopeningTests {
    /// A plan of 100 bytes, all but `missing` of which are written.
    private static func plan(missing: [Range<Int64>]) -> SegmentPlan {
        SegmentPlan(completeLength: 100, missing: missing)
    }

    @Test("Only the reopened bytes are missing again")
    func middle() {
        var plan = Self.plan(missing: [])
        plan.reopen(20..<50)
        #expect(plan.missing == [20..<50])
        #expect(plan.bytesDone == 70)
    }

    @Test(
        "A lease keeps its position when some or all bytes before it are reopened",
        arguments: [40, 60] as [Int64])
    func beforeLease(end: Int64) throws {
        var plan = SegmentPlan(completeLength: 100)
        let id = try #require(plan.segments.first?.id)
        plan.assign(id, to: LeaseID(7))
        plan.advance(id, to: 60)
        plan.reopen(0..<end)
        #expect(plan.missing == [0..<end, 60..<100])
        #expect(plan[id]?.lease == LeaseID(7))
        #expect(plan[id]?.position == 60)
        plan.advance(id, to: 100)
        #expect(plan.missing == [0..<end])
    }

    @Test("Reopening missing bytes changes nothing", arguments: [0..<100, 10..<30, 25..<90] as [Range<Int64>])
    func missing(range: Range<Int64>) {
        var plan = Self.plan(missing: [20..<40, 70..<80])
        plan.reopen(range)
        var expected = Set(20..<40).union(70..<80).union(Int(range.lowerBound)..<Int(range.upperBound))
        for gap in plan.missing { expected.subtract(Int(gap.lowerBound)..<Int(gap.upperBound)) }
        #expect(expected.isEmpty)
        #expect(plan.bytesDone + plan.bytesMissing == 100)
    }
}
