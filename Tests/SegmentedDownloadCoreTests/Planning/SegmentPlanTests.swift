import SegmentedDownloadCore
import Testing

@Suite("Segment plan")
struct SegmentPlanTests {
    private static let mebibyte: Int64 = 1 << 20

    /// What is wrong with a plan, or `nil`: segments are in order, disjoint and cover the resource.
    private static func flaw(_ plan: SegmentPlan) -> String? {
        var offset: Int64 = 0
        for segment in plan.segments {
            if segment.lowerBound != offset { return "\(segment.id) begins at \(segment.lowerBound), not \(offset)" }
            if segment.upperBound <= segment.lowerBound, plan.completeLength != 0 { return "\(segment.id) is empty" }
            if segment.position < segment.lowerBound || segment.position > segment.upperBound {
                return "\(segment.id) is at \(segment.position)"
            }
            offset = segment.upperBound
        }
        if offset != plan.completeLength ?? .max { return "it covers \(offset)" }
        return Set(plan.segments.map(\.id)).count == plan.segments.count ? nil : "two segments have one name"
    }

    @Test("If one stream continues from the end, nothing is left to fetch")
    func truncatedToEnd() {
        var plan = SegmentPlan(completeLength: 1000)
        plan.truncate(to: 1000)
        #expect(Self.flaw(plan) == nil && plan.segments.count == 1 && plan.bytesDone == 1000)
    }

    @Test("After any operations a plan is in order, disjoint and covering", arguments: UInt64(0)..<60)
    func invariants(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let length = Int64.random(in: 1...10_000, using: &generator)
        var plan = SegmentPlan(completeLength: seed % 7 == 0 ? nil : length)
        var done: Int64 = 0
        for step in 0..<200 {
            guard let segment = plan.segments.randomElement(using: &generator) else { break }
            let offset = Int64.random(in: 0...length, using: &generator)
            switch Int.random(in: 0..<20, using: &generator) {
            case 0..<6:
                plan.split(segment.id, at: offset)
            case 6..<13:
                let position = min(offset, segment.upperBound)
                done += max(position - segment.position, 0)
                plan.advance(segment.id, to: position)
            case 13..<16:
                let before = plan.segments.count
                let end = plan.absorbSuccessor(of: segment.id)
                #expect(end == nil || plan.segments.count == before - 1)
            case 16..<18:
                let lease = Bool.random(using: &generator) ? LeaseID(step) : nil
                plan.assign(segment.id, to: lease)
                #expect(plan[segment.id]?.lease == lease)
            case 18 where plan.completeLength != nil && step > 150:
                plan.truncate(to: plan.frontier)
                done = plan.bytesDone
                #expect(plan.segments.count <= 2)
            default:
                SegmentPlanner(splitLengthMinimum: 50).divide(&plan, into: Int.random(in: 1...9, using: &generator))
            }
            #expect(Self.flaw(plan) == nil, "replay with \(seed), step \(step)")
            #expect(plan.bytesDone == done, "replay with \(seed), step \(step)")
            if let length = plan.completeLength { #expect(plan.bytesDone + plan.bytesMissing == length) }
        }
    }

    @Test("A resumed plan has exactly the given gaps", arguments: UInt64(0)..<60)
    func resumed(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let cuts = Set((0..<8).map { _ in Int64.random(in: 0...1000, using: &generator) }).sorted()
        let missing = stride(from: 0, to: cuts.count - 1, by: 2).map { cuts[$0]..<cuts[$0 + 1] }
        let plan = SegmentPlan(completeLength: 1000, missing: missing)
        #expect(Self.flaw(plan) == nil, "replay with \(seed)")
        #expect(plan.missing == missing)
        #expect(plan.frontier == missing.first?.lowerBound ?? 1000)
    }

    @Test("An empty resource needs no segment and is complete")
    func empty() {
        let plan = SegmentPlan(completeLength: 0)
        #expect(plan.isComplete && plan.segments.isEmpty && plan.frontier == 0)
    }

    @Test("A split at or before the position, or at an end, is refused")
    func splitEdges() {
        var plan = SegmentPlan(completeLength: 100)
        let id = plan.segments[0].id
        plan.advance(id, to: 40)
        for offset in [Int64.min, -1, 0, 39, 100, 101, Int64.max] {
            let back = plan.split(id, at: offset)
            #expect(back == nil)
        }
        let answer1 = plan.split(Segment.ID(99), at: 50)
        #expect(answer1 == nil)
        let answer2 = plan.split(id, at: 40)
        #expect(answer2 != nil)
        #expect(plan[id]?.isComplete == true)
        #expect(plan.segments.map(\.lowerBound) == [0, 40])
    }

    @Test("A fresh segment is not split at its first byte, which would leave an empty one")
    func splitAtStart() {
        var plan = SegmentPlan(completeLength: 100)
        let answer3 = plan.split(plan.segments[0].id, at: 0)
        #expect(answer3 == nil)
    }

    @Test("Progress never goes back nor past the segment's end, and resets the failure count")
    func advances() {
        var plan = SegmentPlan(completeLength: 100)
        let id = plan.segments[0].id
        let answer4 = plan.countFailure(id)
        #expect(answer4 == 1)
        let answer5 = plan.countFailure(id)
        #expect(answer5 == 2)
        plan.advance(id, to: 0)
        #expect(plan[id]?.failures == 2)
        plan.advance(id, to: 60)
        #expect(plan[id]?.failures == 0)
        plan.advance(id, to: 10)
        #expect(plan[id]?.position == 60)
        plan.advance(id, to: 1000)
        #expect(plan[id]?.position == 100 && plan.isComplete)
    }

    @Test("A successor is absorbed only if it has no lease and no written byte")
    func absorbs() {
        var fresh = SegmentPlan(completeLength: 100)
        let front = fresh.segments[0].id
        guard let back = fresh.split(front, at: 50) else { return }
        var held = fresh
        held.assign(back, to: LeaseID(1))
        let answer6 = held.absorbSuccessor(of: front)
        #expect(answer6 == nil)
        var begun = fresh
        begun.advance(back, to: 51)
        let answer7 = begun.absorbSuccessor(of: front)
        #expect(answer7 == nil)
        let answer8 = fresh.absorbSuccessor(of: back)
        #expect(answer8 == nil)
        let answer9 = fresh.absorbSuccessor(of: front)
        #expect(answer9 == 100)
        #expect(fresh.segments.count == 1)
    }

    @Test("A stream of unknown length is closed where it ends")
    func closes() {
        for length in [Int64(0), 1, 12_345] {
            var plan = SegmentPlan(completeLength: nil)
            #expect(!plan.isComplete)
            plan.advance(plan.segments[0].id, to: length)
            plan.close(at: length)
            #expect(plan.isComplete && plan.completeLength == length && plan.bytesDone == length)
        }
    }

    @Test("Truncating drops the bytes after the offset")
    func truncates() {
        var plan = SegmentPlan(completeLength: 100, missing: [10..<20, 50..<60])
        plan.truncate(to: plan.frontier)
        #expect(plan.missing == [10..<100] && plan.bytesDone == 10)
        plan.truncate(to: 0)
        #expect(plan.missing == [0..<100])
        plan.truncate(to: 100)
        #expect(plan.isComplete)
    }
}
