import SegmentedDownloadCore

/// Verifies the body of one response against the digests that its head and its trailers state for it: `Content-Digest`
/// (RFC 9530, section 2), and for a body with the whole file also `Repr-Digest`.
struct ContentCheck {
    /// Empty until the trailers arrive, if only they state one.
    private var announced: [ExpectedDigest]
    /// The bytes of the file that the body has, if the head says so.
    private let range: Range<Int64>?
    private var running: [RunningDigest]
    private var count: Int64 = 0
    /// Whether the end of the response was received.
    var hasEnded = false

    /// - Parameters:
    ///   - announced: The digest that the head states; nil if there is none.
    ///   - awaitsTrailers: Whether the trailers will state one. Its algorithm is not known before.
    init(_ announced: ExpectedDigest?, awaitsTrailers: Bool = false, of response: RangeResponse) {
        self.range = response.bodyRange
        self.announced = [announced].compactMap(\.self)
        let others = awaitsTrailers ? AnnouncedDigests.dictionaryAlgorithms.map(\.algorithm) : []
        self.running = Set(self.announced.map(\.algorithm) + others).map { RunningDigest($0) }
    }

    /// Adds a digest that the trailers state.
    ///
    /// - Returns: Whether it will be compared. Not if it is of an algorithm that was not computed.
    mutating func add(_ trailing: ExpectedDigest) -> Bool {
        guard self.running.contains(where: { $0.algorithm == trailing.algorithm }) else { return false }
        self.announced.append(trailing)
        return true
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        for index in self.running.indices { self.running[index].update(bytes) }
        self.count += Int64(bytes.count)
    }

    /// Whether the whole body was received: its last byte has arrived, even if its end was not awaited.
    private var isComplete: Bool { self.hasEnded || self.count == self.range.map { Int64($0.count) } }

    /// What is still to be verified, once the file has all bytes of the range; `nil` if the whole body was received, or
    /// nothing of it.
    var open: StatedDigest? {
        guard !self.isComplete, self.count > 0, let range, let digest = self.announced.first else { return nil }
        return StatedDigest(digest, of: range)
    }

    /// The mismatch, if the whole body was received.
    var failure: DownloadError? {
        guard self.isComplete else { return nil }
        for announced in self.announced {
            guard let found = self.running.first(where: { $0.algorithm == announced.algorithm })?.hex,
                found != announced.hex
            else { continue }
            return DownloadError(
                .integrity,
                "the \(announced.algorithm.rawValue) of what the server sent is \(found), and it says "
                    + "\(announced.hex) (Content-Digest or Repr-Digest)",
                hint: "Verified bytes are kept; the same request fetches the others")
        }
        return nil
    }
}
