import SegmentedDownloadCore
import Testing

@Suite("Ceding the rest of a segment")
struct CedingTests {
    private static func plan() -> SegmentPlan {
        var plan = SegmentPlan(completeLength: 1000)
        plan.split(plan.segments[0].id, at: 400)
        plan.advance(plan.segments[1].id, to: 500)
        return plan
    }

    @Test("The bytes after an offset go to the reserved segment, and those before it stay")
    func back() {
        var plan = Self.plan()
        let (id, heir) = (plan.segments[1].id, plan.reserveID())
        let isCeded = plan.cede(id, from: 600, to: heir)
        #expect(isCeded)
        #expect(
            plan.segments.map(\.lowerBound) == [0, 400, 600] && plan.segments.map(\.upperBound) == [400, 600, 1000])
        #expect(plan[id]?.position == 500 && plan[heir]?.position == 600 && plan[heir]?.lease == nil)
    }

    @Test("A segment without written bytes is ceded as a whole")
    func whole() {
        var plan = Self.plan()
        let (id, heir) = (plan.segments[0].id, plan.reserveID())
        plan.assign(id, to: LeaseID(7))
        let isCeded = plan.cede(id, from: 0, to: heir)
        #expect(isCeded)
        #expect(plan[id] == nil && plan[heir]?.upperBound == 400 && plan[heir]?.lease == nil)
        #expect(plan.segments.count == 2)
    }

    @Test("Written bytes, and bytes past the end, are not ceded", arguments: [499, 1000, 1001, Int64.max])
    func refused(offset: Int64) {
        var plan = Self.plan()
        let before = plan.segments
        let heir = plan.reserveID()
        let isCeded = plan.cede(plan.segments[1].id, from: offset, to: heir)
        let isFound = plan.cede(Segment.ID(99), from: 600, to: heir)
        #expect(!isCeded && !isFound && plan.segments == before)
    }

    @Test("The failure count passes to the ceded segment: another connection is not progress")
    func failures() {
        var plan = Self.plan()
        let (id, heir) = (plan.segments[1].id, plan.reserveID())
        _ = plan.countFailure(id)
        _ = plan.countFailure(id)
        let isCeded = plan.cede(id, from: 600, to: heir)
        #expect(isCeded && plan[heir]?.failures == 2)
    }

    @Test("A reserved segment number is not reused")
    func names() {
        var plan = Self.plan()
        let heir = plan.reserveID()
        let cut = plan.split(plan.segments[0].id, at: 200)
        let next = plan.reserveID()
        #expect(cut != nil && cut != heir && next != heir && next != cut)
    }
}
