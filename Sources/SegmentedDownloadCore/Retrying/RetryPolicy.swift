/// How many times a failed request is made again, and how long segdl waits before that. ``RetryDecision`` applies it.
package struct RetryPolicy: Hashable, Sendable {
    /// The number of consecutive failures without progress that are retried; the next one fails the download. Progress
    /// resets the count.
    package var retriesMax: Int = 10

    /// The same limit before the origin has answered at all. A misspelled host should be reported within seconds.
    package var firstContactRetriesMax: Int = 3

    /// The upper bound of the first delay: above a round trip, below what a user notices.
    package var delayBase: Duration = .milliseconds(500)

    /// The upper bound of all delays: an origin that recovers is found within half a minute.
    package var delayMax: Duration = .seconds(30)

    /// A fixed delay that replaces the growing one, if the user sets it.
    package var delayFixed: Duration?

    /// The time without progress after which failures are no longer retried.
    package var timeMax: Duration?

    /// Once the origin has answered, any number of failures is retried until so much time has passed without progress.
    package var timeMin: Duration?

    /// 10 min, the longest wait that an origin may ask for: a task that gives up files while the origin restarts, or is
    /// busy with the other tasks, gives up one after the other.
    package static let timeMinOfJob: Duration = .seconds(600)

    /// The longest `Retry-After` that segdl waits for. A longer one fails the download, which can be resumed.
    package var retryAfterMax: Duration = .seconds(600)

    package init() {}

    /// The delay after `failures` consecutive failures: full jitter over an exponentially growing bound.
    ///
    /// It is never shorter than `retryAfter`. Full jitter spreads clients that failed at the same moment (Brooker,
    /// "Exponential Backoff And Jitter", AWS 2015).
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
