/// Finds how many connections one file deserves.
///
/// A fixed number is exact. Otherwise some are tried as soon as there is enough to fetch for that, and the number doubles while doubling
/// pays. What it did not pay for is given back once the rate is steady, and where the rate falls it is tried again: a path that loses
/// packets is fast at first, whatever the number.
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

        package init(bytes: Int64, receiving: Int, bytesMissing: Int64 = .max, requestCost: Double = 0) {
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
        /// The number brings `rate` and has since then.
        case steady(rate: Double, since: Duration)
    }

    /// Doubling must raise the rate by this factor to be followed by another doubling.
    package static let gainMinimum = 1.15

    /// Giving connections back may cost so much of the rate.
    package static let lossMaximum = 0.9

    /// A rate below this part of what it was is another one.
    package static let fallMinimum = 0.75

    /// One number is observed so long at the least; longer where a request's first byte takes long, so that a rate can show.
    package static let observationMinimum: Duration = .milliseconds(300)

    /// How long an origin that refused more connections is not asked for more, the first time.
    package static let refusalPatience: Duration = .seconds(10)

    /// A rate that lasts so long will last.
    package static let steadiness: Duration = .seconds(2)

    /// How many are tried first: more on a longer path, where each takes longer to be fast and one lost packet costs it more; and where
    /// those that are begun once the path is full lose a second to a lost handshake.
    ///
    /// - Parameter requestCost: seconds from asking to the first byte.
    package static func firstTarget(requestCost: Double) -> Int {
        switch requestCost {
        case ..<0.02: 4
        case ..<0.06: 8
        case ..<0.15: 16
        default: 32
        }
    }

    /// Beyond this more connections annoy origins sooner than they help: it takes a path of 80 ms that loses every thousandth
    /// packet to need so many for 200 Mbit/s.
    package static let automaticMaximum = 32

    package private(set) var target: Int
    private var isAutomatic: Bool
    private var phase = Phase.beginning
    /// The most that one of any number of connections was seen to bring.
    private var rateOfOneBest = 0.0
    /// Whether it is not known yet what fewer bring.
    private var mayShrink = true
    /// An origin took no more than there are, so often, and is asked for more at this time again.
    private var refusals = 0
    private var growsAgainAt: Duration?
    /// Whether growing was tried because the rate fell: what does not help then is given back at once.
    private var isTryingAgain = false
    private var observedSince: Duration?
    private var countAtStart: Int64 = 0

    package init(_ segments: DownloadSettings.Segments) {
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

    /// Takes another wish of the user. Where the number is to be found, it is looked for from the present one.
    package mutating func update(_ segments: DownloadSettings.Segments) {
        switch segments {
        case .automatic:
            self.isAutomatic = true
            self.reopen()
        case .exactly(let count):
            precondition(count > 0, "a file needs a connection")
            self.target = count
            self.isAutomatic = false
        }
    }

    /// What more connections pay is to be found out once more, for what limited them has changed.
    package mutating func reopen() {
        self.phase = .growing(before: self.target, rate: 0)
        self.growsAgainAt = nil
        self.mayShrink = true
        self.isTryingAgain = false
        self.rateOfOneBest = 0
        self.observedSince = nil
    }

    /// An origin takes no more connections than these; later it may.
    package mutating func refused(receiving: Int, now: Duration) {
        guard self.isAutomatic else { return }
        self.target = max(min(receiving, self.target), 1)
        if self.growsAgainAt ?? now <= now {
            self.growsAgainAt = now + Self.refusalPatience * (1 << min(self.refusals, 5))
            self.refusals += 1
        }
        self.settle(0, now: now)
    }

    private mutating func settle(_ rate: Double, now: Duration) {
        self.phase = .steady(rate: rate, since: now)
        self.isTryingAgain = false
        self.observedSince = nil
    }

    /// Notes at a tick what has come, and over how many connections.
    package mutating func observe(_ seen: Observation, now: Duration) {
        guard self.isAutomatic, self.isComparable(seen), let since = self.observedSince else {
            self.observedSince = self.isComparable(seen) ? now : nil
            self.countAtStart = seen.bytes
            return
        }
        let elapsed = (now - since).inSeconds
        guard elapsed > 0 else { return }
        let rate = Double(seen.bytes - self.countAtStart) / elapsed
        if self.phase == .beginning {
            // As soon as it is known to take a while.
            guard rate > 0, Double(seen.bytesMissing) / rate > self.window(seen) else { return }
            self.rateOfOneBest = rate
            self.grow(from: rate, to: Self.firstTarget(requestCost: seen.requestCost))
            return
        }
        guard elapsed >= self.window(seen) else { return }
        self.rateOfOneBest = max(self.rateOfOneBest, rate / Double(self.target))
        self.observedSince = now
        self.countAtStart = seen.bytes
        self.judge(rate, now: now)
    }

    /// Whether as many connections receive as are to be judged, or nearly: where packets are lost one of them may be seconds in coming.
    private func isComparable(_ seen: Observation) -> Bool {
        if case .shrinking = self.phase { return seen.receiving == self.target }
        return seen.receiving >= self.target - self.target / 4
    }

    /// How many seconds one number is observed.
    private func window(_ seen: Observation) -> Double {
        max(Self.observationMinimum.inSeconds, min(2 * seen.requestCost, 1))
    }

    private mutating func judge(_ rate: Double, now: Duration) {
        switch self.phase {
        case .beginning: break
        case .growing(let before, let rateBefore):
            if rate >= rateBefore * Self.gainMinimum, self.target < Self.automaticMaximum {
                self.grow(from: rate)
            } else {
                if rate < rateBefore * Self.gainMinimum, self.isTryingAgain { self.target = before }
                self.settle(rate, now: now)
            }
        case .shrinking(let before, let rateBefore):
            if rate < rateBefore * Self.lossMaximum { self.target = before }
            self.settle(rate, now: now)
        case .steady(let rateThen, let since):
            let hasFallen = self.growsAgainAt == nil && rate < rateThen * Self.fallMinimum
            if hasFallen || self.growsAgainAt.map({ $0 <= now }) == true, self.target < Self.automaticMaximum {
                self.growsAgainAt = nil
                self.isTryingAgain = true
                self.rateOfOneBest = rate / Double(self.target)
                self.grow(from: rate)
            } else if rate > rateThen {
                self.phase = .steady(rate: rate, since: since)
            } else if self.mayShrink, now - since >= Self.steadiness {
                self.shrink(from: rate)
            }
        }
    }

    private mutating func grow(from rate: Double, to target: Int? = nil) {
        let before = self.target
        self.target = min(target ?? 2 * before, Self.automaticMaximum)
        self.phase = .growing(before: before, rate: rate)
        self.observedSince = nil
    }

    /// Tries with as many as would do if each brought as much as one was ever seen to bring.
    private mutating func shrink(from rate: Double) {
        self.mayShrink = false
        let enough = rate / max(self.rateOfOneBest, 1)
        // A thousandth less than a whole connection is none: rates are not known as finely as that.
        guard enough + 0.999 < Double(self.target) else { return }
        self.phase = .shrinking(before: self.target, rate: rate)
        self.target = max(Int((enough + 0.999).rounded(.down)), 1)
        self.observedSince = nil
    }
}
