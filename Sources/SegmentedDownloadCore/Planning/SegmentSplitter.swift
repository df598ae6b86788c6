/// Decides from whom a free connection takes work when every segment is taken.
///
/// The victim is the connection with the most *time* left, and the cut is in proportion to the speeds, so that both ends
/// finish together. A victim too slow to be left with a useful piece gives up all it has.
package struct SegmentSplitter: Hashable, Sendable {
    /// A connection that might give work away.
    package struct Candidate: Hashable, Sendable {
        package let lease: LeaseID
        /// What it has still to fetch.
        package let remaining: Range<Int64>
        /// Bytes per second, absent while unknown.
        package let rate: Double?

        package init(lease: LeaseID, remaining: Range<Int64>, rate: Double?) {
            self.lease = lease
            self.remaining = remaining
            self.rate = rate
        }

        var length: Double { Double(self.remaining.upperBound - self.remaining.lowerBound) }
    }

    package enum Proposal: Hashable, Sendable {
        /// The victim keeps what lies before the offset; the rest is for so many.
        case split(LeaseID, at: Int64, into: Int = 1)
        /// The victim's connection is given up and its remainder fetched anew.
        case replace(LeaseID)
    }

    /// Less time left than this is not worth a request: a rate is not known finer than that.
    package static let timeLeftMinimum = 0.1

    /// Nor is less than so many times what a request costs: what is on its way to a victim that hangs up comes in vain.
    package static let costsMinimum = 3.0

    /// A slow remainder is fetched anew only if that is this many times faster than waiting.
    package static let replacementGain = 3.0

    package let planner: SegmentPlanner
    /// The least that is taken from a connection whose speed is known, in bytes.
    package let stealLengthMinimum: Int64

    /// - Parameter stealLengthMinimum: absent, the planner's least length.
    package init(planner: SegmentPlanner, stealLengthMinimum: Int64? = nil) {
        self.planner = planner
        self.stealLengthMinimum = min(stealLengthMinimum ?? .max, planner.splitLengthMinimum)
    }

    /// The best proposal for a free connection, or none where waiting is as good.
    ///
    /// - Parameters:
    ///   - ratesBefore: of connections that are done, in bytes per second: the last one at work has nobody else to be
    ///     compared with.
    ///   - requestCost: seconds from asking to the first byte, as measured.
    ///   - free: how many free connections there are. They share the victims by the time that those have left.
    ///   - mayReplace: whether a connection may be given up now; else the next victim is looked at.
    package func proposal(
        among candidates: [Candidate], ratesBefore: [Double] = [], requestCost: Double, free: Int = 1,
        mayReplace: Bool = true
    ) -> Proposal? {
        // A new connection is expected to be as good as the better half of those at work.
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
            if let (offset, pieces) = self.cut(victim, expected: expected, takers: takers) {
                return .split(victim.lease, at: offset, into: pieces)
            }
            if mayReplace, let expectedAnew, victim.rate != nil,
                left > Self.replacementGain * (requestCost + victim.length / expectedAnew)
            {
                return .replace(victim.lease)
            }
        }
        return nil
    }

    /// The middle one, the faster of two; absent of none.
    static func middle(_ rates: [Double]) -> Double? {
        rates.isEmpty ? nil : rates.sorted()[rates.count / 2]
    }

    private func cut(_ victim: Candidate, expected: Double?, takers: Double) -> (offset: Int64, pieces: Int)? {
        // Of one whose speed is not known it is not known either whether so little pays.
        let minimum = victim.rate == nil ? self.planner.splitLengthMinimum : self.stealLengthMinimum
        let length = victim.remaining.upperBound - victim.remaining.lowerBound
        guard length / 2 >= minimum else { return nil }
        // Several takers have pieces that the planner would cut; a rest too small for that is one's.
        let takers = min(takers, max((Double(length) / Double(self.planner.splitLengthMinimum)).rounded(.down) - 1, 1))
        let own = victim.rate ?? expected ?? 1
        let share = own / (own + takers * max(expected ?? own, 1))
        // A share that rounds to one of a length that rounds up would be more than there is.
        let kept = share < 1 ? Int64(Double(length) * share) : length
        // Far too slow to keep even the smallest piece: better replaced than split.
        if kept < minimum, let expected, own * Self.replacementGain * 2 < expected { return nil }
        let offset = victim.remaining.lowerBound + min(max(kept, minimum), length - minimum)
        let aligned = self.planner.aligned(offset, above: victim.remaining.lowerBound)
        return (victim.remaining.upperBound - aligned >= minimum ? aligned : offset, Int(takers))
    }
}
