/// That a file's bytes are taken in order while they are fetched: by a digest, or by a reader to whom they are handed on.
///
/// Nothing is asked for that lies further behind what has been taken than there is room to keep it.
package struct ReadingWindow: Hashable, Sendable {
    /// Tells what is said of this reading from what is said of an earlier one.
    package let id: UInt64
    /// How far ahead bytes may be fetched.
    package let length: Int64
    /// The first byte that has not been taken.
    package private(set) var position: Int64
    /// Whether what has been taken is nowhere else: it cannot be fetched again, nor be compared with anything.
    package let isStream: Bool

    package init(id: UInt64, length: Int64, position: Int64, isStream: Bool) {
        precondition(length > 0 && position >= 0)
        self.id = id
        self.length = length
        self.position = position
        self.isStream = isStream
    }

    /// Where there is no more room.
    ///
    /// - Parameter length: how much may be fetched ahead at the least.
    func end(behind length: Int64) -> Int64 {
        let (end, overflow) = self.position.addingReportingOverflow(max(self.length, length))
        return overflow ? .max : end
    }

    /// Notes that everything before an offset has been taken.
    mutating func advance(to offset: Int64, of id: UInt64) {
        guard id == self.id else { return }
        self.position = max(self.position, offset)
    }
}

/// Asking for pieces in their order, where somebody reads along.
extension Fetching {
    /// A connection's piece is two thirds of its share of the window: the rest is room for the next ones while the first piece, for
    /// which all wait, is still on its way.
    private static func piece(of share: Int64) -> Int64 { share / 3 * 2 + share % 3 * 2 / 3 }

    /// How much one connection is asked for at a time, or everything where nobody reads along.
    private var pieceLength: Int64 {
        guard let window = self.window else { return .max }
        let piece = Self.piece(of: window.length / Int64(max(self.target, 1)))
        let least = max(piece, min(self.settings.planLengthMinimum, Self.piece(of: window.length)), 1)
        return max(least, self.lengthWorthAsking(in: window))
    }

    /// On a long path a piece takes a connection so many times what its request costs.
    private static let pieceRequests = 32.0

    /// 20 ms: a request that costs less is made in no time beside a piece that fits into memory.
    private static let longRequest = 0.02

    /// How long a piece is worth its request on a long path: what then has no room in memory is read from the file. Not at the end, so
    /// that nothing is left to be read when the last byte comes; and not where there is no file.
    private func lengthWorthAsking(in window: ReadingWindow) -> Int64 {
        guard !window.isStream, self.requestCost >= Self.longRequest,
            self.plan.bytesMissing > 2 * window.length
        else { return 0 }
        let rates = self.leases.compactMap { $0.phase == .receiving ? $0.meter.rate : nil } + self.ratesBefore
        let worth = (SegmentSplitter.middle(rates) ?? 0) * self.requestCost * Self.pieceRequests
        return worth < Double(window.length) ? Int64(worth) : window.length
    }

    /// How far bytes may be fetched, and in pieces of what length.
    struct Room {
        let piece: Int64
        let end: Int64

        /// Whether there is room for the next piece of a segment.
        func holds(_ segment: Segment) -> Bool { min(self.piece, segment.remaining) <= self.end - segment.position }
    }

    /// Where there is room; everywhere if nobody reads along, or if first of all it is to be proved that there is something to go on with.
    var room: Room {
        guard let window = self.window, !self.isSingleStream, !self.awaitsProof else {
            return Room(piece: .max, end: .max)
        }
        let piece = self.pieceLength
        // As many pieces again as there are connections, by half, where they are longer than memory has room for.
        let (pieces, overflow) = (piece / 2 * 3).multipliedReportingOverflow(by: Int64(max(self.target, 1)))
        return Room(piece: piece, end: window.end(behind: window.isStream || overflow ? 0 : pieces))
    }

    /// Whether something waits for a connection and has room.
    var hasWaiting: Bool {
        let room = self.room
        return self.plan.segments.contains { $0.lease == nil && !$0.isComplete && room.holds($0) }
    }

    /// Where somebody reads along, cuts off what lies behind the next piece of a segment: it is for whoever is free then.
    mutating func cutPiece(_ id: Segment.ID) {
        let length = self.pieceLength
        guard self.window != nil, !self.isSingleStream, let segment = self.plan[id], segment.remaining > length else {
            return
        }
        let end = segment.position + length
        let aligned = end / SegmentPlanner.alignment * SegmentPlanner.alignment
        self.plan.split(id, at: aligned > segment.position ? aligned : end)
        // What is done needs no name any more: else the plan grew with the file.
        self.plan.joinDone()
    }

    /// Joins the piece behind a segment to it, if it is nobody's and has room. Returns the new end.
    mutating func absorbPiece(behind id: Segment.ID) -> Int64? {
        if self.window != nil, let index = self.plan.index(of: id), index + 1 < self.plan.segments.count {
            let successor = self.plan.segments[index + 1]
            guard successor.lease != nil || self.room.holds(successor) else { return nil }
            if successor.lease == nil { self.cutPiece(successor.id) }
        }
        return self.plan.absorbSuccessor(of: id)
    }
}

extension DownloadStateMachine {
    /// Everything before an offset has been taken by who reads along.
    mutating func taken(upTo offset: Int64, of window: UInt64) -> [DownloadAction] {
        self.updateFetching { fetching in
            fetching.window?.advance(to: offset, of: window)
            return []
        }
    }
}
