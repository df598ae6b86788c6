import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A source of time. The engine reads time and sleeps only through this protocol.
package protocol EngineClock: Sendable {
    /// The time since the clock was created. It never decreases, and advances while the machine is suspended.
    var now: Duration { get }

    /// Suspends until `time`.
    ///
    /// - Throws: `CancellationError` if the task is cancelled first.
    func sleep(until time: Duration) async throws

    /// The time of day in seconds since 1970, for records that later runs read. Unlike ``now`` it may go back.
    var secondsSinceEpoch: Int64 { get }
}

/// The system's clock. On Linux it is `CLOCK_BOOTTIME`, so a connection that broke while a laptop was suspended counts
/// as stalled.
package struct SystemClock: EngineClock {
    private let start = ContinuousClock.now

    package init() {}

    package var now: Duration { ContinuousClock.now - self.start }

    /// The longest sleep: a time that is farther away does not fit in the nanoseconds in which the system sleeps.
    private static let sleepMax = Duration.seconds(RetryAfter.secondsMax)

    package func sleep(until time: Duration) async throws {
        try await Task.sleep(until: self.start + min(time, self.now + Self.sleepMax), clock: .continuous)
    }

    package var secondsSinceEpoch: Int64 { Int64(time(nil)) }

    /// The time of day, by which a response without a `Date` is dated.
    static var date: HTTPDate? { HTTPDate(secondsSinceEpoch: Int64(time(nil))) }
}
