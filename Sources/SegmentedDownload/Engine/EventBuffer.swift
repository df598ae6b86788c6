import Synchronization

/// Buffers a group's events for one observer.
///
/// While the buffer has reached its limit, dispensable events are not added. All others are, so the buffer may grow
/// beyond the limit.
final class EventBuffer: Sendable {
    private struct State {
        var events: [DownloadGroup.Event] = []
        /// The index of the first event that was not delivered.
        var start = 0
        var waiters: [CheckedContinuation<DownloadGroup.Event?, Never>] = []
        var isFinished = false

        var count: Int { self.events.count - self.start }

        mutating func pop() -> DownloadGroup.Event? {
            guard self.start < self.events.count else { return nil }
            defer {
                self.start += 1
                // Delivered events are removed in batches, so that a long queue is not moved for every event.
                if self.start * 2 > self.events.count {
                    self.events.removeFirst(self.start)
                    self.start = 0
                }
            }
            return self.events[self.start]
        }
    }

    /// 8192: while this many events are buffered, new dispensable ones are dropped. A group of 512 active downloads has
    /// 2560 events of progress a second.
    static let lengthMaximum = 8192

    private let isWanted: @Sendable (DownloadGroup.Event) -> Bool
    private let state = Mutex(State())

    private init(isWanted: @escaping @Sendable (DownloadGroup.Event) -> Bool) {
        self.isWanted = isWanted
    }

    /// Creates a buffer and the sequence that owns it.
    ///
    /// - Parameter isWanted: Whether an event is delivered.
    static func stream(
        of isWanted: @escaping @Sendable (DownloadGroup.Event) -> Bool = { _ in true }
    ) -> (buffer: EventBuffer, stream: AsyncStream<DownloadGroup.Event>) {
        let buffer = EventBuffer(isWanted: isWanted)
        return (buffer, AsyncStream(unfolding: { await buffer.next() }, onCancel: { buffer.finish() }))
    }

    /// A continuation to resume with an event after the lock has been released.
    struct WakeUp: Sendable {
        fileprivate let waiter: CheckedContinuation<DownloadGroup.Event?, Never>
        fileprivate let event: DownloadGroup.Event

        func callAsFunction() { self.waiter.resume(returning: self.event) }
    }

    /// Buffers an event.
    func push(_ event: DownloadGroup.Event) {
        guard self.isWanted(event) else { return }
        self.state.withLock { state in
            guard !state.isFinished, !event.isDispensable || state.count < Self.lengthMaximum else { return }
            state.events.append(event)
        }
    }

    /// The continuation of an observer's task and the event that it waits for; `nil` if there is no event or no task waits.
    func wakeUp() -> WakeUp? {
        self.state.withLock { state in
            guard !state.waiters.isEmpty, let event = state.pop() else { return nil }
            return WakeUp(waiter: state.waiters.removeFirst(), event: event)
        }
    }

    /// Ends the sequence after the buffered events.
    func finish() {
        let waiters = self.state.withLock { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters.map { ($0, state.pop()) }
        }
        for (waiter, event) in waiters { waiter.resume(returning: event) }
    }

    private func next() async -> DownloadGroup.Event? {
        if let event = self.state.withLock({ $0.pop() }) { return event }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = self.state.withLock { state -> DownloadGroup.Event?? in
                    if let event = state.pop() { return .some(event) }
                    if state.isFinished { return .some(nil) }
                    state.waiters.append(continuation)
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            self.finish()
        }
    }
}
