import SegmentedDownloadCore
import Testing

@Suite("Segment planner")
struct SegmentPlannerTests {
    private static let mebibyte: Int64 = 1 << 20

    private static func lengths(_ plan: SegmentPlan) -> [Int64] { plan.segments.map(\.remaining) }

    private static func divided(_ length: Int64, _ count: Int, minimum: Int64 = 1 << 20) -> SegmentPlan {
        var plan = SegmentPlan(completeLength: length)
        SegmentPlanner(splitLengthMinimum: minimum).divide(&plan, into: count)
        return plan
    }

    @Test("A fresh file is cut into equal pieces", arguments: [1, 2, 3, 4, 7, 16])
    func equalPieces(count: Int) {
        let lengths = Self.lengths(Self.divided(Int64(count) * 16 << 20, count))
        #expect(lengths == Array(repeating: 16 << 20, count: count))
    }

    @Test("Pieces of four blocks and more begin with a block, and differ by two blocks at most")
    func alignment() {
        let plan = Self.divided(1_000_000_007, 7)
        #expect(plan.segments.allSatisfy { $0.lowerBound % SegmentPlanner.alignment == 0 })
        let lengths = Self.lengths(plan)
        #expect((lengths.max() ?? 0) - (lengths.min() ?? 0) <= 2 * SegmentPlanner.alignment)
    }

    @Test("Small pieces are cut into equal lengths, not at blocks")
    func noAlignment() {
        #expect(Self.lengths(Self.divided(3_000_000, 3, minimum: 1000)) == [1_000_000, 1_000_000, 1_000_000])
    }

    @Test("No piece is shorter than the minimum", arguments: UInt64(0)..<100)
    func minimum(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let minimum = Int64.random(in: 1...(8 << 20), using: &generator)
        let length = Int64.random(in: 1...(200 << 20), using: &generator)
        let plan = Self.divided(length, Int.random(in: 1...40, using: &generator), minimum: minimum)
        let shortest = Self.lengths(plan).min() ?? 0
        // A cut moves by half a block at most, and only in pieces of four blocks or more.
        #expect(plan.segments.count == 1 || shortest >= minimum - BlockLayout.blockLength, "replay with \(seed)")
    }

    @Test("A file shorter than two minima is one piece")
    func tooShort() {
        #expect(Self.divided((2 << 20) - 1, 16).segments.count == 1)
        #expect(Self.divided(2 << 20, 16).segments.count == 2)
    }

    @Test("A resumed plan keeps its gaps, and the largest are split further")
    func holes() {
        var plan = SegmentPlan(completeLength: 100 << 20, missing: [0..<(40 << 20), (50 << 20)..<(60 << 20)])
        SegmentPlanner(splitLengthMinimum: Self.mebibyte).divide(&plan, into: 4)
        #expect(plan.missing.count == 4)
        #expect(plan.missing.last == (50 << 20)..<(60 << 20))
        #expect(plan.bytesMissing == 50 << 20)
    }

    @Test("More gaps than connections stay as they are")
    func manyHoles() {
        let missing = (0..<10).map { number in
            let start = Int64(number) * 10 * Self.mebibyte
            return start..<(start + 5 * Self.mebibyte)
        }
        var plan = SegmentPlan(completeLength: 100 << 20, missing: missing)
        SegmentPlanner(splitLengthMinimum: Self.mebibyte).divide(&plan, into: 4)
        #expect(plan.missing == missing)
    }

    @Test("A stream of unknown length is not cut")
    func unknownLength() {
        var plan = SegmentPlan(completeLength: nil)
        SegmentPlanner(splitLengthMinimum: 1).divide(&plan, into: 8)
        #expect(plan.segments.count == 1)
    }

    @Test("The last possible bytes are cut like any others")
    func lastBytes() {
        var plan = SegmentPlan(completeLength: .max, missing: [Int64.max - 8 << 20..<Int64.max])
        SegmentPlanner(splitLengthMinimum: 64 << 10).divide(&plan, into: 64)
        #expect(plan.missing.count == 64)
    }

    @Test("The longest possible file can be cut", arguments: [Int64.max, Int64.max - 1])
    func longest(length: Int64) {
        #expect(Self.divided(length, 16).segments.count == 16)
    }
}
