/// How often a failing segment is tried again, and how long it waits in between.
package struct RetryPolicy: Hashable, Sendable {
    /// Failures in a row without a byte of progress before the download fails. Progress resets the count.
    package var attemptsMax: Int = 10

    /// Failures in a row before the origin was reached at all: a misspelt host should not take minutes to report.
    package var firstContactAttemptsMax: Int = 3

    /// The first delay's upper bound: above a round trip, below what a person notices.
    package var delayBase: Duration = .milliseconds(500)

    /// The longest delay's upper bound: an origin that comes back is found within half a minute.
    package var delayMax: Duration = .seconds(30)

    /// The delay instead of those, where the user wants one.
    package var delayFixed: Duration?

    /// How long after the last byte of progress another attempt may still be made.
    package var timeMax: Duration?

    /// The longest `Retry-After` that is waited for; a longer one ends the download, resumable.
    package var retryAfterMax: Duration = .seconds(600)

    package init() {}

    /// Whether another attempt is made after so many failures in a row.
    ///
    /// - Parameter waited: how long ago the last byte of progress was made.
    package func allows(
        _ failure: Failure, failures: Int, hadContact: Bool = true, waited: Duration = .zero
    ) -> Bool {
        guard failure.isTransient, (failure.retryAfter ?? .zero) <= self.retryAfterMax else { return false }
        if let timeMax, waited >= timeMax { return false }
        let attemptsMax =
            hadContact ? self.attemptsMax : min(self.attemptsMax, self.firstContactAttemptsMax)
        // Misdirected: another connection may end at another server, a third will not (RFC 9110 §15.5.20).
        return failures <= (failure.status == 421 ? min(attemptsMax, 1) : attemptsMax)
    }

    /// The delay before attempt `failures + 1`: full jitter over an exponentially growing bound, never below what the origin asked.
    ///
    /// Full jitter spreads clients that failed together (Brooker, "Exponential Backoff And Jitter", AWS 2015).
    package func delay(
        afterFailures failures: Int, retryAfter: Duration?, using generator: inout SplitMix64
    ) -> Duration {
        if let delayFixed { return max(delayFixed, retryAfter ?? .zero) }
        let doublings = min(max(failures - 1, 0), 16)
        let bound = min(self.delayBase * (1 << doublings), self.delayMax)
        let jittered = bound * Double.random(in: 0..<1, using: &generator)
        return max(jittered, retryAfter ?? .zero)
    }
}
