import SegmentedDownloadCore

/// Verifies the body of one response against the digest in its head (`Content-Digest`, RFC 9530, section 2).
struct ContentCheck {
    private let announced: ExpectedDigest
    /// The bytes of the file that the body has, if the head says so.
    private let range: Range<Int64>?
    private var digest: RunningDigest
    private var count: Int64 = 0
    /// Whether the end of the response was received.
    var hasEnded = false

    init(_ announced: ExpectedDigest, of response: RangeResponse) {
        self.announced = announced
        self.range = response.bodyEnd.flatMap { $0 > response.bodyStart ? response.bodyStart..<$0 : nil }
        self.digest = RunningDigest(announced.algorithm)
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        self.digest.update(bytes)
        self.count += Int64(bytes.count)
    }

    /// Whether the whole body was received: its last byte has arrived, even if its end was not awaited.
    private var isComplete: Bool { self.hasEnded || self.count == self.range.map { Int64($0.count) } }

    /// What is still to be verified, once the file has all bytes of the range; `nil` if the whole body was received, or
    /// nothing of it.
    var open: StatedContent? {
        guard !self.isComplete, self.count > 0, let range else { return nil }
        return StatedContent(range: range, digest: self.announced)
    }

    /// The mismatch, if the whole body was received.
    var failure: Failure? {
        guard self.isComplete else { return nil }
        let hex = self.digest.hex
        guard hex != self.announced.hex else { return nil }
        return Failure(
            .integrity,
            "the \(self.announced.algorithm.rawValue) of what the server sent is \(hex), and it says "
                + "\(self.announced.hex) (Content-Digest)",
            hint: "Verified bytes are kept; the same request fetches the others")
    }
}

/// The digest that a response stated for its body, and the bytes of the file that the body has.
struct StatedContent: Hashable, Sendable {
    let range: Range<Int64>
    let digest: ExpectedDigest
}
