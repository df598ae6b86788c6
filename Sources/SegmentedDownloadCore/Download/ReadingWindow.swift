/// The range of bytes that may be fetched while a consumer, a digest or the reader of a stream, takes them in order.
///
/// No byte is requested that is further ahead of the consumer than there is room for.
package struct ReadingWindow: Hashable, Sendable {
    /// Distinguishes this consumer from earlier ones of the same download.
    package let id: UInt64
    /// How many bytes ahead of ``position`` may be fetched.
    package let length: Int64
    /// The first byte that the consumer has not taken.
    package private(set) var position: Int64
    /// Whether the bytes are stored nowhere else. Once taken, they can be neither fetched again nor compared.
    package let isStream: Bool

    package init(id: UInt64, length: Int64, position: Int64, isStream: Bool) {
        precondition(length > 0 && position >= 0)
        self.id = id
        self.length = length
        self.position = position
        self.isStream = isStream
    }

    /// The end of the room.
    ///
    /// - Parameter length: The smallest room, if it exceeds ``length``.
    func end(behind length: Int64) -> Int64 {
        let (end, overflow) = self.position.addingReportingOverflow(max(self.length, length))
        return overflow ? .max : end
    }

    /// Records that the consumer `id` has taken all bytes before the offset. Ignored for earlier consumers.
    mutating func advance(to offset: Int64, of id: UInt64) {
        guard id == self.id else { return }
        self.position = max(self.position, offset)
    }
}

/// Requests pieces in order if a consumer takes them in order.
extension Fetching {
    /// Two thirds of a connection's share of the window. The rest is room for later pieces while the first one, for
    /// which all wait, is still arriving.
    private static func piece(of share: Int64) -> Int64 { share / 3 * 2 + share % 3 * 2 / 3 }

    /// The bytes requested from a connection at a time. Unlimited without a window.
    private var pieceLength: Int64 {
        guard let window = self.window else { return .max }
        let piece = Self.piece(of: window.length / Int64(max(self.target, 1)))
        let least = max(piece, min(self.settings.planLengthMinimum, Self.piece(of: window.length)), 1)
        return max(least, self.lengthWorthAsking(in: window))
    }

    /// On a long path, fetching a piece should take this many times as long as a request's first byte.
    private static let pieceRequests = 32.0

    /// 20 ms: a cheaper request costs little compared with a piece that fits in memory.
    private static let longRequestSeconds = 0.02

    /// The length of a piece that is worth its request on a long path, or 0.
    ///
    /// What does not fit in memory is read from the file later. So pieces stay short near the end, to leave nothing to
    /// read after the last byte, and for streams, which have no file.
    private func lengthWorthAsking(in window: ReadingWindow) -> Int64 {
        guard !window.isStream, self.traffic.path.requestCost >= Self.longRequestSeconds,
            self.plan.bytesMissing > 2 * window.length
        else { return 0 }
        let rate = SegmentSplitter.middle(self.traffic.path.rates(of: self.leases)) ?? 0
        let worth = rate * self.traffic.path.requestCost * Self.pieceRequests
        return worth < Double(window.length) ? Int64(worth) : window.length
    }

    /// How far ahead bytes may be fetched, and in pieces of what length.
    struct Room {
        let piece: Int64
        let end: Int64

        /// Whether the next piece of a segment fits.
        func holds(_ segment: Segment) -> Bool { min(self.piece, segment.remaining) <= self.end - segment.position }
    }

    /// The current room. Unlimited without a window, for a single stream, and while a comparison must prove the
    /// resource first.
    var room: Room {
        guard let window = self.window, !self.isSingleStream, !self.awaitsProof else {
            return Room(piece: .max, end: .max)
        }
        let piece = self.pieceLength
        // One and a half pieces for each connection, even if that exceeds the window.
        let (pieces, overflow) = (piece / 2 * 3).multipliedReportingOverflow(by: Int64(max(self.target, 1)))
        return Room(piece: piece, end: window.end(behind: window.isStream || overflow ? 0 : pieces))
    }

    /// Whether an unleased segment has room.
    var hasWaiting: Bool {
        let room = self.room
        return self.plan.segments.contains { $0.lease == nil && !$0.isComplete && room.holds($0) }
    }

    /// With a window, splits a segment after its next piece. The rest is for any free connection.
    mutating func cutPiece(_ id: Segment.ID) {
        let length = self.pieceLength
        guard self.window != nil, !self.isSingleStream, let segment = self.plan[id], segment.remaining > length else {
            return
        }
        let end = segment.position + length
        let aligned = end / SegmentPlanner.alignment * SegmentPlanner.alignment
        self.plan.split(id, at: aligned > segment.position ? aligned : end)
        // Merges finished segments, so that the plan does not grow with the file.
        self.plan.joinDone()
    }

    /// Extends a segment by the next piece, if that is unleased and fits. Returns the new end.
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
    /// The consumer has taken all bytes before the offset.
    mutating func taken(upTo offset: Int64, of window: UInt64) -> [DownloadAction] {
        self.updateFetching { fetching in
            fetching.window?.advance(to: offset, of: window)
            return []
        }
    }
}
