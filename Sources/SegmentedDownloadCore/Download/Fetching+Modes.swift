/// The modes of a download that fetches: how it requests bytes, whether it may request any now, and what it waits for.
extension Fetching {
    /// How bytes are requested.
    enum Mode: Hashable {
        /// By ranges, over several connections. The count is of consecutive answers without the requested range.
        /// Becomes `fallback`.
        case segmented(rangeRefusals: Int)
        /// By one request for everything, because the first answer was not a range.
        case stream
        /// By one request for everything, because no source serves ranges any more. Claims that end after the offset
        /// are withdrawn with the next request, because the stream delivers those bytes again.
        case fallback(forgetsFrom: Int64?)

        /// After this many answers without the requested range, the origin is treated as serving only one stream.
        static let rangeRefusalsMax = 3

        /// Whether one stream delivers everything after the first hole.
        var isSingleStream: Bool {
            switch self {
            case .segmented: false
            case .stream, .fallback: true
            }
        }

        /// Whether ranges are requested, and are served as far as is known.
        var servesRanges: Bool { self == .segmented(rangeRefusals: 0) }

        /// Whether ranges were requested in vain too often.
        var hasLostRanges: Bool {
            if case .segmented(let refusals) = self { refusals >= Self.rangeRefusalsMax } else { false }
        }

        /// Records an answer with the requested bytes.
        mutating func noteServed() {
            if case .segmented = self { self = .segmented(rangeRefusals: 0) }
        }

        /// Records an answer without the requested range. Returns whether it is the one after which ranges are lost.
        mutating func noteRefusal() -> Bool {
            guard case .segmented(let refusals) = self else { return false }
            self = .segmented(rangeRefusals: refusals + 1)
            return refusals + 1 == Self.rangeRefusalsMax
        }

        /// Returns and clears the offset from which claims are to be withdrawn.
        mutating func takeForgetsFrom() -> Int64? {
            guard case .fallback(let offset?) = self else { return nil }
            self = .fallback(forgetsFrom: nil)
            return offset
        }
    }

    var isSingleStream: Bool { self.mode.isSingleStream }
    var awaitsProof: Bool { self.proving.proof == .awaited }

    /// Whether bytes may be requested and disputes decided.
    ///
    /// While the bytes of a source are being withdrawn, overlaps would be compared with them.
    var isUndisturbed: Bool { self.outcome == nil && self.withdrawals.isEmpty && !self.isReplacing }

    /// The withdrawal in progress.
    var revision: Revision? { self.withdrawals.revision }

    /// Whether another source is about to become the reference.
    var isReplacing: Bool {
        self.sources.hasMirrors && !self.isSingleStream && self.sources[self.sources.reference].isGone
            && self.sources.ids.contains { self.sources[$0].canBeReference }
    }

    /// Requests everything after the first hole in one stream, which is compared with the bytes on disk.
    ///
    /// If the file is complete but a comparison is still to be made or decided, the block with its last byte becomes the
    /// hole: no claim extends from one block into the next.
    mutating func fallBack() {
        var frontier = self.plan.frontier
        let undecided =
            self.comparisons.audits.open.map(\.spot.upperBound) + self.comparisons.disputes.open.map { $0.offset + 1 }
        if self.plan.isComplete, let end = undecided.max() {
            frontier = BlockLayout.blockEnd(after: end - 1) - BlockLayout.blockLength
        }
        self.plan.truncate(to: frontier)
        // Nothing is left that a comparison could prove.
        if frontier == 0 { self.proving.proof.end() }
        self.mode = .fallback(forgetsFrom: frontier)
        self.comparisons.disputes.removeAll()
        self.comparisons.audits.removeAll()
    }
}
