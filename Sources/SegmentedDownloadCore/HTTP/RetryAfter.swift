/// How long a server asks the client to wait before the next request (RFC 9110 §10.2.3).
///
/// The value is not limited here. ``RetryPolicy`` decides how long segdl waits.
package struct RetryAfter: Hashable, Sendable {
    /// Zero or more. A number that does not fit in `Int64` becomes `Int64.max`.
    package let seconds: Int64

    /// Parses a number of seconds or a date. Nil if it is neither, or if it is a date and there is no time to compare
    /// it with.
    ///
    /// - Parameters:
    ///   - date: The response's `Date`. A date is relative to it, so an inaccurate local clock does not matter.
    ///   - fallbackNow: The local time, for a response without `Date`.
    package init?(fieldValue: String, date: HTTPDate?, fallbackNow: HTTPDate?) {
        switch DecimalDigits(fieldValue.utf8) {
        case .number(let seconds)?:
            self.seconds = seconds
        case .tooLarge?:
            self.seconds = .max
        case nil:
            guard let until = HTTPDate(fieldValue: fieldValue), let now = date ?? fallbackNow else { return nil }
            self.seconds = max(0, until.seconds(since: now))
        }
    }
}
