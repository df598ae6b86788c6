import SegmentedDownloadCore

/// Compares the bytes of one response with the digest that its head gives for them: `Content-Digest`, RFC 9530 §2.
struct ContentCheck {
    private let announced: ExpectedDigest
    /// How many bytes the response has, as far as its head says.
    private let length: Int64?
    private var digest: RunningDigest
    private var count: Int64 = 0
    /// Whether the response came to its end.
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

    /// What is wrong, if all bytes came: also where nobody waited for the end behind the last one. Of a response that was cut
    /// nothing can be said.
    var failure: Failure? {
        guard self.hasEnded || self.count == self.length else { return nil }
        let hex = self.digest.hex
        guard hex != self.announced.hex else { return nil }
        return Failure(
            .integrity,
            "the \(self.announced.algorithm.rawValue) of what the server sent is \(hex), and it says "
                + "\(self.announced.hex) (Content-Digest)",
            hint: "Run the same command again: what agreed is kept")
    }
}
