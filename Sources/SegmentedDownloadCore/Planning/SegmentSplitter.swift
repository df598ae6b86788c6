/// Selects the connection from which a free connection takes work when all segments are leased.
///
/// The victim is the connection with the most *time* left. The cut is proportional to the speeds, so that both finish
/// together. A victim too slow to keep a useful segment is replaced instead.
package struct SegmentSplitter: Hashable, Sendable {
    /// A connection that may give up work.
    package struct Candidate: Hashable, Sendable {
        package let lease: LeaseID
        /// The bytes it has yet to fetch.
        package let remaining: Range<Int64>
        /// Bytes per second, absent if unknown.
        package let rate: Double?

        package init(lease: LeaseID, remaining: Range<Int64>, rate: Double?) {
            self.lease = lease
            self.remaining = remaining
            self.rate = rate
        }

        var length: Double { Double(self.remaining.upperBound - self.remaining.lowerBound) }
    }

    package enum Proposal: Hashable, Sendable {
        /// The victim keeps the bytes before the offset. The rest is cut into the given number of segments.
        case split(LeaseID, at: Int64, into: Int = 1)
        /// The victim's connection is closed and its remainder requested again.
        case replace(LeaseID)
    }

    /// A victim with less time left, in seconds, is not worth a request: rates are not known more precisely than that.
    package static let timeLeftMinimum = 0.1

    /// A victim's time left must be this many times a request's cost. The data in flight to a connection that is closed
    /// is lost.
    package static let costsMinimum = 3.0

    /// A slow remainder is requested again only if that is this many times faster than waiting.
    package static let replacementGain = 3.0

    package let planner: SegmentPlanner
    /// The smallest segment, in bytes, that is taken from a connection whose speed is known.
    package let stealLengthMinimum: Int64

    /// - Parameter stealLengthMinimum: At most the planner's minimum, which is the default.
    package init(planner: SegmentPlanner, stealLengthMinimum: Int64? = nil) {
        self.planner = planner
        self.stealLengthMinimum = min(stealLengthMinimum ?? .max, planner.splitLengthMinimum)
    }

    /// The best proposal for a free connection. Nil if waiting is as good.
    ///
    /// - Parameters:
    ///   - ratesBefore: Rates of finished connections in bytes per second. The last running connection has no other to
    ///     be compared with.
    ///   - requestCost: The measured time from a request to its first byte, in seconds.
    ///   - free: The number of free connections. Victims are shared among them in proportion to the time the victims
    ///     have left.
    ///   - mayReplace: Whether a connection may be replaced now. If not, the next victim is considered.
    package func proposal(
        among candidates: [Candidate], ratesBefore: [Double] = [], requestCost: Double, free: Int = 1,
        mayReplace: Bool = true
    ) -> Proposal? {
        // A new connection is expected to reach the upper median of the running ones.
        let rates = candidates.compactMap(\.rate).filter { $0 > 0 }
        let expected = Self.middle(rates)
        let expectedAnew = Self.middle(rates + ratesBefore)
        func timeLeft(_ candidate: Candidate) -> Double {
            candidate.length / max(candidate.rate ?? expected ?? 1, 1)
        }
        let ranked = candidates.sorted {
            (timeLeft($0), $1.lease) > (timeLeft($1), $0.lease)
        }
        let leftInAll = ranked.reduce(0) { $0 + timeLeft($1) }
        for victim in ranked {
            let left = timeLeft(victim)
            guard left > max(Self.timeLeftMinimum, Self.costsMinimum * requestCost) else { return nil }
            let takers = max((Double(free) * left / leftInAll).rounded(.up), 1)
            if let (offset, segments) = self.cut(victim, expected: expected, takers: takers) {
                return .split(victim.lease, at: offset, into: segments)
            }
            if mayReplace, let expectedAnew, victim.rate != nil,
                left > Self.replacementGain * (requestCost + victim.length / expectedAnew)
            {
                return .replace(victim.lease)
            }
        }
        return nil
    }

    /// The median; for an even count the higher of the two middle rates. Nil without rates.
    static func middle(_ rates: [Double]) -> Double? {
        rates.isEmpty ? nil : rates.sorted()[rates.count / 2]
    }

    private func cut(_ victim: Candidate, expected: Double?, takers: Double) -> (offset: Int64, segments: Int)? {
        // Without a known speed, a small segment may not be worth its request.
        let minimum = victim.rate == nil ? self.planner.splitLengthMinimum : self.stealLengthMinimum
        let length = victim.remaining.upperBound - victim.remaining.lowerBound
        guard length / 2 >= minimum else { return nil }
        // Each of several takers gets at least the planner's minimum; a remainder too small for two goes to one.
        let takers = min(takers, max((Double(length) / Double(self.planner.splitLengthMinimum)).rounded(.down) - 1, 1))
        let own = victim.rate ?? expected ?? 1
        let share = own / (own + takers * max(expected ?? own, 1))
        // With a share that rounds to 1, the product could exceed the length.
        let kept = share < 1 ? Int64(Double(length) * share) : length
        // The victim is too slow to keep even the smallest segment: replacing it is better.
        if kept < minimum, let expected, own * Self.replacementGain * 2 < expected { return nil }
        let offset = victim.remaining.lowerBound + min(max(kept, minimum), length - minimum)
        let aligned = self.planner.aligned(offset, above: victim.remaining.lowerBound)
        return (victim.remaining.upperBound - aligned >= minimum ? aligned : offset, Int(takers))
    }
}
