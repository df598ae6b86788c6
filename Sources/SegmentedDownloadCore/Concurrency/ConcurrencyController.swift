/// Chooses the number of connections for one file.
///
/// A number set by the user is used as it is. Otherwise the controller starts with one connection, then tries several
/// as soon as the file is worth it. If each of them is as fast as the first, it tries the maximum at once, on a short
/// path by way of three times as many; if not, it doubles the number while that raises the rate by 15 %, on a short path
/// while connections do not share what fewer can carry. Once the rate is steady it closes connections that did not
/// raise it. If the rate falls lastingly it tries more again, because on a path that loses packets all connections are
/// fast only at first.
package struct ConcurrencyController: Hashable, Sendable {
    private enum Phase: Hashable {
        /// One connection is open. Its rate decides whether more are worth their requests.
        case beginning
        /// More connections are on trial than the number before, which reached `rate`.
        case growing(before: Int, rate: Double)
        /// Fewer connections are on trial than the number before, which reached `rate`.
        case shrinking(before: Int, rate: Double)
        /// The number is kept.
        case steady(Steadiness)
    }

    /// Measurements of a number of connections that is kept.
    private struct Steadiness: Hashable {
        /// A moving average of the rate in bytes per second.
        var rate: Double
        /// The start of the period in which all windows had similar rates.
        var since: Duration
        var lowest: Double
        var highest: Double
        /// Consecutive windows with a rate far below the average.
        var lowCount = 0
    }

    /// What the search has found. Begins anew when something that limited the rate has changed.
    private struct Search: Hashable {
        /// The most connections that are tried: ``automaticMaximum``, or fewer if no more could be opened.
        var most = ConcurrencyController.automaticMaximum
        var hasObservedLimit = false
        /// Whether another limit determined the number of connections.
        var isBounded = false
        /// The highest rate per connection observed with any number of connections.
        var rateOfOneBest = 0.0
        /// The rate before any connections were closed.
        var rateOfAll = 0.0
        /// How long the first connection was alone, and the bytes that it received in that time.
        var aloneTime: Duration?
        var aloneBytes: Int64 = 0
        /// Whether bytes arrive in bursts, as with nginx's `limit_rate`: a second's worth at once, then nothing. Momentary
        /// rates are then meaningless, so no connections are closed.
        var isBursty = false
        /// After a refusal or a trial that did not help.
        var growth = Backoff()
        var wasRefused = false
        var isTryingAgain = false
        /// After fewer were slower.
        var shrinking = Backoff()
    }

    /// When the number may be changed again.
    private struct Backoff: Hashable {
        private(set) var until: Duration = .zero
        private var count = 0

        /// Waits, twice as long each time.
        mutating func postpone(now: Duration) {
            self.until = now + ConcurrencyController.patience * (1 << min(self.count, 5))
            self.count += 1
        }

        mutating func wait(now: Duration) { self.until = now + ConcurrencyController.patience }
    }

    /// The beginning of a window, and the bytes that had arrived then.
    private struct Window: Hashable {
        let since: Duration
        let bytes: Int64
    }

    package private(set) var target: Int
    private var isAutomatic: Bool
    private let known: Int?
    private var phase = Phase.beginning
    private var search = Search()
    /// Whether the step after the first one is on trial.
    private var isSecondTrial = false
    /// When the present trial of more connections began.
    package private(set) var grewAt: Duration = .zero
    /// Absent while connections are awaited.
    private var observed: Window?

    /// - Parameter known: The number that an earlier download found, see ``limitObserved``.
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

    /// How long the first connection was alone; nil until it was joined by others.
    package var aloneTime: Duration? { self.search.aloneTime }

    /// The number of connections that paid, absent unless it was found by trial.
    package var limitObserved: Int? {
        guard self.isAutomatic, self.search.hasObservedLimit, !self.search.isBounded else { return nil }
        return switch self.phase {
        case .beginning: nil
        // The number on trial has not yet been shown to raise the rate.
        case .growing(let before, _), .shrinking(let before, _): before
        case .steady: self.target
        }
    }

    /// Applies the user's new setting. An automatic search starts from the present number.
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

    /// Repeats the search, because something that limited the rate has changed.
    package mutating func reopen() {
        self.search = Search()
        self.observed = nil
        if self.phase != .beginning || self.target > 1 { self.phase = .growing(before: self.target, rate: 0) }
    }

    /// An origin refused more connections than `open`. More are tried again later.
    package mutating func refused(open: Int, now: Duration) {
        guard self.isAutomatic else { return }
        self.target = max(min(open, self.target), 1)
        self.search.hasObservedLimit = true
        self.search.rateOfAll = 0
        // Several refusals at the same time count as one.
        if self.search.growth.until <= now { self.search.growth.postpone(now: now) }
        self.search.wasRefused = true
        self.settle(0, now: now)
    }

    private mutating func settle(_ rate: Double, now: Duration) {
        self.phase = .steady(Steadiness(rate: rate, since: now, lowest: rate, highest: rate))
        self.observed = nil
    }

    // MARK: Observing

    /// The first connection's response has begun.
    ///
    /// On a long path several connections are tried at once, because the first round trips deliver too little to be
    /// judged.
    package mutating func begin(requestCost: Double, now: Duration) {
        guard self.isAutomatic, self.phase == .beginning else { return }
        if let known {
            self.target = min(max(known, 1), self.search.most)
            self.grewAt = now
            // More may help by now; a trial follows as it does after a refusal.
            self.search.growth.wait(now: now)
            self.search.wasRefused = true
            self.settle(0, now: now)
        } else if requestCost >= Self.longRequestSeconds {
            self.grow(from: 0, to: Self.firstTarget(requestCost: requestCost), now: now)
        } else {
            self.observed = Window(since: now, bytes: 0)
        }
    }

    /// Starts a window when the last awaited connection begins to receive.
    package mutating func joined(_ seen: Observation, now: Duration) {
        guard self.isAutomatic, self.observed == nil, self.isComparable(seen) else { return }
        self.observed = Window(since: now, bytes: seen.bytes)
    }

    /// Evaluates the observation of a tick.
    package mutating func observe(_ seen: Observation, now: Duration) {
        guard self.isAutomatic else { return }
        guard self.isComparable(seen), let observed else {
            self.observed = self.isComparable(seen) ? Window(since: now, bytes: seen.bytes) : nil
            if self.observed == nil { self.takeWhatCame(seen, now: now) }
            return
        }
        let elapsed = (now - observed.since).inSeconds
        guard elapsed >= Self.spanMinimum else { return }
        let rate = Double(seen.bytes - observed.bytes) / elapsed
        if self.phase == .beginning {
            // Grows once the rest is known to take longer than a window, and long enough for others to come to help.
            guard rate > 0, Double(seen.bytesMissing) / rate > max(self.window(seen), Self.headsWorth * seen.headTime)
            else { return }
            self.search.rateOfOneBest = rate
            (self.search.aloneTime, self.search.aloneBytes) = (now - observed.since, seen.bytes - observed.bytes)
            self.grow(from: rate, to: Self.firstTarget(requestCost: seen.requestCost), now: now)
            return
        }
        guard elapsed >= self.window(seen) else { return }
        if self.isFirstTrial || self.isSecondTrial, let aloneTime = self.search.aloneTime, seen.newcomer == nil,
            elapsed < min(2 * aloneTime.inSeconds, Self.newcomerPatience)
        {
            return
        }
        self.search.rateOfOneBest = max(self.search.rateOfOneBest, rate / Double(max(seen.receiving, self.target)))
        self.observed = Window(since: now, bytes: seen.bytes)
        self.judge(rate, seen, now: now)
    }

    /// Whether about as many connections receive as the target requires. With packet loss, one may start seconds late.
    private func isComparable(_ seen: Observation) -> Bool {
        let margin = self.target / 4
        if case .shrinking = self.phase, seen.receiving > self.target + margin { return false }
        return seen.receiving >= self.target - margin
    }

    /// Lowers the target to the connections that exist, if others could not be opened: the group, other files or the
    /// origin leave no room.
    private mutating func takeWhatCame(_ seen: Observation, now: Duration) {
        switch self.phase {
        case .growing: break
        // The target was taken from an earlier download and may exceed what is allowed now.
        case .steady(let kept) where kept.rate == 0: break
        case .beginning, .steady, .shrinking: return
        }
        guard seen.receiving > 0, now - self.grewAt > max(Self.comingMaximum, .seconds(2 * seen.headTime)) else {
            return
        }
        // At least two, so that a last slow connection can be helped.
        self.target = min(self.target, max(seen.receiving, 2))
        self.search.most = self.target
        self.search.isBounded = true
    }

    /// The length of the window for one number of connections, in seconds.
    private func window(_ seen: Observation) -> Double {
        // An increase shows early over one connection and on a short path, and connections should be added before a
        // router's queue is full.
        if self.isFirstTrial { return Self.firstObservation.inSeconds }
        if case .growing = self.phase, seen.isOnShortPath { return Self.firstObservation.inSeconds }
        return max(Self.observationMinimum.inSeconds, min(2 * seen.requestCost, 1))
    }

    // MARK: Judging

    private mutating func judge(_ rate: Double, _ seen: Observation, now: Duration) {
        switch self.phase {
        case .beginning: break
        case .growing(let before, let rateBefore):
            self.search.hasObservedLimit = rateBefore > 0
            // Later connections as fast as the first one at the same age do not slow each other down, even if bytes
            // arrive in bursts.
            let isUnhindered =
                (self.isFirstTrial || self.isSecondTrial)
                && seen.newcomer.map { $0 >= Self.unhinderedMinimum * Double(self.search.aloneBytes) } ?? false
            // The rate, if each connection with a response were as fast as one of those before. A response may be late.
            let expected = rateBefore * Double(min(seen.receiving, self.target)) / Double(before)
            // While the path recovers by itself, the increase would be mistaken for a gain.
            let isLinear = rateBefore > 0 && !self.search.isTryingAgain && rate >= Self.linearMinimum * expected
            // After a lasting fall the best rate of one connection is out of date.
            let rateOfOne = max(rateBefore / Double(before), self.search.isTryingAgain ? 0 : self.search.rateOfOneBest)
            // On a longer path a connection may be slow because it lost packets, and more of them are faster.
            let isShared =
                seen.isOnShortPath && !self.isFirstTrial
                && rate < Self.sharedMaximum * rateOfOne * Double(self.target)
            if isUnhindered, rate < Self.burstRate * rateBefore * Double(self.target) / Double(before) {
                self.search.isBursty = true
            }
            guard isUnhindered || rate >= rateBefore * Self.gainMinimum else {
                if self.search.isTryingAgain { self.search.growth.postpone(now: now) }
                // Where the processor is the limit, each of them costs time.
                guard seen.isOnShortPath, rate < rateBefore * Self.keptGainMinimum else {
                    return self.settle(rate, now: now)
                }
                return self.giveBack(to: before, from: rate)
            }
            guard self.target < self.search.most, isUnhindered || !isShared else { return self.settle(rate, now: now) }
            let next = isLinear || isUnhindered ? self.search.most : 2 * self.target
            let gentle = Self.secondStep * Self.firstTarget(requestCost: seen.requestCost)
            if seen.isOnShortPath, rateBefore > 0, !self.search.isBursty, self.target < gentle {
                self.grow(from: rate, to: min(next, gentle), isSecondTrial: self.isFirstTrial, now: now)
            } else {
                self.grow(from: rate, to: next, now: now)
            }
        case .shrinking(let before, let rateBefore):
            let given = 1 - Double(self.target) / Double(before)
            if rate < rateBefore * (1 - Self.helpMinimum * given) || rate < self.search.rateOfAll * Self.lossMaximum {
                // Corrects the rate per connection, which was overestimated.
                self.search.rateOfOneBest = rateBefore / Double(before)
                self.target = before
                self.search.rateOfAll = 0
                self.search.shrinking.postpone(now: now)
            }
            self.settle(rate, now: now)
        case .steady(var kept):
            kept.lowCount = rate < kept.rate * Self.fallMinimum ? kept.lowCount + 1 : 0
            let isWorthMore = kept.lowCount >= Self.lowCountMax || self.search.wasRefused
            if isWorthMore, now >= self.search.growth.until, self.target < self.search.most {
                self.search.wasRefused = false
                self.search.isTryingAgain = true
                return self.grow(from: rate, to: 2 * self.target, now: now)
            }
            kept.rate = kept.rate == 0 ? rate : kept.lowCount > 0 ? kept.rate : 0.7 * kept.rate + 0.3 * rate
            kept.lowest = min(kept.lowest == 0 ? rate : kept.lowest, rate)
            kept.highest = max(kept.highest, rate)
            if kept.highest > kept.lowest * Self.spreadMaximum {
                (kept.lowest, kept.highest, kept.since) = (rate, rate, now)
            }
            self.phase = .steady(kept)
            if now - kept.since >= Self.steadiness, now >= self.search.shrinking.until { self.shrink(from: rate) }
        }
    }

    /// Whether the first connection has just been joined by others.
    private var isFirstTrial: Bool {
        if case .growing(1, _) = self.phase { true } else { false }
    }

    private mutating func grow(from rate: Double, to target: Int, isSecondTrial: Bool = false, now: Duration) {
        self.phase = .growing(before: self.target, rate: rate)
        self.isSecondTrial = isSecondTrial
        self.search.rateOfAll = 0
        self.target = min(target, self.search.most)
        self.grewAt = now
        self.observed = nil
    }

    /// Tries as many connections as suffice if each reaches the highest observed rate.
    private mutating func shrink(from rate: Double) {
        // A fraction below a tenth does not count as a connection.
        let enough = max(Int((rate / max(self.search.rateOfOneBest, 1) + 0.9).rounded(.down)), 1)
        guard !self.search.isBursty, self.target - enough >= max(self.target / Self.returnMinimum, 1) else { return }
        self.giveBack(to: enough, from: rate)
    }

    private mutating func giveBack(to target: Int, from rate: Double) {
        self.search.rateOfAll = max(self.search.rateOfAll, rate)
        self.phase = .shrinking(before: self.target, rate: rate)
        self.target = target
        self.observed = nil
    }
}
