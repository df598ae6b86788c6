/// Asking once more for what a connection is late with, where a free connection has nothing else to do.
///
/// The late one goes on until the other has its answer, and only then gives up what it has not brought: whoever is first is taken, and
/// what is fetched twice is what came in the time of one request (Dean and Barroso, "The Tail at Scale", 2013: hedged requests).
extension Fetching {
    /// A fiftieth of the file, at the most, is fetched twice: what is asked for twice and taken over counts as far as it was there.
    static let hedgeShare: Int64 = 50

    /// 16 KiB: what a request costs beside its bytes. So they are few, however little each asks for.
    static let requestLength: Int64 = 16 << 10

    /// To wait must take this many times as long as to ask anew.
    static let hedgeGain = 1.5

    /// A connection that brings something brings it more often than this, in seconds: two ticks.
    static let silenceMinimum = 0.2

    /// A head takes up to this many times as long as the fastest one did.
    static let headSpread = 4.0

    /// One that is done in less than half a tick is left alone.
    static let takeoverMinimum = 0.05

    /// After a hedge that came to nothing.
    static let hedgePause: Duration = .seconds(1)

    /// Whether a lease waits for what another is at.
    func isWaitingHedge(_ lease: Lease) -> Bool { lease.order.hedged != nil && !lease.wasAccepted }

