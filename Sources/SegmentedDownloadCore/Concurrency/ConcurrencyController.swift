/// Finds how many connections one file deserves.
///
/// A fixed number is exact. Otherwise some are tried as soon as there is enough to fetch for that, all that may be where each brings as
/// much as the first, and else the number doubles while doubling pays. What it did not pay for is given back once the rate is steady, and
/// where the rate falls for good more are tried again: a path that loses packets is fast at first, whatever the number.
package struct ConcurrencyController: Hashable, Sendable {
    /// What has come and what is still to come, as seen at a tick.
    package struct Observation: Hashable, Sendable {
        /// Bytes that have come in all.
        package var bytes: Int64
        /// Connections that bring some.
        package var receiving: Int
        /// Bytes not there yet.
        package var bytesMissing: Int64
        /// Seconds from asking to the first byte.
        package var requestCost: Double
        /// Bytes that each of the others had brought, on average, when it was as old as the first one was when they were asked for;
        /// absent while none is that old.
        package var newcomer: Double?

        package init(
            bytes: Int64, receiving: Int, bytesMissing: Int64 = .max, requestCost: Double = 0, newcomer: Double? = nil
        ) {
            self.newcomer = newcomer
            self.bytes = bytes
            self.receiving = receiving
            self.bytesMissing = bytesMissing
            self.requestCost = requestCost
        }
    }

    private enum Phase: Hashable {
        /// One connection, until it is seen whether more are worth their requests.
        case beginning
        /// More are tried than the number before, which brought `rate`.
        case growing(before: Int, rate: Double)
        /// Fewer are tried than the number before, which brought `rate`.
        case shrinking(before: Int, rate: Double)
        /// The number is kept.
        case steady(Steadiness)
    }

    /// What a number brings that is kept.
    private struct Steadiness: Hashable {
        /// Bytes per second on average, the last ones counting most.
        var rate: Double
        /// Since when no window's rate was far from another's.
        var since: Duration
        var lowest: Double
        var highest: Double
        /// Windows in a row that brought much less than the average.
        var lowCount = 0
    }

    /// Doubling must raise the rate by this factor to be followed by another doubling.
    package static let gainMinimum = 1.15

    /// Where several bring this part of what one alone would let expect, nothing but the connections is at its limit.
    package static let linearMinimum = 0.9

    /// Connections given back that brought less than this part of what the others bring did not help.
    package static let helpMinimum = 0.5

    /// Who brings this part of what the first one brought at the same age is not held up by the others. Three of four that share what one
    /// could have bring less.
    package static let unhinderedMinimum = 0.8

    /// Where several that are not held up seem to bring less than this part of what one let expect, it is the moments that deceive.
    package static let burstRate = 0.5

    /// Giving connections back, one after the other, may cost so much of the rate they brought together.
    package static let lossMaximum = 0.9

    /// Fewer than one of so many are not worth giving back: rates are not known as finely as that.
    package static let returnMinimum = 8

    /// A rate below this part of what it was on average is low.
    package static let fallMinimum = 0.75

    /// So many low windows in a row are no dip that passes.
    package static let lowCountMax = 2

    /// Rates of a path that is at its limit differ by no more than this factor.
    package static let spreadMaximum = 1.1

    /// One number is observed so long at the least; longer where a request's first byte takes long, so that a rate can show.
    package static let observationMinimum: Duration = .milliseconds(300)

    /// Two ticks, or nearly: the first of them comes some time after the connections.
    package static let firstObservation: Duration = .milliseconds(150)

    /// Half a tick, in seconds: a shorter time says nothing about a rate.
    package static let spanMinimum = 0.05

    /// How long an origin that refused more connections is not asked for more, the first time; and how long after more did not help.
    package static let patience: Duration = .seconds(10)

    /// A rate that lasts so long will last.
    package static let steadiness: Duration = .seconds(2)

    /// Connections that have not come by then do not come: somebody else has a say in how many there are.
    package static let comingMaximum: Duration = .seconds(3)

    /// How many are tried first: more on a longer path, where each takes longer to be fast and one lost packet costs it more; and where
    /// those that are begun once the path is full lose a second to a lost handshake, and then leave slow start early.
    ///
    /// - Parameter requestCost: seconds from asking to the first byte: two round trips, four with encryption.
    package static func firstTarget(requestCost: Double) -> Int {
        switch requestCost {
        case ..<0.03: 4
        case ..<0.09: 8
        case ..<0.16: 16
        default: 32
        }
    }

    /// Seconds. Where a request costs as much as a tick, one connection brings next to nothing in the time it would be observed.
    package static let longRequest = 0.09

    /// Beyond this more connections annoy origins sooner than they help: it takes a path of 80 ms that loses every thousandth
    /// packet to need so many for 200 Mbit/s.
    package static let automaticMaximum = 32

    package private(set) var target: Int
    private var isAutomatic: Bool
    private let known: Int?
    private var hasObservedLimit = false
    /// Whether others had a say in how many there may be.
    private var isBounded = false
    private var phase = Phase.beginning
    /// No more are tried; fewer than the maximum where no more would come.
    private var most = Self.automaticMaximum
    /// The most that one of any number of connections was seen to bring.
    private var rateOfOneBest = 0.0
    /// How long the first connection was alone, and what it brought in that time.
    package private(set) var aloneTime: Duration?
    private var aloneBytes: Int64 = 0
    /// Whether bytes come in bursts, as nginx's `limit_rate` sends them: a second's worth at once, then nothing. Rates of moments say
    /// nothing then, and nothing is given back.
    private var isBursty = false
    /// When more may be tried again after they were refused or did not help, and how often that was.
    private var growsAgainAt: Duration = .zero
    private var wasRefused = false
    private var isTryingAgain = false
    private var failures = 0
    /// When fewer may be tried again after fewer brought less, and how often they did.
    private var shrinksAgainAt: Duration = .zero
    private var losses = 0
    /// What the connections brought before any were given back.
    private var rateOfAll = 0.0
    private var grewAt: Duration = .zero
    private var observedSince: Duration?
    private var countAtStart: Int64 = 0

    /// - Parameter known: what paid before, see ``limitObserved``.
    package init(_ segments: DownloadOptions.Segments, known: Int? = nil) {
        self.known = known
        switch segments {
        case .automatic:
            self.target = 1
            self.isAutomatic = true
        case .exactly(let count):
            precondition(count > 0, "a file needs a connection")
            self.target = count
            self.isAutomatic = false
        }
    }

    /// How many connections paid, absent while that is not known by trying.
    package var limitObserved: Int? {
        guard self.isAutomatic, self.hasObservedLimit, !self.isBounded else { return nil }
        return switch self.phase {
        case .beginning: nil
        // What is being tried is not known to pay.
        case .growing(let before, _), .shrinking(let before, _): before
        case .steady: self.target
        }
    }

    /// Takes another wish of the user. Where the number is to be found, it is looked for from the present one.
    package mutating func update(_ segments: DownloadOptions.Segments) {
        switch segments {
        case .automatic:
            self.isAutomatic = true
            self.target = min(self.target, Self.automaticMaximum)
            self.reopen()
        case .exactly(let count):
            precondition(count > 0, "a file needs a connection")
            self.target = count
            self.isAutomatic = false
        }
    }

    /// What more connections pay is to be found out once more, for what limited them has changed.
    package mutating func reopen() {
        self.most = Self.automaticMaximum
        self.rateOfOneBest = 0
        self.rateOfAll = 0
        self.isBursty = false
        self.aloneTime = nil
        self.growsAgainAt = .zero
        self.wasRefused = false
        self.isTryingAgain = false
        self.failures = 0
        self.shrinksAgainAt = .zero
        self.losses = 0
        self.hasObservedLimit = false
        self.isBounded = false
        self.observedSince = nil
        if self.phase != .beginning || self.target > 1 { self.phase = .growing(before: self.target, rate: 0) }
    }

    /// An origin takes no more connections than these that are open, asked or receiving; later it may.
    package mutating func refused(open: Int, now: Duration) {
        guard self.isAutomatic else { return }
        self.target = max(min(open, self.target), 1)
        self.hasObservedLimit = true
        self.rateOfAll = 0
        // Several that are refused together are one lesson.
        if self.growsAgainAt <= now { self.postponeGrowth(now: now) }
        self.wasRefused = true
        self.settle(0, now: now)
    }

    private mutating func postponeGrowth(now: Duration) {
        self.growsAgainAt = now + Self.patience * (1 << min(self.failures, 5))
        self.failures += 1
    }

    private mutating func settle(_ rate: Double, now: Duration) {
        self.phase = .steady(Steadiness(rate: rate, since: now, lowest: rate, highest: rate))
        self.observedSince = nil
    }

    // MARK: Observing

    /// The first connection's response has begun. On a long way several are tried at once, for there the first round trips bring
    /// next to nothing that could be judged.
    package mutating func begin(requestCost: Double, now: Duration) {
        guard self.isAutomatic, self.phase == .beginning else { return }
        if let known {
            self.target = min(max(known, 1), self.most)
            self.grewAt = now
            // Things may have become better since: then that is found out, as where more were refused.
            self.growsAgainAt = now + Self.patience
            self.wasRefused = true
            self.settle(0, now: now)
        } else if requestCost >= Self.longRequest {
            self.grow(from: 0, to: Self.firstTarget(requestCost: requestCost), now: now)
        } else {
            self.observedSince = now
            self.countAtStart = 0
        }
    }

    /// One more connection receives: if they are as many as are to be judged, they are from now on.
    package mutating func joined(_ seen: Observation, now: Duration) {
        guard self.isAutomatic, self.observedSince == nil, self.isComparable(seen) else { return }
        self.observedSince = now
        self.countAtStart = seen.bytes
    }

    /// Notes at a tick what has come, and over how many connections.
    package mutating func observe(_ seen: Observation, now: Duration) {
        guard self.isAutomatic else { return }
        guard self.isComparable(seen), let since = self.observedSince else {
            self.observedSince = self.isComparable(seen) ? now : nil
            self.countAtStart = seen.bytes
            if self.observedSince == nil { self.takeWhatCame(seen, now: now) }
            return
        }
        let elapsed = (now - since).inSeconds
        guard elapsed >= Self.spanMinimum else { return }
        let rate = Double(seen.bytes - self.countAtStart) / elapsed
        if self.phase == .beginning {
            // As soon as it is known to take a while.
            guard rate > 0, Double(seen.bytesMissing) / rate > self.window(seen) else { return }
            self.rateOfOneBest = rate
            (self.aloneTime, self.aloneBytes) = (now - since, seen.bytes - self.countAtStart)
            self.grow(from: rate, to: Self.firstTarget(requestCost: seen.requestCost), now: now)
            return
        }
        guard elapsed >= self.window(seen) else { return }
        if case .growing(1, _) = self.phase, let aloneTime, seen.newcomer == nil, elapsed < 2 * aloneTime.inSeconds {
            return
        }
        self.rateOfOneBest = max(self.rateOfOneBest, rate / Double(max(seen.receiving, self.target)))
        self.observedSince = now
        self.countAtStart = seen.bytes
        self.judge(rate, seen, now: now)
    }

    /// Whether as many connections receive as are to be judged, or nearly: where packets are lost one of them may be seconds in coming.
    private func isComparable(_ seen: Observation) -> Bool {
        let margin = self.target / 4
        if case .shrinking = self.phase, seen.receiving > self.target + margin { return false }
        return seen.receiving >= self.target - margin
    }

    /// Does with those that are there where more were to come: the limits of the group, other files or the origin leave no more.
    private mutating func takeWhatCame(_ seen: Observation, now: Duration) {
        switch self.phase {
        case .growing: break
        // What paid before is begun with, and may be more than there is now.
        case .steady(let kept) where kept.rate == 0: break
        case .beginning, .steady, .shrinking: return
        }
        guard seen.receiving > 0, now - self.grewAt > Self.comingMaximum else { return }
        // A last one alone may still be helped.
        self.target = min(self.target, max(seen.receiving, 2))
        self.most = self.target
        self.isBounded = true
    }

    /// How many seconds one number is observed.
    private func window(_ seen: Observation) -> Double {
        // The first ones are soon seen to be more than one was; before a router's queue is full is the time for more.
        if case .growing(1, _) = self.phase { return Self.firstObservation.inSeconds }
        return max(Self.observationMinimum.inSeconds, min(2 * seen.requestCost, 1))
    }

    // MARK: Judging

    private mutating func judge(_ rate: Double, _ seen: Observation, now: Duration) {
        switch self.phase {
        case .beginning: break
        case .growing(let before, let rateBefore):
            self.hasObservedLimit = rateBefore > 0
            // Who brings as much as the first one did at the same age is not held up by the others, however it comes.
            let isUnhindered =
                before == 1 && seen.newcomer.map { $0 >= Self.unhinderedMinimum * Double(self.aloneBytes) } ?? false
            // Of a path that is on its way up by itself the rate would be taken for granted.
            let isLinear =
                rateBefore > 0 && !self.isTryingAgain
                && rate >= Self.linearMinimum * rateBefore * Double(self.target) / Double(before)
            if isUnhindered, rate < Self.burstRate * rateBefore * Double(self.target) / Double(before) {
                self.isBursty = true
            }
            guard isUnhindered || rate >= rateBefore * Self.gainMinimum else {
                if self.isTryingAgain { self.postponeGrowth(now: now) }
                return self.settle(rate, now: now)
            }
            guard self.target < self.most else { return self.settle(rate, now: now) }
            self.grow(from: rate, to: isLinear || isUnhindered ? self.most : 2 * self.target, now: now)
        case .shrinking(let before, let rateBefore):
            let given = 1 - Double(self.target) / Double(before)
            if rate < rateBefore * (1 - Self.helpMinimum * given) || rate < self.rateOfAll * Self.lossMaximum {
                // Then one brings less than it was seen to bring.
                self.rateOfOneBest = rateBefore / Double(before)
                self.target = before
                self.rateOfAll = 0
                self.shrinksAgainAt = now + Self.patience * (1 << min(self.losses, 5))
                self.losses += 1
            }
            self.settle(rate, now: now)
        case .steady(var kept):
            kept.lowCount = rate < kept.rate * Self.fallMinimum ? kept.lowCount + 1 : 0
            let isWorthMore = kept.lowCount >= Self.lowCountMax || self.wasRefused
            if isWorthMore, now >= self.growsAgainAt, self.target < self.most {
                self.wasRefused = false
                self.isTryingAgain = true
                return self.grow(from: rate, to: 2 * self.target, now: now)
            }
            kept.rate = kept.rate == 0 ? rate : kept.lowCount > 0 ? kept.rate : 0.7 * kept.rate + 0.3 * rate
            kept.lowest = min(kept.lowest == 0 ? rate : kept.lowest, rate)
            kept.highest = max(kept.highest, rate)
            if kept.highest > kept.lowest * Self.spreadMaximum {
                (kept.lowest, kept.highest, kept.since) = (rate, rate, now)
            }
            self.phase = .steady(kept)
            if now - kept.since >= Self.steadiness, now >= self.shrinksAgainAt { self.shrink(from: rate) }
        }
    }

    private mutating func grow(from rate: Double, to target: Int, now: Duration) {
        self.phase = .growing(before: self.target, rate: rate)
        self.rateOfAll = 0
        self.target = min(target, self.most)
        self.grewAt = now
        self.observedSince = nil
    }

    /// Tries with as many as would do if each brought as much as one was ever seen to bring.
    private mutating func shrink(from rate: Double) {
        // A tenth of a connection is none.
        let enough = max(Int((rate / max(self.rateOfOneBest, 1) + 0.9).rounded(.down)), 1)
        guard !self.isBursty, self.target - enough >= max(self.target / Self.returnMinimum, 1) else { return }
        self.rateOfAll = max(self.rateOfAll, rate)
        self.phase = .shrinking(before: self.target, rate: rate)
        self.target = enough
        self.observedSince = nil
    }
}
