import SegmentedDownloadCore

/// Verifies the body of one response against the digests that its head and its trailers state for it: `Content-Digest`
/// (RFC 9530, section 2), and for a body with the whole file also `Repr-Digest`.
struct ContentCheck {
    /// Digests of one algorithm. Empty until the trailers arrive, if only they state one.
    private var announced: [ExpectedDigest] = []
    /// The bytes of the file that the body has, if the head says so.
    private let range: Range<Int64>?
    private var digest: RunningDigest
    private var count: Int64 = 0
    /// Whether the end of the response was received.
    var hasEnded = false

    init(_ announced: ExpectedDigest, of response: RangeResponse) {
        self.init(announced.algorithm, of: response)
        self.announced = [announced]
    }

    /// Computes the digest of a body whose trailers will state one.
    ///
    /// - Parameter algorithm: Unless it is known, the one that RFC 9530 names first, which servers use.
    init(_ algorithm: ExpectedDigest.Algorithm = .sha256, of response: RangeResponse) {
        self.range = response.bodyEnd.flatMap { $0 > response.bodyStart ? response.bodyStart..<$0 : nil }
        self.digest = RunningDigest(algorithm)
    }

    /// Adds a digest that the trailers state.
    ///
    /// - Returns: Whether it will be compared. Not if it is of another algorithm.
    mutating func add(_ trailing: ExpectedDigest) -> Bool {
        guard trailing.algorithm == self.digest.algorithm else { return false }
        self.announced.append(trailing)
        return true
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        self.digest.update(bytes)
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
    var failure: Failure? {
        guard self.isComplete else { return nil }
        let hex = self.digest.hex
        guard let announced = self.announced.first(where: { $0.hex != hex }) else { return nil }
        return Failure(
            .integrity,
            "the \(announced.algorithm.rawValue) of what the server sent is \(hex), and it says "
                + "\(announced.hex) (Content-Digest or Repr-Digest)",
            hint: "Verified bytes are kept; the same request fetches the others")
    }
}
