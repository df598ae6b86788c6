import Synchronization

/// Hands every event to any number of observers, each at its own pace.
final class EventBroadcaster: Sendable {
    private struct State {
        var observers: [(id: Int, continuation: AsyncStream<DownloadEvent>.Continuation)] = []
        var idNext = 0
        /// The last terminal event, for those who come late.
        var terminal: DownloadEvent?
        /// Who hears of everything too, before the observers do: the group.
        var relay: (@Sendable (Signal) -> Void)?
        var wishes: [Wish] = []
        /// Whether nothing will happen any more.
        var isOver = false
    }

    /// What the group hears.
    enum Signal: Sendable {
        case happened(DownloadEvent)
        /// It had paused or failed, and goes on.
        case reopened
    }

    /// What somebody asked for and waits to see carried out.
    private struct Wish {
        let ticket: Int
        let continuation: AsyncStream<Void>.Continuation
        /// Whether resuming takes it back.
        let isPause: Bool
        /// Whether the engine has heard of it: what concludes before then concludes something else.
        var isHandled = false
    }

    /// An observer slower than this many events loses the oldest; never the last, which says how it ended.
    static let bufferLength = 1024

    private let state = Mutex(State())

    /// Has everything told to the group, too.
    func relay(to relay: @escaping @Sendable (Signal) -> Void) {
        self.state.withLock { $0.relay = relay }
    }

    // MARK: Events

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

    /// A download that is resumed after a pause or failure has events again; whether it had ended in such a way.
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

    /// Whether the last that was heard of it is an end, for now or for good, that nobody has asked to go on from.
    var isAtRest: Bool { self.state.withLock { $0.terminal != nil } }

    /// Nothing will happen any more: whoever still listens hears that it is over.
    func finish() {
        let isUnended = self.state.withLock { state in
            state.isOver = true
            return state.terminal == nil
        }
        if isUnended { self.send(.cancelled) }
        self.release { _ in true }
    }

    // MARK: Wishes

    /// Notes that somebody waits for what is asked of the engine next; the sequence ends once that is carried out.
    func wish(isPause: Bool) -> (ticket: Int, answer: AsyncStream<Void>) {
        let (answer, continuation) = AsyncStream.makeStream(of: Void.self)
        let (ticket, isOver) = self.state.withLock { state in
            state.idNext += 1
            state.wishes.append(Wish(ticket: state.idNext, continuation: continuation, isPause: isPause))
            return (state.idNext, state.isOver)
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.wishes.removeAll { $0.ticket == ticket } }
        }
        if isOver { continuation.finish() }
        return (ticket, answer)
    }

    /// The engine has heard what was asked; it is carried out already, or will be when the download comes to rest.
    func handle(_ ticket: Int, isDone: Bool) {
        self.state.withLock { state in
            guard let index = state.wishes.firstIndex(where: { $0.ticket == ticket }) else { return }
            state.wishes[index].isHandled = true
        }
        if isDone { self.release { $0.ticket == ticket } }
    }

    /// Pauses that were asked for were taken back by a later word.
    func withdrawPauses() {
        self.release { $0.isHandled && $0.isPause }
    }

    private func release(where isReleased: (Wish) -> Bool) {
        let released = self.state.withLock { state in
            defer { state.wishes.removeAll(where: isReleased) }
            return state.wishes.filter(isReleased)
        }
        for wish in released { wish.continuation.finish() }
    }
}