    /// A request for the rest of the segment that will be late most, for a connection that nothing else is to be done with.
    mutating func nextHedge(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        guard self.outcome == nil, self.revision == nil, self.mismatchingSources.isEmpty, self.withdrawals.isEmpty,
            !self.isReplacing,
            !self.isSingleStream, !self.awaitsProof, self.rangeRefusals == 0, self.narrowing == nil,
            self.takingOver == nil,
            self.leases.count < self.target, now >= self.hedgeAt,
            !self.hasWaiting,
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

    /// The segment that would be done soonest by asking for it anew, seen from when it is done otherwise.
    private func latest(now: Duration) -> Segment? {
        let budget = (self.plan.completeLength ?? 0) / Self.hedgeShare - self.hedgedLength
        var latest: (segment: Segment, saved: Double)?
        for lease in self.leases where self.mayBeHedged(lease, now: now) {
            guard let segment = self.plan[lease.order.segment], !segment.isComplete,
                segment.remaining + Self.requestLength <= budget,
                let left = self.timeLeft(lease, segment, now: now), let anew = self.timeAnew(segment),
                left > max(SegmentSplitter.timeLeftMinimum, self.requestCost), left > Self.hedgeGain * anew,
                left - anew > latest?.saved ?? 0
            else { continue }
            latest = (segment, left - anew)
        }
        return latest?.segment
    }

    private func mayBeHedged(_ lease: Lease, now: Duration) -> Bool {
        // One that has taken over is asked for again only once it has brought something: else nobody ever would, where bodies are long in coming.
        let hasHadItsTime = lease.order.hedged == nil || lease.hasProgressed
        return !lease.order.isSample && lease.phase != .ending && lease.yieldsBy == nil && hasHadItsTime
            && !self.leases.contains { $0.order.hedged == lease.order.segment && self.isWaitingHedge($0) }
            && lease.heldAt.map { now - $0 >= ThroughputMeter.window } ?? true
    }

    /// Seconds until a lease is done. One that is silent will be silent for as long again: that is all that is known of it.
    private func timeLeft(_ lease: Lease, _ segment: Segment, now: Duration) -> Double? {
        let isAsked = lease.phase == .requested
        let silence = (now - (isAsked ? lease.startedAt : lease.progressAt)).inSeconds
        let patience = max(Self.silenceMinimum, (isAsked ? Self.headSpread : 2) * self.requestCost)
        // One that brings nothing is silent, not slow; and one that has just begun will be faster.
        let isCold = self.isCold(lease, costs: Self.headSpread, now: now)
        let rate = isAsked || isCold ? nil : lease.meter.rate.flatMap { $0 > 0 ? $0 : nil }
        let moving = rate.map { Double(segment.remaining) / $0 }
        return silence > patience ? max(silence, moving ?? 0) : moving
    }

    /// Seconds that a new request for the rest of a segment would take, absent while no connection has shown how fast one is.
    private func timeAnew(_ segment: Segment) -> Double? {
        let rates = (self.leases.compactMap { $0.phase == .receiving ? $0.meter.rate : nil } + self.ratesBefore).filter
        { $0 > 0 }
        return SegmentSplitter.middle(rates).map { self.requestCost + Double(segment.remaining) / $0 }
    }

    /// The head has come for which a hedge waited: if the other connection is still late, it ends where it is.
    mutating func hedgeResponded(_ index: Int, _ response: RangeResponse, now: Duration) -> [DownloadAction] {
        let lease = self.leases[index]
        guard lease.phase == .requested, self.revision == nil, self.mismatchingSources.isEmpty,
            self.withdrawals.isEmpty,
            self.narrowing == nil, self.takingOver == nil, !self.isSingleStream,
            let segment = lease.order.hedged.flatMap({ self.plan[$0] }), !segment.isComplete,
            segment.position >= lease.order.writesFrom
        else { return self.end(index) }
        if let actions = self.meet(lease, response, now: now) { return actions + self.end(index) }
        guard case .partial(let range, _) = response, range.upperBound >= segment.upperBound else {
            // What else it may say is heard where it is asked for what nobody else is at.
            self.hedgeAt = now + Self.hedgePause
            return self.end(index)
        }
        self.leases[index].responseEnd = range.upperBound
        guard let late = segment.lease.flatMap({ self.lease($0) }) else {
            return self.takeOver(lease.id, from: segment.position, now: now)
        }
        // One that was asked for in the meantime is behind this one, however soon it will answer.
        guard late.phase == .requested || self.isLate(late, segment, now: now) else {
            self.hedgeAt = now + Self.hedgePause
            return self.end(index)
        }
        self.takingOver = lease.id
        return [.narrow(late.id, to: segment.position)]
    }

    private func isLate(_ lease: Lease, _ segment: Segment, now: Duration) -> Bool {
        guard lease.phase != .ending, let left = self.timeLeft(lease, segment, now: now),
            let anew = self.timeAnew(segment)
        else { return false }
        return left > max(anew - self.requestCost, Self.takeoverMinimum)
    }

    /// The late connection, if there still is one, writes nothing at or behind `offset`: from there on the other one does.
    mutating func takeOver(_ id: LeaseID, from offset: Int64, now: Duration) -> [DownloadAction] {
        guard let index = self.leases.firstIndex(where: { $0.id == id }) else { return [] }
        let order = self.leases[index].order
        guard let hedged = order.hedged, let segment = self.plan[hedged],
            self.plan.cede(hedged, from: offset, to: order.segment)
        else { return self.end(index) }
        let end = segment.upperBound
        self.noteHead(of: self.leases[index], now: now)
        self.sources[order.source].disagreement.resolve()
        self.plan.assign(order.segment, to: id)
        self.hedgedLength -= end - offset
        self.leases[index].phase = .receiving
        self.leases[index].wasAccepted = true
        self.leases[index].writesFrom = offset
        self.leases[index].position = offset
        self.leases[index].progressAt = now
        self.leases[index].meter = ThroughputMeter(start: now, count: offset)
        return (segment.lease.map { self.revoke($0, .outrun) } ?? []) + [
            .report(.segmentSplit(order.segment, offset..<end)),
            .report(.segmentOpened(order.segment, offset..<end, order.source)),
            .answer(id, .proceed(limit: end, from: offset)),
        ]
    }

    /// Hedges for what is there by now, or is nobody's any more, are not waited for.
    mutating func endHedges() -> [DownloadAction] {
        self.leases.filter { lease in
            self.isWaitingHedge(lease) && lease.order.hedged.flatMap { self.plan[$0] }?.isComplete ?? true
        }.flatMap { self.revoke($0.id, .outrun) }
    }
}
