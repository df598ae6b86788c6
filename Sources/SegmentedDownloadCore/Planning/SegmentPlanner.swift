/// Cuts what is missing into as many segments as there will be connections.
package struct SegmentPlanner: Hashable, Sendable {
    /// Cuts are made at multiples of this where there is room: a manifest block is then written by one connection.
    package static let alignment: Int64 = BlockLayout.blockLength

    /// No segment is cut smaller, in bytes.
    package let splitLengthMinimum: Int64

    package init(splitLengthMinimum: Int64) {
        precondition(splitLengthMinimum > 0)
        self.splitLengthMinimum = splitLengthMinimum
    }

    /// Cuts the largest open segment in halves, thirds, … until `count` are open or no cut is worth making.
    ///
    /// A fresh plan of one segment becomes `count` equal ones; a resumed plan keeps its holes and has the largest cut further.
    package func divide(_ plan: inout SegmentPlan, into count: Int) {
        guard plan.completeLength != nil else { return }
        let holes = plan.segments.filter { !$0.isComplete }
        guard !holes.isEmpty, holes.count < count else { return }
        var shares = Array(repeating: 1, count: holes.count)
        for _ in holes.count..<count {
            // The hole whose pieces are the largest now gets one piece more.
            let pieces = holes.indices.map { holes[$0].remaining / Int64(shares[$0]) }
            guard let largest = pieces.indices.max(by: { pieces[$0] < pieces[$1] }),
                holes[largest].remaining / Int64(shares[largest] + 1) >= self.splitLengthMinimum
            else { break }
            shares[largest] += 1
        }
        for (hole, share) in zip(holes, shares) where share > 1 { self.cut(hole, of: &plan, into: share) }
    }

    /// Cuts one segment into so many equal pieces, or fewer where they would be too small.
    package func cut(_ hole: Segment, of plan: inout SegmentPlan, into count: Int) {
        let count = min(Int64(count), hole.remaining / self.splitLengthMinimum)
        guard count > 1 else { return }
        var segment = hole.id
        for piece in 1..<count {
            let ideal = hole.position + hole.remaining / count * piece
            guard let back = plan.split(segment, at: self.aligned(ideal, above: plan[segment]?.position ?? ideal))
            else {
                break
            }
            segment = back
        }
    }

    /// The multiple of the alignment nearest to `offset`, or `offset` itself where pieces are too small for that to be fair.
    func aligned(_ offset: Int64, above lowerBound: Int64) -> Int64 {
        let (middle, overflow) = offset.addingReportingOverflow(Self.alignment / 2)
        guard !overflow else { return offset }  // In the last half block that can be counted.
        let rounded = middle / Self.alignment * Self.alignment
        // Moving a cut by half a block matters little from four blocks on.
        return offset - lowerBound >= 4 * Self.alignment && rounded > lowerBound ? rounded : offset
    }
}
