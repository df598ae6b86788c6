/// Whether a task may make its next request as soon as a response is complete, at a host that refuses requests.
///
/// A host that limits connections serves such a request: the place is still the task's. Waiting as ``RequestPace`` says
/// would leave the place unused. A host that limits requests refuses it as often as any other. So a task tries, and goes
/// on while it is served.
struct PlaceKeeping: Hashable, Sendable {
    /// 200 ms: a request that soon after a response has the response's place.
    private static let delayMax: Duration = .milliseconds(200)
    /// 8: after so many requests that were served, one that is refused is an exception: another task may have asked
    /// in the moment between response and request.
    private static let servedEnough = 8
    /// 30 s: the delay after a refusal until a place is kept again. It doubles with each refusal that is no exception.
    private static let pause: Duration = .seconds(30)
    private static let doublingsMax = 10

    /// When the last response was complete.
    private var releasedAt: Duration?
    /// Whether the request on its way has the place of the response before it.
    private var isKeeping = false
    /// The requests served in a row with the place of the response before them.
    private var served = 0
    /// The refusals of such requests that were no exceptions.
    private var refusals = 0
    /// No place is kept before this time.
    private var pausedUntil: Duration = .zero

    /// Handles the end of a complete response. Returns whether the next request may be made at once.
    mutating func released(now: Duration) -> Bool {
        self.releasedAt = now
        return now >= self.pausedUntil
    }

    mutating func requested(now: Duration) {
        self.isKeeping = self.releasedAt.map { now - $0 < Self.delayMax } ?? false
        self.releasedAt = nil
    }

    mutating func accepted() {
        if self.isKeeping { self.served += 1 }
        self.isKeeping = false
    }

    /// Handles a refusal.
    ///
    /// - Parameter saidWhen: Whether the host said when it may be asked again, as one does that limits requests.
    mutating func refused(saidWhen: Bool, now: Duration) {
        defer { self.isKeeping = false }
        guard self.isKeeping || saidWhen else { return }
        defer { self.served = 0 }
        guard saidWhen || self.served < Self.servedEnough else {
            self.refusals = 0
            return
        }
        self.pausedUntil = now + Self.pause * (1 << self.refusals)
        self.refusals = min(self.refusals + 1, Self.doublingsMax)
    }
}
