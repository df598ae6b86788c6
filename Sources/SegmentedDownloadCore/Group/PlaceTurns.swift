/// How the tasks of a job on one machine take turns at a host that serves only some of their connections.
///
/// A task that is served would keep its place until it ends, and the others would ask in vain. So a task that is refused
/// lets the others of the machine know that it waits. One that was served for a while then offers its place when a
/// file is complete, and one of those that wait takes it. Only while a task waits is anything given up; an offer that nobody
/// takes costs ``offerLength`` once in ``turn``.
struct PlaceTurns: Hashable, Sendable {
    private enum State: Hashable {
        case none
        case served(since: Duration)
        /// The host refused the last request, and is asked again at `asksAt`.
        case waiting(since: Duration, asksAt: Duration)
        case offering(until: Duration)
    }

    /// A task keeps its place for so long: long beside the time without a request when it passes to another task.
    static let turn: Duration = .seconds(10)

    /// An offer stands for so long. Tasks read it within a tenth of a second.
    static let offerLength: Duration = .seconds(2)

    private var state = State.none
    /// Until this time another task waits.
    private var othersWaitUntil: Duration = .zero
    /// Until this time the place of another task is offered.
    private var offerUntil: Duration = .zero

    init() {}

    /// Handles a request. Returns the end of the offer that it takes up, if any.
    mutating func requested(now: Duration) -> Duration? {
        guard case .waiting = self.state, now < self.offerUntil else { return nil }
        defer { self.offerUntil = .zero }
        return self.offerUntil
    }

    /// Handles a request that was served.
    mutating func accepted(now: Duration) {
        if case .served = self.state { return }
        self.state = .served(since: now)
    }

    /// Handles a refusal. With `asksAt` the task waits until then, unless it is offered a place before; without it, it
    /// does not take part, because the host said when to ask.
    mutating func refused(asksAt: Duration?, now: Duration) {
        guard let asksAt else { return self.state = .none }
        if case .waiting(let since, _) = self.state {
            self.state = .waiting(since: since, asksAt: asksAt)
        } else {
            self.state = .waiting(since: now, asksAt: asksAt)
        }
    }

    /// Handles the end of a response, after which the next request is due at `asksAt`. Returns the end of the offer that
    /// the task makes, if any.
    mutating func released(asksAt: Duration, now: Duration) -> Duration? {
        guard case .served(let since) = self.state, now < self.othersWaitUntil,
            now - since >= Self.turn || asksAt - now > Self.offerLength
        else { return nil }
        let end = now + Self.offerLength
        self.state = .offering(until: end)
        return end
    }

    /// Handles a notice of another task. Returns when the host is to be asked now, if that changes.
    ///
    /// - Parameter pause: The delay of a task whose place was taken.
    mutating func noticed(
        _ kind: HostNotice.Kind, until: Duration, pause: Duration, now: Duration, using generator: inout SplitMix64
    ) -> Duration? {
        switch kind {
        case .refusal: break
        case .waiting: self.othersWaitUntil = max(self.othersWaitUntil, until)
        case .offer:
            self.offerUntil = until
            guard case .waiting(let since, let asksAt) = self.state else { break }
            // The one that has waited longest is likely to be the first.
            let part = Self.turn.inSeconds / (Self.turn + (now - since)).inSeconds
            let delay = Double.random(in: 0..<Self.offerLength.inSeconds / 2, using: &generator) * part
            return min(asksAt, now + .seconds(delay))
        case .taken:
            self.offerUntil = .zero
            switch self.state {
            case .waiting(_, let asksAt): return asksAt
            case .offering:
                self.state = .waiting(since: now, asksAt: now + pause)
                return now + pause
            case .none, .served: break
            }
        }
        return nil
    }
}
