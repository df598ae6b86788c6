import Synchronization

/// Hands every event to any number of observers, each at its own pace.
final class EventBroadcaster: Sendable {
    private struct State {
        var observers: [(id: Int, continuation: AsyncStream<DownloadEvent>.Continuation)] = []
        var idNext = 0
        /// The last terminal event, for those who come late.
        var terminal: DownloadEvent?
    }

    /// An observer slower than this many events loses the oldest; never the last, which says how it ended.
    static let bufferLength = 1024

    private let state = Mutex(State())

    /// A sequence of the events from now on; it ends after a terminal one.
    func events() -> AsyncStream<DownloadEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DownloadEvent.self, bufferingPolicy: .bufferingNewest(Self.bufferLength))
        let id: Int? = self.state.withLock { state in
            if let terminal = state.terminal {
                continuation.yield(terminal)
                return nil
            }
            let id = state.idNext
            state.idNext += 1
            state.observers.append((id, continuation))
            return id
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { _ in
            self.state.withLock { $0.observers.removeAll { $0.id == id } }
        }
        return stream
    }

    func send(_ event: DownloadEvent) {
        let observers = self.state.withLock { state in
            guard event.isTerminal else { return state.observers }
            state.terminal = event
            defer { state.observers = [] }
            return state.observers
        }
        for observer in observers {
            observer.continuation.yield(event)
            if event.isTerminal { observer.continuation.finish() }
        }
    }

    /// A download that is resumed after a pause or failure has events again.
    func reopen() {
        self.state.withLock { state in
            switch state.terminal {
            case .paused, .failed: state.terminal = nil
            case .completed, .cancelled, .started, .progress, .segment, .retrying, .checkpoint, .note, nil: break
            }
        }
    }

    /// Nothing will happen any more: whoever still listens hears that it is over.
    func finish() {
        if self.state.withLock({ $0.terminal == nil }) { self.send(.cancelled) }
    }
}
