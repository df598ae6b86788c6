/// How the tasks of a job on one machine take turns at a host that serves only some of their connections.
///
/// A task that is served would keep its place until it ends, and the others would ask in vain. So a task that is refused
/// lets the others of the machine know that it waits. One that was served for a while then offers a place when a
/// response is complete, and one of those that wait takes it. Only while a task waits is anything given up; an offer that
/// no task takes costs ``offerLength`` once in ``turn``.
///
/// Every wait has an end of its own, so a notice that is lost, or a task that dies, costs only time.
struct PlaceTurns: Hashable, Sendable {
    private enum State: Hashable {
        /// It has no place, and waits for none. Becomes `asking`, or `waiting` if the host refuses a request.
        case none
        /// A request is on its way; the task has waited since the time, if at all. Becomes `served`, `waiting` or `none`.
        case asking(waitingSince: Duration?)
        /// The host serves it, or did so last. Becomes `offering`, `waiting` or `none`.
        case served(since: Duration)
        /// The host refused the last request, and is asked again at `asksAt`. Becomes `asking`.
        case waiting(since: Duration, asksAt: Duration)
        /// A place of the task is free for others. Becomes `waiting` or `served` if one takes it, otherwise `asking`.
        case offering(until: Duration)
    }

    /// 10 s: a task keeps its place for so long. Long beside the time without a request when it passes to another task.
    static let turn: Duration = .seconds(10)

    /// 2 s: an offer stands for so long. Tasks read it within a tenth of a second.
    static let offerLength: Duration = .seconds(2)

    /// 100 ms: offers whose ends differ by less are one. Each process converts times to those of its own clock.
    private static let tolerance: Duration = .milliseconds(100)

    private var state = State.none
    /// Until this time another task waits.
    private var othersWaitUntil: Duration = .zero
    /// Until this time the place of another task is offered.
    private var offerUntil: Duration = .zero

    init() {}

    /// Handles a request. Returns the end of the offer that it takes, if any.
    mutating func requested(now: Duration) -> Duration? {
        switch self.state {
        case .asking, .served: return nil
        case .offering(let until):
            // Over another connection that the host serves, or after the offer.
            if now >= until { self.state = .asking(waitingSince: nil) }
            return nil
        case .none: self.state = .asking(waitingSince: nil)
        case .waiting(let since, _): self.state = .asking(waitingSince: since)
        }
        guard now < self.offerUntil else { return nil }
        defer { self.offerUntil = .zero }
        return self.offerUntil
    }

    /// Handles a request that was served.
    mutating func accepted(now: Duration) {
        switch self.state {
        case .served: break
        case .offering(let until) where now < until: break
        case .none, .asking, .waiting, .offering: self.state = .served(since: now)
        }
    }

    /// Handles a refusal by a host that serves no connection of the task. With `asksAt` the task waits until then, unless
    /// it is offered a place before. Without it, the task does not take part, because the host said when to ask.
    mutating func refused(asksAt: Duration?, now: Duration) {
        guard let asksAt else {
            self.state = .none
            return
        }
        switch self.state {
        case .waiting(let since, _), .asking(let since?): self.state = .waiting(since: since, asksAt: asksAt)
        case .none, .asking(nil), .served, .offering: self.state = .waiting(since: now, asksAt: asksAt)
        }
    }

    /// Handles the end of a request that had no answer.
    mutating func failed() {
        if case .asking = self.state { self.state = .none }
    }

    /// Whether the task has been served for less than a turn, so that its place is left to no other.
    func lasts(now: Duration) -> Bool {
        if case .served(let since) = self.state { return now - since < Self.turn }
        return false
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

    /// Handles the end of the task's work. Returns the end of the offer that it makes, if any.
    mutating func left(now: Duration) -> Duration? { self.released(asksAt: .seconds(Int64.max), now: now) }

    /// Handles a notice of another task. Returns when the task may make its next request for another place, if that changes.
    ///
    /// - Parameters:
    ///   - until: The end of the wait or of the offer.
    ///   - holdsPlaces: Whether the host serves connections of this task.
    ///   - pause: The delay of a task whose place was taken.
    mutating func noticed(
        _ kind: HostNotice.Kind, until: Duration, holdsPlaces: Bool, pause: Duration, now: Duration,
        using generator: inout SplitMix64
    ) -> Duration? {
        switch kind {
        case .refusal: break
        case .waiting: self.othersWaitUntil = max(self.othersWaitUntil, until)
        case .offer:
            self.offerUntil = until
            guard case .waiting(let since, let asksAt) = self.state else { break }
            // The task that has waited longest is likely to be the first.
            let part = Self.turn.inSeconds / (Self.turn + (now - since)).inSeconds
            let delay = Double.random(in: 0..<Self.offerLength.inSeconds / 2, using: &generator) * part
            return min(asksAt, now + .seconds(delay))
        case .taken:
            if case .offering(let end) = self.state, Self.isOne(end, until) {
                self.state =
                    holdsPlaces ? .served(since: now) : .waiting(since: now, asksAt: now + pause)
                return now + pause
            }
            guard Self.isOne(self.offerUntil, until) else { break }
            self.offerUntil = .zero
            if case .waiting(_, let asksAt) = self.state { return asksAt }
        }
        return nil
    }

    private static func isOne(_ end: Duration, _ other: Duration) -> Bool {
        end - other < Self.tolerance && other - end < Self.tolerance
    }
}
