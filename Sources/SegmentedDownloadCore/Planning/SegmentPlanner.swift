/// Divides the missing bytes into one segment for each connection.
package struct SegmentPlanner: Hashable, Sendable {
    /// Cuts are placed at multiples of this if segments are large enough, so that one connection writes a whole manifest
    /// block.
    package static let alignment: Int64 = BlockLayout.blockLength

    /// The smallest segment that a cut may produce, in bytes.
    package let splitLengthMinimum: Int64

    package init(splitLengthMinimum: Int64) {
        precondition(splitLengthMinimum > 0)
        self.splitLengthMinimum = splitLengthMinimum
    }

    /// Cuts open segments into equal ones until `count` are open or further ones would be shorter than
    /// ``splitLengthMinimum``.
    ///
    /// A new plan of one segment becomes `count` equal segments. In a resumed plan, the largest holes are cut.
    package func divide(_ plan: inout SegmentPlan, into count: Int) {
        guard plan.completeLength != nil else { return }
        let holes = plan.segments.filter { !$0.isComplete }
        guard !holes.isEmpty, holes.count < count else { return }
        var shares = Array(repeating: 1, count: holes.count)
        for _ in holes.count..<count {
            // Cuts the hole whose segments are currently the largest into one more.
            let pieces = holes.indices.map { holes[$0].remaining / Int64(shares[$0]) }
            guard let largest = pieces.indices.max(by: { pieces[$0] < pieces[$1] }),
                holes[largest].remaining / Int64(shares[largest] + 1) >= self.splitLengthMinimum
            else { break }
            shares[largest] += 1
        }
        for (hole, share) in zip(holes, shares) where share > 1 { self.cut(hole, of: &plan, into: share) }
    }

    /// Cuts one segment into `count` equal ones, or into fewer if they would be shorter than ``splitLengthMinimum``.
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

    /// The multiple of ``alignment`` nearest to `offset`, or `offset` itself if the segments are small.
    func aligned(_ offset: Int64, above lowerBound: Int64) -> Int64 {
        let (middle, overflow) = offset.addingReportingOverflow(Self.alignment / 2)
        guard !overflow else { return offset }  // Within the last half block that `Int64` can count.
        let rounded = middle / Self.alignment * Self.alignment
        // From four blocks on, moving a cut by half a block changes the segments little.
        return offset - lowerBound >= 4 * Self.alignment && rounded > lowerBound ? rounded : offset
    }
}
