/// How long a server asks the client to wait before the next request (RFC 9110 §10.2.3).
///
/// ``RetryPolicy`` decides how long segdl waits.
package struct RetryAfter: Hashable, Sendable {
    /// 2^31 s, 68 years: a longer wait means nothing else. The time at which this one ends still fits in 64 bits of
    /// nanoseconds, in which systems count.
    package static let secondsMax: Int64 = 1 << 31

    /// From 0 to ``secondsMax``. A greater number becomes ``secondsMax``.
    package let seconds: Int64

    package var duration: Duration { .seconds(self.seconds) }

    /// Parses a number of seconds or a date. Nil if it is neither, or if it is a date and there is no time to compare
    /// it with.
    ///
    /// - Parameters:
    ///   - date: The response's `Date`. A date is relative to it, so an inaccurate local clock does not matter.
    ///   - fallbackNow: The local time, for a response without `Date`.
    package init?(fieldValue: String, date: HTTPDate?, fallbackNow: HTTPDate?) {
        switch DecimalDigits(fieldValue.utf8) {
        case .number(let seconds)?:
            self.seconds = min(seconds, Self.secondsMax)
        case .tooLarge?:
            self.seconds = Self.secondsMax
        case nil:
            guard let until = HTTPDate(fieldValue: fieldValue), let now = date ?? fallbackNow else { return nil }
            self.seconds = min(max(0, until.seconds(since: now)), Self.secondsMax)
        }
    }
}
