import SegmentedDownloadCore

/// Verifies the body of one response against the digest in its head (`Content-Digest`, RFC 9530, section 2).
struct ContentCheck {
    private let announced: ExpectedDigest
    /// The length of the body, if the head gives it.
    private let length: Int64?
    private var digest: RunningDigest
    private var count: Int64 = 0
    /// Whether the end of the response was received.
    var hasEnded = false

    init(_ announced: ExpectedDigest, of response: RangeResponse) {
        self.announced = announced
        self.length = response.bodyEnd.map { $0 - response.bodyStart }
        self.digest = RunningDigest(announced.algorithm)
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        self.digest.update(bytes)
        self.count += Int64(bytes.count)
    }

    /// The mismatch, if the whole body was received. The body counts as whole once its last byte arrives, even if its
    /// end was not awaited. `nil` for a truncated response, which cannot be verified.
    var failure: Failure? {
        guard self.hasEnded || self.count == self.length else { return nil }
        let hex = self.digest.hex
        guard hex != self.announced.hex else { return nil }
        return Failure(
            .integrity,
            "the \(self.announced.algorithm.rawValue) of what the server sent is \(hex), and it says "
                + "\(self.announced.hex) (Content-Digest)",
            hint: "Verified bytes are kept; the same request fetches the others")
    }
}
