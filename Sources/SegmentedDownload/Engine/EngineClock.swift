/// The door to time.
package protocol EngineClock: Sendable {
    /// Time since the clock was made; never goes back, and goes on while the machine sleeps.
    var now: Duration { get }

    /// Returns when `time` has come.
    ///
    /// - Throws: `CancellationError` when the task is cancelled before.
    func sleep(until time: Duration) async throws
}

/// The system's clock. On Linux it is `CLOCK_BOOTTIME`, so that a connection that died while a laptop slept counts as stalled.
package struct SystemClock: EngineClock {
    private let start = ContinuousClock.now

    package init() {}

    package var now: Duration { ContinuousClock.now - self.start }

    package func sleep(until time: Duration) async throws {
        try await Task.sleep(until: self.start + time, clock: .continuous)
    }
}
