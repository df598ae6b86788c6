import Synchronization

/// One observer's events of a group, kept until they are taken.
///
/// However slow the observer, it misses no beginning and no end, only progress: what is dispensable is not kept beyond a limit.
final class EventBuffer: Sendable {
    private struct State {
        var events: [DownloadGroup.Event] = []
        /// Where the events not taken yet begin.
        var start = 0
        var waiters: [CheckedContinuation<DownloadGroup.Event?, Never>] = []
        var isFinished = false

        var count: Int { self.events.count - self.start }

        mutating func pop() -> DownloadGroup.Event? {
            guard self.start < self.events.count else { return nil }
            defer {
                self.start += 1
                // What was taken is let go of in strides, so that a long queue is not moved once per event.
                if self.start * 2 > self.events.count {
                    self.events.removeFirst(self.start)
                    self.start = 0
                }
            }
            return self.events[self.start]
        }
    }

    /// Beyond so many events kept, dispensable ones are dropped.
    static let lengthMaximum = 1024

    private let state = Mutex(State())

    /// The buffer as a sequence, which owns it.
    static func stream() -> (buffer: EventBuffer, stream: AsyncStream<DownloadGroup.Event>) {
        let buffer = EventBuffer()
        return (buffer, AsyncStream(unfolding: { await buffer.next() }, onCancel: { buffer.finish() }))
    }

    /// Somebody waits for just this event; to be told once no lock is held.
    struct WakeUp: Sendable {
        fileprivate let waiter: CheckedContinuation<DownloadGroup.Event?, Never>
        fileprivate let event: DownloadGroup.Event

        func callAsFunction() { self.waiter.resume(returning: self.event) }
    }

    /// Keeps an event, or hands it to who waits.
    func push(_ event: DownloadGroup.Event) -> WakeUp? {
        self.state.withLock { state in
            guard !state.isFinished else { return nil }
            if !state.waiters.isEmpty { return WakeUp(waiter: state.waiters.removeFirst(), event: event) }
            if !event.isDispensable || state.count < Self.lengthMaximum { state.events.append(event) }
            return nil
        }
    }

    /// Nothing more comes; what is kept may still be taken.
    func finish() {
        let waiters = self.state.withLock { state in
            state.isFinished = true
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume(returning: nil) }
    }

    private func next() async -> DownloadGroup.Event? {
        await withTaskCancellationHandler {
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
