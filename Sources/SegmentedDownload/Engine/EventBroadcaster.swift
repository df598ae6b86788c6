import Synchronization

/// Delivers a download's events to any number of observers, each at its own pace.
final class EventBroadcaster: Sendable {
    private struct State {
        var observers: [(id: Int, continuation: AsyncStream<DownloadEvent>.Continuation)] = []
        var idNext = 0
        /// The last terminal event, delivered to observers that subscribe after it.
        var terminal: DownloadEvent?
        /// The group's handler, called before the observers receive an event.
        var relay: (@Sendable (Signal) -> Void)?
        /// The requests that callers are waiting for.
        var pendingControls: [PendingControl] = []
        /// Whether the group has ended, so that no event can follow.
        var isOver = false
    }

    /// A notification for the group.
    enum Signal: Sendable {
        case happened(DownloadEvent)
        /// A paused or failed download was resumed.
        case reopened
    }

    /// A request, such as a pause, that a caller waits for.
    private struct PendingControl {
        let ticket: Int
        let continuation: AsyncStream<Void>.Continuation
        /// Whether resuming withdraws the request.
        let isPause: Bool
        /// Whether the engine has handled the request. A conclusion before that is not its result.
        var isHandled = false
    }

    /// 1024: an observer that is so many events behind loses the oldest with each new one, but never the terminal one.
    static let bufferLength = 1024

    private let state = Mutex(State())

    /// Sets the group's handler.
    func relay(to relay: @escaping @Sendable (Signal) -> Void) {
        self.state.withLock { $0.relay = relay }
    }

    // MARK: Events

    /// A sequence of the events from now on, which ends after a terminal event.
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
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.observers.removeAll { $0.id == id } }
        }
        return stream
    }

    func send(_ event: DownloadEvent) {
        let (observers, relay) = self.state.withLock { state in
            guard event.isTerminal else { return (state.observers, state.relay) }
            state.terminal = event
            defer { state.observers = [] }
            return (state.observers, state.relay)
        }
        relay?(.happened(event))
        for observer in observers {
            observer.continuation.yield(event)
            if event.isTerminal { observer.continuation.finish() }
        }
        if event.isTerminal { self.release { $0.isHandled } }
    }

    /// Allows further events after a pause or failure.
    ///
    /// - Returns: Whether the download was paused or failed.
    @discardableResult
    func reopen() -> Bool {
        let (isReopened, relay) = self.state.withLock { state in
            guard !state.isOver else { return (false, state.relay) }
            switch state.terminal {
            case .paused, .failed:
                state.terminal = nil
                return (true, state.relay)
            case .completed, .cancelled, .started, .progress, .segment, .retrying, .checkpoint, .note, .state, nil:
                return (false, state.relay)
            }
        }
        if isReopened { relay?(.reopened) }
        return isReopened
    }

    /// The last terminal event; nil if there is none, or the download was resumed since.
    var terminal: DownloadEvent? { self.state.withLock { $0.terminal } }

    /// Ends all sequences. Observers of a download that has not ended receive `cancelled`.
    func finish() {
        let isUnended = self.state.withLock { state in
            state.isOver = true
            return state.terminal == nil
        }
        if isUnended { self.send(.cancelled) }
        self.release { _ in true }
    }

    // MARK: Pending controls

    /// Registers a caller that waits until its request is carried out.
    ///
    /// - Returns: A ticket to post with the request, and a sequence that ends when the request has been carried out.
    func addPendingControl(isPause: Bool) -> (ticket: Int, answer: AsyncStream<Void>) {
        let (answer, continuation) = AsyncStream.makeStream(of: Void.self)
        let (ticket, isOver) = self.state.withLock { state in
            state.idNext += 1
            state.pendingControls.append(
                PendingControl(ticket: state.idNext, continuation: continuation, isPause: isPause))
            return (state.idNext, state.isOver)
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.pendingControls.removeAll { $0.ticket == ticket } }
        }
        if isOver { continuation.finish() }
        return (ticket, answer)
    }

    /// Marks a request as handled by the engine.
    ///
    /// - Parameter isDone: Whether it is already carried out. If not, it is when the download comes to rest.
    func handle(_ ticket: Int, isDone: Bool) {
        self.state.withLock { state in
            guard let index = state.pendingControls.firstIndex(where: { $0.ticket == ticket }) else { return }
            state.pendingControls[index].isHandled = true
        }
        if isDone { self.release { $0.ticket == ticket } }
    }

    /// Releases callers that wait for a pause which a later resume has withdrawn.
    func withdrawPauses() {
        self.release { $0.isHandled && $0.isPause }
    }

    private func release(where isReleased: (PendingControl) -> Bool) {
        let released = self.state.withLock { state in
            defer { state.pendingControls.removeAll(where: isReleased) }
            return state.pendingControls.filter(isReleased)
        }
        for control in released { control.continuation.finish() }
    }
}
