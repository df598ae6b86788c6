import SegmentedDownloadCore

/// A duration as a number of seconds, in which programs in other languages can read it.
///
/// Whole nanoseconds are decoded as they were encoded, up to 2²³ seconds (97 days). A `Double` has no room for more.
struct EncodedDuration: Codable {
    let value: Duration

    /// 10¹⁸ s: fits into 64 bits and into a `Duration`.
    private static let secondsMax = 1e18

    /// 10⁹ s: their nanoseconds fit into 64 bits.
    private static let exactSecondsMax: UInt64 = 1_000_000_000

    init(_ value: Duration) { self.value = value }

    /// The seconds, with one division, so that 1.623 s are the `Double` that is written `1.623`.
    private var seconds: Double {
        let (seconds, attoseconds) = self.value.components
        guard seconds.magnitude < Self.exactSecondsMax else { return self.value.inSeconds }
        return Double(seconds * 1_000_000_000 + attoseconds / 1_000_000_000) / 1e9
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let seconds = try container.decode(Double.self)
        let whole = seconds.rounded(.towardZero)
        guard abs(whole) <= Self.secondsMax else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a number of seconds")
        }
        self.value = .seconds(Int64(whole)) + .nanoseconds(Int64(((seconds - whole) * 1e9).rounded()))
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(self.seconds)
    }
}
