import Synchronization

@testable import SegmentedDownload

/// A clock on which nothing takes time but sleeping, and a sleep ends at once.
final class StepClock: EngineClock {
    private struct State {
        var now: Duration = .zero
        var sleeps: [Duration] = []
    }

    private let state = Mutex(State())
    private let onSleep: @Sendable () throws -> Void

    /// - Parameter onSleep: Called at the beginning of each sleep.
    init(onSleep: @escaping @Sendable () throws -> Void = {}) {
        self.onSleep = onSleep
    }

    var now: Duration { self.state.withLock { $0.now } }

    /// How long each sleep was.
    var sleeps: [Duration] { self.state.withLock { $0.sleeps } }

    func sleep(until time: Duration) async throws {
        try self.onSleep()
        self.state.withLock { state in
            state.sleeps.append(time - state.now)
            state.now = max(state.now, time)
        }
    }

    var secondsSinceEpoch: Int64 { 1_700_000_000 + self.now.components.seconds }
}
