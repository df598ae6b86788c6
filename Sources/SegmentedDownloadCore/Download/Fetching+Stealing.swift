/// Work that free connections take from others, and connections that are replaced because they are slow.
extension Fetching {
    /// The planner for the current speeds.
    func planner(now: Duration) -> SegmentPlanner {
        let settled = self.leases.filter {
            $0.phase == .receiving && !$0.order.isSample && !self.traffic.path.isCold($0, now: now)
        }
        return WorkStealing.planner(
            self.settings, rates: settled.compactMap(\.meter.rate), requestCost: self.traffic.path.requestCost)
    }

    /// Takes work for a free connection from the lease with the most time left, if no segment is waiting.
    mutating func steal(now: Duration) -> [DownloadAction] {
        guard self.outcome == nil, !self.isSingleStream, !self.mode.hasLostRanges, self.rebalancing.narrowing == nil,
            self.rebalancing.stealing.isDue(now: now), self.leases.count < self.target, !self.hasWaiting
        else { return [] }
        let candidates = self.leases.filter { $0.phase == .receiving && !$0.order.isSample }.map { lease in
            let segment = self.plan[lease.order.segment]
            return SegmentSplitter.Candidate(
                lease: lease.id, remaining: lease.position..<max(segment?.upperBound ?? lease.position, lease.position),
                rate: self.traffic.path.isCold(lease, now: now) ? nil : lease.meter.rate
            )
        }
        let splitter = WorkStealing.splitter(
            self.settings, planner: self.planner(now: now), completeLength: self.plan.completeLength)
        let proposal = self.rebalancing.stealing.proposal(
            among: candidates, splitter: splitter, path: self.traffic.path, free: self.target - self.leases.count,
            now: now)
        switch proposal {
        case .none: return []
        case .split(let victim, let offset, let pieces):
            self.rebalancing.narrowing = .split(into: pieces)
            return [.narrow(victim, to: offset)]
        case .replace(let victim):
            return self.revoke(victim, .tooSlow)
        }
    }

    /// The lease will write nothing from `limit` on. The bytes after that become new segments.
    mutating func narrowed(_ id: LeaseID, to limit: Int64, now: Duration) -> [DownloadAction] {
        let narrowing = self.rebalancing.narrowing
        self.rebalancing.narrowing = nil
        switch narrowing {
        case .takeover(let heir): return self.takeOver(heir, from: limit, now: now)
        case .split(let pieces): return self.split(id, at: limit, into: pieces, now: now)
        case nil: return self.split(id, at: limit, into: 1, now: now)
        }
    }

    /// Divides the segment of a lease that writes nothing from `limit` on.
    private mutating func split(
        _ id: LeaseID, at limit: Int64, into pieces: Int, now: Duration
    ) -> [DownloadAction] {
        guard let lease = self.lease(id), let segment = self.plan[lease.order.segment], limit < segment.upperBound,
            let back = self.plan.split(segment.id, at: limit)
        else {
            self.rebalancing.stealing.postpone(now: now)
            return []
        }
        if let rest = self.plan[back] {
            self.planner(now: now).cut(rest, of: &self.plan, into: pieces)
        }
        return self.plan.segments.filter { $0.lowerBound >= limit && $0.upperBound <= segment.upperBound }
            .map { .report(.segmentSplit($0.id, $0.lowerBound..<$0.upperBound)) }
    }

    /// Replaces the slowest connection if it is much slower than the others and has much left.
    mutating func replaceLaggard(now: Duration) -> [DownloadAction] {
        guard self.mode.servesRanges else { return [] }
        let running = self.leases.filter { $0.phase == .receiving && !$0.order.isSample }
        let laggard = self.rebalancing.stealing.laggard(
            among: running, stallTimeout: self.settings.stallTimeout, now: now
        ) {
            self.plan[$0.order.segment]?.remaining
        }
        guard let laggard else { return [] }
        self.rebalancing.stealing.noteReplacement(now: now)
        return self.revoke(laggard, .tooSlow)
    }
}
