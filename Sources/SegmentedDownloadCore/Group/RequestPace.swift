/// How often a task of a job asks a host that has refused requests, and when it asks again after a refusal.
///
/// Many tasks that know nothing of each other share what the host allows. Each finds its share as TCP does (Chiu and
/// Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance in Computer Networks", 1989): every
/// task raises its rate by the same amount in the same time, and lowers it by a factor when it is refused, so that one
/// with more than its share loses more. A host that has refused nothing is asked as often as there are requests.
///
/// One process alone needs none of this: ``ConcurrencyBudget`` uses it for tasks of a job only.
struct RequestPace: Hashable, Sendable {
    /// A hundred tasks begin in a second, and all within the length of a turn, or a thousand in a second if they are too
    /// many for that. What most of them meet shows before all have asked.
    private static func spread(_ tasks: Int) -> Double {
        max(min(Double(tasks) / 100, Self.turnOfMany), Double(tasks) / 1000)
    }

    /// The length of a turn for 10 to 10,000 tasks, in seconds: the time in which a rate changes once. Short beside a job,
    /// long beside the time that a refused task would otherwise wait. It falls with the square of the number of tasks, to a
    /// second, because fewer tasks ask the host more often each, and share what it allows with fewer others.
    static let turnOfMany = 10.0
    static let turnLeast = 1.0

    /// The longest average delay after many refusals, in seconds, unless a turn is longer. A delay is at most twice as
    /// long.
    static let delayMax = 30.0

    /// The rate of a task before it can be measured, in requests per second: for ten tasks one in a turn. It falls with the
    /// fifth power of their number, so that one of five that meets a refusal at its beginning makes three requests in a
    /// second, and one of two is not delayed. Ten that asked more often would be refused more often.
    private static func rateUnmeasured(_ tasks: Int) -> Double {
        let part = 10 / Double(tasks)
        return min(Self.rateMax, part * part * part * part * part / Self.turnOfMany)
    }

    /// A refusal lowers the rate to this part, as in CUBIC (RFC 9438 §4.6). Half would leave more unused.
    static let decrease = 0.7

    /// The first increase, in requests for each turn. It doubles with each turn without a refusal, so that after a limit
    /// was lifted the pace no longer matters within eleven turns: 110 s for most fleets.
    static let increase = 0.5
    static let doublingsMax = 10

    /// Above a hundred requests in a second the pace no longer matters.
    static let rateMax = 100.0

    /// In seconds.
    private let turn: Double
    private let spread: Double
    /// The rate before it can be measured, in requests per second.
    private let rateUnmeasured: Double
    /// When the first request was made.
    private var beganAt: Duration?
    /// Requests in a second; nil while nothing was refused.
    private(set) var rate: Double?
    /// When the present turn began.
    private var turnAt: Duration = .zero
    /// The requests served in this turn and in the one before.
    private var served = 0
    private var servedBefore = 0
    /// The turns without a refusal since the last one.
    private var calmTurns = 0
    private var wasRefusedInTurn = false
    /// Refusals since a request was served.
    private var refusals = 0
    private var keeping = PlaceKeeping()

    init(tasks: Int) {
        self.spread = Self.spread(tasks)
        let tens = Double(tasks) / 10
        self.turn = max(min(max(Self.turnOfMany * tens * tens, Self.turnLeast), Self.turnOfMany), self.spread)
        self.rateUnmeasured = Self.rateUnmeasured(tasks)
    }

    /// Whether the last request was refused.
    var isRefused: Bool { self.refusals > 0 }

    /// The delay before the first request, so that tasks that were started together do not ask together.
    func delayAtStart(using generator: inout SplitMix64) -> Duration {
        .seconds(Double.random(in: 0..<1, using: &generator) * self.spread)
    }

    /// The delay after the end of a `Retry-After`. Most tasks were told about the same moment, so they spread behind it.
    func delayBehindRetryAfter(using generator: inout SplitMix64) -> Duration {
        self.upTo(self.turn, using: &generator)
    }

