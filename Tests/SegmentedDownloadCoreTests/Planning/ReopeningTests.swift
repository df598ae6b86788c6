import Testing

@testable import SegmentedDownloadCore

@Suite struct ReopeningTests {
    /// 100 bytes of which `written` are there.
    private static func plan(missing: [Range<Int64>]) -> SegmentPlan {
        SegmentPlan(completeLength: 100, missing: missing)
    }

    @Test("What is reopened is missing again, and nothing else")
    func middle() {
        var plan = Self.plan(missing: [])
        plan.reopen(20..<50)
        #expect(plan.missing == [20..<50])
        #expect(plan.bytesDone == 70)
    }

    @Test(
        "A lease goes on where it is when bytes before it are reopened, some or all of them",
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

    @Test("Bytes that are missing anyway stay so", arguments: [0..<100, 10..<30, 25..<90] as [Range<Int64>])
    func missing(range: Range<Int64>) {
        var plan = Self.plan(missing: [20..<40, 70..<80])
        plan.reopen(range)
        var expected = Set(20..<40).union(70..<80).union(Int(range.lowerBound)..<Int(range.upperBound))
        for gap in plan.missing { expected.subtract(Int(gap.lowerBound)..<Int(gap.upperBound)) }
        #expect(expected.isEmpty)
        #expect(plan.bytesDone + plan.bytesMissing == 100)
    }
}
