import Synchronization

/// Delivers a group's events to its observers and reports when no download is active.
final class GroupHub: Sendable {
    private struct Observer {
        /// Weak: the observer's sequence owns the buffer.
        weak var buffer: EventBuffer?
    }

    private struct State {
        var tally = GroupTally()
        var observers: [Observer] = []
        var waiters: [(id: Int, continuation: AsyncStream<GroupSummary>.Continuation)] = []
        var idNext = 0
        var isOver = false
        /// Whether wake-ups are deferred until ``GroupHub/release()``.
        var isHeld = false
    }

    private let state = Mutex(State())

    var summary: GroupSummary { self.state.withLock { $0.tally.summary } }

    /// Whether no download is active.
    var isIdle: Bool { self.state.withLock { $0.tally.isIdle } }

    // MARK: Watching

    func events(where isWanted: @escaping @Sendable (DownloadGroup.Event) -> Bool) -> AsyncStream<DownloadGroup.Event> {
        let (buffer, stream) = EventBuffer.stream(of: isWanted)
        let isOver = self.state.withLock { state in
            state.observers.removeAll { $0.buffer == nil }
            if !state.isOver { state.observers.append(Observer(buffer: buffer)) }
            return state.isOver
        }
        if isOver { buffer.finish() }
        return stream
    }

    /// Waits until no download is active, and returns the summary at that time.
    func waitForAll() async -> GroupSummary {
        let (stream, continuation) = AsyncStream.makeStream(of: GroupSummary.self)
        let id: Int? = self.state.withLock { state in
            guard !state.isOver, !state.tally.isIdle else { return nil }
            state.idNext += 1
            state.waiters.append((state.idNext, continuation))
            return state.idNext
        }
        guard let id else { return self.summary }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.waiters.removeAll { $0.id == id } }
        }
        for await summary in stream { return summary }
        return self.summary
    }

    // MARK: Publishing

    /// Defers wake-ups until ``release()``, so that observers are woken once for several events.
    func hold() {
        self.state.withLock { $0.isHeld = true }
    }

    /// Wakes the observers that have events.
    func release() {
        let wakeUps = self.state.withLock { state in
            state.isHeld = false
            return Self.wakeUps(&state)
        }
        for wakeUp in wakeUps { wakeUp() }
    }

    private static func wakeUps(_ state: inout State) -> [EventBuffer.WakeUp] {
        var wakeUps: [EventBuffer.WakeUp] = []
        for observer in state.observers { while let wakeUp = observer.buffer?.wakeUp() { wakeUps.append(wakeUp) } }
        return wakeUps
    }

    func added(_ download: Download, isPaused: Bool) {
        self.publish { tally in
            isPaused ? tally.addedPaused(download.number) : tally.added(download.number)
            return ([.added(download)], false)
        }
    }

    func reopened(_ download: Download) {
        self.publish { tally in
            tally.reopened(download.number)
            return ([], false)
        }
    }

    func happened(_ event: DownloadEvent, to download: Download, isDelisted: Bool) {
        // Most events change no count.
        guard event.isTerminal || isDelisted else { return self.pass(.download(download, event)) }
        self.publish { tally in
            var events = [DownloadGroup.Event.download(download, event)]
            let isLast = event.isTerminal && tally.ended(download.number, event)
            if isDelisted {
                tally.delisted(download.number)
                events.append(.removed(download))
            }
            return (events, isLast)
        }
    }

    func removed(_ download: Download) {
        self.publish { tally in
            tally.removed(download.number)
            return ([.removed(download)], false)
        }
    }

    /// Ends all sequences and waits.
    func finish() {
        let (observers, waiters) = self.state.withLock { state in
            state.isOver = true
            defer { (state.observers, state.waiters) = ([], []) }
            return (state.observers, state.waiters)
        }
        for observer in observers { observer.buffer?.finish() }
        for waiter in waiters { waiter.continuation.finish() }
    }

    /// Adds an event to the buffers of all observers.
    private func pass(_ event: DownloadGroup.Event) {
        let wakeUps = self.state.withLock { state in
            for observer in state.observers { observer.buffer?.push(event) }
            return state.isHeld ? [] : Self.wakeUps(&state)
        }
        for wakeUp in wakeUps { wakeUp() }
    }

    /// Updates the tally, adds the events to the buffers of all observers in the order they happened, and resumes callers
    /// of ``waitForAll()``.
    private func publish(_ count: (inout GroupTally) -> (events: [DownloadGroup.Event], isLast: Bool)) {
        let (wakeUps, waiters, summary) = self.state.withLock { state in
            var (events, isLast) = count(&state.tally)
            if isLast { events.append(.allCompleted(state.tally.summary)) }
            state.observers.removeAll { $0.buffer == nil }
            for event in events { for observer in state.observers { observer.buffer?.push(event) } }
            let wakeUps = state.isHeld ? [] : Self.wakeUps(&state)
            let waiters = isLast ? state.waiters : []
            if isLast { state.waiters = [] }
            return (wakeUps, waiters, state.tally.summary)
        }
        for wakeUp in wakeUps { wakeUp() }
        for waiter in waiters {
            waiter.continuation.yield(summary)
            waiter.continuation.finish()
        }
    }
}