    /// The delay of a task that leaves its place to another one.
    func delayOfTurn(using generator: inout SplitMix64) -> Duration { self.delay(1, using: &generator) }

    /// Handles a request. Returns the delay before the next one.
    mutating func requested(now: Duration, using generator: inout SplitMix64) -> Duration {
        self.advance(to: now)
        self.beganAt = self.beganAt ?? now
        self.keeping.requested(now: now)
        guard let rate else { return .zero }
        return self.about(1 / rate, using: &generator)
    }

    /// Handles a request that was served.
    mutating func accepted(now: Duration) {
        self.advance(to: now)
        self.refusals = 0
        self.served += 1
        self.keeping.accepted()
    }

    /// Handles the end of a complete response. Returns whether the next request may be made at once.
    mutating func released(now: Duration) -> Bool { self.keeping.released(now: now) }

    /// Handles a refusal. Returns the delay before the next request.
    ///
    /// - Parameter asked: The host's `Retry-After`.
    mutating func refused(asked: Duration?, now: Duration, using generator: inout SplitMix64) -> Duration {
        self.advance(to: now)
        self.refusals += 1
        self.keeping.refused(saidWhen: asked != nil, now: now)
        if !self.wasRefusedInTurn || self.refusals > 1 {
            // At least one request in a long turn: a lower rate comes from the delays after several refusals.
            self.rate = max(
                Self.decrease * min(self.rate ?? .infinity, self.rateLately(now: now)),
                1 / max(self.turn, Self.turnOfMany))
        }
        self.wasRefusedInTurn = true
        self.calmTurns = 0
        if let asked { return asked + self.delayBehindRetryAfter(using: &generator) }
        guard self.refusals > 1 else { return self.upTo(2 / (self.rate ?? 1), using: &generator) }
        return self.delay(Double(self.refusals) / 2, using: &generator)
    }

    /// The requests served in a second, over the length of a turn.
    private func rateLately(now: Duration) -> Double {
        let part = (now - self.turnAt).inSeconds / self.turn
        let unmeasured = max(self.turn - (now - (self.beganAt ?? now)).inSeconds, 0)
        let served = Double(self.served) + (1 - part) * Double(self.servedBefore)
        return (served + unmeasured * self.rateUnmeasured) / self.turn
    }

    /// Handles a connection that failed before an answer. Returns the delay before the next one, which is longer than after
    /// a refusal: a server takes a while to start again.
    mutating func unreachable(using generator: inout SplitMix64) -> Duration {
        self.refusals += 1
        return self.delay(2 * Double(self.refusals), using: &generator)
    }

    /// A random delay of so many turns on average.
    private func delay(_ turns: Double, using generator: inout SplitMix64) -> Duration {
        self.upTo(2 * min(self.turn * turns.rounded(.down), max(Self.delayMax, self.turn)), using: &generator)
    }

    /// Between nothing and so many seconds.
    private func upTo(_ seconds: Double, using generator: inout SplitMix64) -> Duration {
        .seconds(Double.random(in: 0..<1, using: &generator) * seconds)
    }

    /// Random, or tasks that once asked together would ask together again.
    private func about(_ seconds: Double, using generator: inout SplitMix64) -> Duration {
        .seconds(Double.random(in: 0.5..<1.5, using: &generator) * seconds)
    }

    /// Begins the turns that are due.
    private mutating func advance(to now: Duration) {
        let turns = Int((now - self.turnAt).inSeconds / self.turn)
        guard turns > 0 else { return }
        self.turnAt += .seconds(self.turn) * turns
        (self.servedBefore, self.served) = (turns == 1 ? self.served : 0, 0)
        for _ in 0..<min(turns, Self.doublingsMax) where !self.wasRefusedInTurn {
            if let rate {
                let raised = rate + Self.increase / self.turn * Double(1 << min(self.calmTurns, Self.doublingsMax))
                self.rate = raised > Self.rateMax ? nil : raised
            }
            self.calmTurns += 1
        }
        self.wasRefusedInTurn = false
    }
}
