/// Hedged requests: a free connection without other work requests the bytes that another connection is late with.
///
/// The late connection continues until the head of the hedge's response arrives, and only then gives up the rest of its
/// segment. Only the bytes received during that one request are fetched twice (Dean and Barroso, "The Tail at Scale",
/// 2013).
extension Fetching {
    /// At most 1/50 of the file is fetched twice. When a hedge takes over, the bytes it delivers are no longer counted.
    static let hedgeShare: Int64 = 50

    /// 16 KiB: the cost of a request in addition to its bytes. It limits the number of hedges, however small each is.
    static let requestLength: Int64 = 16 << 10

    /// Waiting must take this many times as long as a new request.
    static let hedgeGain = 1.5

    /// Two ticks, in seconds: a connection without a byte for this long may be silent.
    static let silenceMinimum = 0.2

    /// A head may take this many times as long as the fastest one.
    static let headSpread = 4.0

    /// Half a tick, in seconds: a connection that ends sooner is not taken over.
    static let takeoverMinimum = 0.05

    /// The pause after an unsuccessful hedge.
    static let hedgePause: Duration = .seconds(1)

    /// Whether a lease is a hedge that has not taken over.
    func isWaitingHedge(_ lease: Lease) -> Bool { lease.order.hedged != nil && !lease.wasAccepted }

    /// Makes a hedge for the segment that gains most. Nil if none is due.
    mutating func nextHedge(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        guard self.isUndisturbed, self.mode.servesRanges, !self.awaitsProof, self.narrowing == nil,
            self.leases.count < self.target, now >= self.hedgeAt, !self.hasWaiting,
            let segment = self.latest(now: now), let source = self.bestSource(now: now, isOpen: isOpen)
        else { return nil }
        self.hedgedLength += segment.remaining + Self.requestLength
        let lease = LeaseID(self.leaseNext)
        self.leaseNext += 1
        let order = FetchOrder(
            lease: lease, source: source, segment: self.plan.reserveID(),
            request: self.request(for: segment, from: source),
            writesFrom: segment.position, limit: segment.upperBound, hedged: segment.id, mark: self.mark(of: source))
        self.leases.append(Lease(order: order, now: now))
        return order
    }

    /// The segment for which a new request saves the most time.
    private func latest(now: Duration) -> Segment? {
        let budget = (self.plan.completeLength ?? 0) / Self.hedgeShare - self.hedgedLength
        var latest: (segment: Segment, saved: Double)?
        for lease in self.leases where self.mayBeHedged(lease, now: now) {
            guard let segment = self.plan[lease.order.segment], !segment.isComplete,
                segment.remaining + Self.requestLength <= budget,
                let left = self.timeLeft(lease, segment, now: now), let anew = self.timeAnew(segment),
                left > max(SegmentSplitter.timeLeftMinimum, self.path.requestCost), left > Self.hedgeGain * anew,
                left - anew > latest?.saved ?? 0
            else { continue }
            latest = (segment, left - anew)
        }
        return latest?.segment
    }

    private func mayBeHedged(_ lease: Lease, now: Duration) -> Bool {
        // A hedge that took over is hedged only after progress. Otherwise, if bodies start late, hedges would replace
        // each other forever.
        let hasHadItsTime = lease.order.hedged == nil || lease.hasProgressed
        return !lease.order.isSample && lease.phase != .ending && lease.yieldsBy == nil && hasHadItsTime
            && !self.leases.contains { $0.order.hedged == lease.order.segment && self.isWaitingHedge($0) }
            && lease.heldAt.map { now - $0 >= ThroughputMeter.window } ?? true
    }

    /// Seconds until a lease ends. A silent lease is assumed to stay silent for as long again.
    private func timeLeft(_ lease: Lease, _ segment: Segment, now: Duration) -> Double? {
        let isAsked = lease.phase == .requested
        let silence = (now - (isAsked ? lease.startedAt : lease.progressAt)).inSeconds
        let patience = max(Self.silenceMinimum, (isAsked ? Self.headSpread : 2) * self.path.requestCost)
        // A connection without bytes is silent, not slow. A new connection will become faster.
        let isCold = self.path.isCold(lease, costs: Self.headSpread, now: now)
        let rate = isAsked || isCold ? nil : lease.meter.rate.flatMap { $0 > 0 ? $0 : nil }
        let moving = rate.map { Double(segment.remaining) / $0 }
        return silence > patience ? max(silence, moving ?? 0) : moving
    }

    /// Seconds that a new request for the rest of a segment would take. Absent until a connection has shown its speed.
    private func timeAnew(_ segment: Segment) -> Double? {
        let rates = self.path.rates(of: self.leases).filter { $0 > 0 }
        return SegmentSplitter.middle(rates).map { self.path.requestCost + Double(segment.remaining) / $0 }
    }

    /// Handles the head of a hedge's response. If the other connection is still late, the hedge takes over.
    mutating func hedgeResponded(_ index: Int, _ response: RangeResponse, now: Duration) -> [DownloadAction] {
        let lease = self.leases[index]
        guard lease.phase == .requested, !self.isWithdrawing, self.narrowing == nil, !self.isSingleStream,
            let segment = lease.order.hedged.flatMap({ self.plan[$0] }), !segment.isComplete,
            segment.position >= lease.order.writesFrom
        else { return self.end(index) }
        if let actions = self.meet(lease, response, now: now) { return actions + self.end(index) }
        guard case .partial(let range, _) = response, range.upperBound >= segment.upperBound else {
            // Other answers are handled when unleased bytes are requested.
            self.hedgeAt = now + Self.hedgePause
            return self.end(index)
        }
        self.leases[index].responseEnd = range.upperBound
        guard let late = segment.lease.flatMap({ self.lease($0) }) else {
            return self.takeOver(lease.id, from: segment.position, now: now)
        }
        // A connection still without a head is behind the hedge, however soon its head arrives.
        guard late.phase == .requested || self.isLate(late, segment, now: now) else {
            self.hedgeAt = now + Self.hedgePause
            return self.end(index)
        }
        self.narrowing = .takeover(by: lease.id)
        return [.narrow(late.id, to: segment.position)]
    }

    private func isLate(_ lease: Lease, _ segment: Segment, now: Duration) -> Bool {
        guard lease.phase != .ending, let left = self.timeLeft(lease, segment, now: now),
            let anew = self.timeAnew(segment)
        else { return false }
        return left > max(anew - self.path.requestCost, Self.takeoverMinimum)
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
        self.sources[order.source].noteAccepted()
        self.plan.assign(order.segment, to: id)
        self.hedgedLength -= end - offset
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
            self.isWaitingHedge(lease) && lease.order.hedged.flatMap { self.plan[$0] }?.isComplete ?? true
        }.flatMap { self.revoke($0.id, .outrun) }
    }
}
