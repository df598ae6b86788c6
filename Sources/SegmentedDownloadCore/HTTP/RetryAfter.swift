/// How long a server asks to be left alone (RFC 9110 §10.2.3).
///
/// Whatever the server says is taken as said; how long anyone really waits is the retry policy's decision.
package struct RetryAfter: Hashable, Sendable {
    /// Zero or more. A number too large for `Int64` becomes `Int64.max`.
    package let seconds: Int64

    /// Reads a number of seconds, or a date.
    ///
    /// - Parameters:
    ///   - date: The response's `Date`. A date is relative to it, so that a wrong clock here does not matter.
    ///   - fallbackNow: The time here, for a response without `Date`. Without either, a date means nothing: nil.
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
