import SegmentedDownloadCore

/// Verifies the body of one response against the digests that its head and its trailers state for it: `Content-Digest`
/// (RFC 9530, section 2), and for a body with the whole file also `Repr-Digest`.
struct ContentCheck {
    /// Digests of one algorithm. Empty until the trailers arrive, if only they state one.
    private var announced: [ExpectedDigest] = []
    /// The length of the body, if the head gives it.
    private let length: Int64?
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
        self.length = response.bodyEnd.map { $0 - response.bodyStart }
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

    /// The mismatch, if the whole body was received. The body counts as whole once its last byte arrives, even if its
    /// end was not awaited. `nil` for a truncated response, which cannot be verified.
    var failure: Failure? {
        guard !self.announced.isEmpty, self.hasEnded || self.count == self.length else { return nil }
        let hex = self.digest.hex
        guard let announced = self.announced.first(where: { $0.hex != hex }) else { return nil }
        return Failure(
            .integrity,
            "the \(announced.algorithm.rawValue) of what the server sent is \(hex), and it says "
                + "\(announced.hex) (Content-Digest or Repr-Digest)",
            hint: "Verified bytes are kept; the same request fetches the others")
    }
}
