/// Hedged requests: a free connection without other work requests the bytes that another connection is late with.
///
/// The late connection continues until the head of the hedge's response arrives, and only then gives up the rest of its
/// segment. Only the bytes received during that one request are fetched twice (Dean and Barroso, "The Tail at Scale",
/// 2013).
extension Fetching {
    /// Makes a hedge for the segment that gains most. Nil if none is due.
    mutating func nextHedge(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        guard self.isUndisturbed, self.mode.servesRanges, !self.awaitsProof, self.rebalancing.narrowing == nil,
            self.leases.count < self.target, self.rebalancing.hedging.isDue(now: now), !self.hasWaiting,
            let segment = self.latest(now: now), let source = self.bestSource(now: now, isOpen: isOpen)
        else { return nil }
        self.rebalancing.hedging.begin(segment.remaining)
        let lease = self.context.makeLease()
        let order = FetchOrder(
            lease: lease, source: source, segment: self.plan.reserveID(),
            request: self.request(for: segment, from: source),
            writesFrom: segment.position, limit: segment.upperBound, hedged: segment.id, mark: self.mark(of: source),
            ignoresContentDigests: self.proving.ignoresContentDigests)
        self.open(order, now: now)
        return order
    }

    /// The segment for which a new request saves the most time.
    private func latest(now: Duration) -> Segment? {
        let candidates = self.leases.filter { self.mayBeHedged($0, now: now) }.compactMap { lease in
            // One byte may wait for trailers with the digest of its response, which a hedge would cut off.
            self.plan[lease.order.segment].flatMap { $0.remaining > 1 ? (lease: lease, segment: $0) : nil }
        }
        return self.rebalancing.hedging.latest(
            among: candidates, leases: self.leases, path: self.traffic.path, completeLength: self.plan.completeLength,
            now: now)
    }

    private func mayBeHedged(_ lease: Lease, now: Duration) -> Bool {
        // A hedge that took over is hedged only after progress. Otherwise, if bodies start late, hedges would replace
        // each other forever.
        let hasHadItsTime = lease.order.hedged == nil || lease.hasProgressed
        return !lease.order.isSample && lease.phase != .ending && lease.yieldsBy == nil && hasHadItsTime
            && !self.leases.contains { $0.order.hedged == lease.order.segment && $0.isWaitingHedge }
            && lease.heldAt.map { now - $0 >= ThroughputMeter.window } ?? true
    }

    /// Handles the head of a hedge's response. If the other connection is still late, the hedge takes over.
    mutating func hedgeResponded(_ index: Int, _ response: RangeResponse, now: Duration) -> [DownloadAction] {
        let lease = self.leases[index]
        guard lease.phase == .requested, self.withdrawals.isEmpty, self.rebalancing.narrowing == nil,
            !self.isSingleStream,
            let segment = lease.order.hedged.flatMap({ self.plan[$0] }), !segment.isComplete,
            segment.position >= lease.order.writesFrom
        else { return self.end(index) }
        if let actions = self.meet(lease, response, now: now) { return actions + self.end(index) }
        guard case .partial(let range, _) = response, range.upperBound >= segment.upperBound else {
            // Other answers are handled when unleased bytes are requested.
            self.rebalancing.hedging.postpone(now: now)
            return self.end(index)
        }
        self.leases[index].responseEnd = range.upperBound
        guard let late = segment.lease.flatMap({ self.lease($0) }) else {
            return self.takeOver(lease.id, from: segment.position, now: now)
        }
        // A connection still without a head is behind the hedge, however soon its head arrives.
        guard
            late.phase == .requested
                || Hedging.isLate(late, segment.remaining, leases: self.leases, path: self.traffic.path, now: now)
        else {
            self.rebalancing.hedging.postpone(now: now)
            return self.end(index)
        }
        self.rebalancing.narrowing = .takeover(by: lease.id)
        return [.narrow(late.id, to: segment.position)]
    }

    /// Takes over a segment from `offset` on. The late connection, if it still exists, writes nothing from there.
    mutating func takeOver(_ id: LeaseID, from offset: Int64, now: Duration) -> [DownloadAction] {
        guard let index = self.leases.firstIndex(where: { $0.id == id }) else { return [] }
        let order = self.leases[index].order
        guard let hedged = order.hedged, let segment = self.plan[hedged],
            self.plan.cede(hedged, from: offset, to: order.segment)
        else { return self.end(index) }
        let end = segment.upperBound
        self.noteHead(of: self.leases[index], now: now)
        self.sources[order.source].noteAccepted(now: now, after: self.leases[index].bytesBefore)
        self.plan.assign(order.segment, to: id)
        self.rebalancing.hedging.takeOver(end - offset)
        self.leases[index].wasAccepted = true
        self.leases[index].writesFrom = offset
        self.leases[index].position = offset
        self.leases[index].beginBody(now: now)
        return (segment.lease.map { self.revoke($0, .outrun) } ?? []) + [
            .report(.segmentSplit(order.segment, offset..<end)),
            .report(.segmentOpened(order.segment, offset..<end, order.source)),
            .answer(id, .proceed(limit: end, from: offset)),
        ]
    }

    /// Revokes hedges whose segment is complete or no longer in the plan.
    mutating func endHedges() -> [DownloadAction] {
        self.leases.filter { lease in
            lease.isWaitingHedge && lease.order.hedged.flatMap { self.plan[$0] }?.isComplete ?? true
        }.flatMap { self.revoke($0.id, .outrun) }
    }
}
