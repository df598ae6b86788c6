/// The phase in which the plan is known and leases fetch its segments.
///
/// It connects values that decide about one thing each: ``WorkStealing``, ``Hedging``, ``Audits``, ``Confirmation``,
/// ``Disputes`` and ``Withdrawals``. The extensions give them the leases, the plan and the sources, and carry out what
/// they decide.
struct Fetching: Hashable, Sendable {
    /// The reason why no more leases are given out.
    enum Outcome: Hashable {
        case complete
        case failed(DownloadError)
        case changed(String)
        /// The URL leads to another resource than before.
        case moved
        /// The partial file of an earlier run belongs to another file. The clause says how it differs.
        case otherFile(String)
    }

    var context: DownloadContext
    var mode: Mode
    /// The reason why no more leases are given out.
    var outcome: Outcome?
    var plan: SegmentPlan
    /// The window of a consumer that takes the bytes in order, absent without one.
    var window: ReadingWindow?
    var leases: [Lease] = []
    var traffic: Traffic
    var rebalancing: Rebalancing
    var proving: Proving
    var comparisons = Comparisons()
    var withdrawals = Withdrawals()

    /// - Parameters:
    ///   - overlap: The number of bytes before a resumed segment that are requested again and compared.
    ///   - isElsewhere: Whether the bytes on disk came from another source than the one that answered.
    init(
        _ context: DownloadContext, plan: SegmentPlan, isSegmented: Bool, overlap: Int64,
        window: ReadingWindow? = nil, hasDigest: Bool = false, isElsewhere: Bool = false, now: Duration
    ) {
        self.context = context
        self.window = window
        self.plan = plan
        self.mode = isSegmented ? .segmented(rangeRefusals: 0) : .stream
        let settings = context.settings
        self.traffic = Traffic(
            ConcurrencyController(
                isSegmented ? settings.segments : .exactly(1), known: settings.connectionsKnown), now: now)
        self.rebalancing = Rebalancing(stealing: WorkStealing(beganAt: now))
        // Without kept bytes there is nothing to compare.
        let isAwaited = overlap > 0 && plan.bytesDone > 0
        self.proving = Proving(
            proof: isAwaited ? .awaited : .unneeded, overlap: overlap,
            provenGroups: isAwaited && isSegmented ? context.sources.earlier.count : 0,
            hasDigest: hasDigest || !settings.digests.isEmpty, owesRecord: isElsewhere)
        if isAwaited, isSegmented { self.comparisons.audits.add(self.proofs()) }
        self.finishIfComplete()
    }

    var settings: DownloadSettings { self.context.settings }

    var sources: SourceTable {
        get { self.context.sources }
        _modify { yield &self.context.sources }
    }

    /// The resource, as the reference defines it.
    var resource: RemoteResource {
        self.sources[self.sources.reference].resource ?? RemoteResource(completeLength: self.plan.completeLength)
    }

    var target: Int { self.isSingleStream ? 1 : self.traffic.controller.target }
    var receiving: Int { self.leases.count { $0.phase == .receiving } }

    // MARK: Giving out leases

    /// Continues with the probe's lease, whose response was accepted, and divides the rest among future connections.
    mutating func adopt(_ probe: Lease, responseEnd: Int64, now: Duration) -> [DownloadAction] {
        guard self.outcome == nil, let segment = self.plan.segments.first(where: { !$0.isComplete }) else {
            return [.answer(probe.id, .stop)]
        }
        // Includes connecting, as for most later requests.
        if probe.wasAccepted {
            self.sources[probe.order.source].noteAccepted(now: probe.progressAt, after: probe.bytesBefore)
            self.traffic.path.noteHead(cost: (probe.progressAt - probe.startedAt).inSeconds)
        }
        if !self.isSingleStream {
            self.traffic.controller.begin(requestCost: self.traffic.path.pathCost, now: now)
            if self.window == nil { self.planner(now: now).divide(&self.plan, into: self.target) }
            self.cutPiece(segment.id)
        }
        self.plan.assign(segment.id, to: probe.id)
        var lease = Lease(
            order: FetchOrder(
                lease: probe.id, source: probe.order.source, segment: segment.id, request: probe.order.request,
                writesFrom: probe.order.writesFrom, limit: responseEnd, mark: probe.order.mark
            ),
            now: probe.startedAt
        )
        lease.wasAccepted = probe.wasAccepted
        // The time spent preparing the part file does not count as a stall.
        lease.beginBody(now: now)
        lease.responseEnd = responseEnd
        self.leases.append(lease)
        let limit = min(self.plan[segment.id]?.upperBound ?? responseEnd, responseEnd)
        return [
            .report(.segmentOpened(segment.id, segment.position..<limit, probe.order.source)),
            .answer(probe.id, .proceed(limit: limit)),
        ]
    }

    /// Records when an accepted head arrived.
    mutating func noteHead(of lease: Lease, now: Duration) {
        let latest = self.sources[lease.order.source].answeredRequest
        self.sources[lease.order.source].answeredRequest = max(latest ?? .zero, lease.startedAt)
        if !self.leases.contains(where: { $0.phase == .requested && $0.id != lease.id }) { self.traffic.endSilence() }
        self.traffic.path.noteHead(cost: (now - lease.startedAt).inSeconds)
    }

    /// The next request for a free connection. Nil if none can be made now.
    ///
    /// - Parameter isOpen: Whether a connection to a host may be opened.
    mutating func nextFetch(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        guard self.isUndisturbed, self.leases.count < self.target else { return nil }
        if self.sources.hasMirrors || !self.comparisons.audits.isEmpty || self.sourceToConfirm != nil,
            !self.isSingleStream
        {
            if let sample = self.nextSample(now: now, isOpen: isOpen) { return sample }
            guard self.leases.count < self.target - self.roomForSamples(now: now) else { return nil }
        }
        if self.mode.hasLostRanges {
            guard self.leases.isEmpty else { return nil }
            self.fallBack()
        }
        // A single stream delivers everything after the first hole.
        let first = self.plan.segments.firstIndex { !$0.isComplete }
        let room = self.room
        let waiting = self.plan.segments.indices.filter { index in
            let segment = self.plan.segments[index]
            return segment.lease == nil && !segment.isComplete && segment.retryAt <= now
                && (!self.isSingleStream || index == first) && room.holds(segment)
                && (!self.awaitsProof || self.isSingleStream || self.overlapBefore(segment) > 0)
        }
        // A segment that a running response will reach is left to it, as long as there is another one.
        guard let index = waiting.first(where: { !self.isWithinReach($0) }) ?? waiting.first,
            let source = self.bestSource(now: now, isOpen: isOpen)
        else { return nil }
        let id = self.plan.segments[index].id
        self.cutPiece(id)
        guard let segment = self.plan[id] else { return nil }
        let lease = self.context.makeLease()
        let order = FetchOrder(
            lease: lease, source: source, segment: segment.id, request: self.request(for: segment, from: source),
            writesFrom: segment.position, limit: segment.upperBound, forgetsFrom: self.mode.takeForgetsFrom(),
            mark: self.mark(of: source), ignoresContentDigests: self.proving.ignoresContentDigests
        )
        self.plan.assign(segment.id, to: lease)
        self.open(order, now: now)
        return order
    }

    /// Records that a request is made.
    mutating func open(_ order: FetchOrder, now: Duration) {
        self.leases.append(
            Lease(
                order: order, now: now, bytesBefore: self.sources[order.source].exposure.bytesWritten,
                isAdditional: self.leases.contains { $0.order.source == order.source }))
    }

    func request(for segment: Segment, from source: SourceID) -> RangeRequest {
        let identity = self.identity(of: source)
        var request: RangeRequest
        if self.isSingleStream {
            request = RangeRequest(
                isRanged: false, identity: identity.resource, comparesValidator: identity.comparesValidator)
        } else {
            let overlap = segment.position == segment.lowerBound ? self.overlapBefore(segment, from: source) : 0
            request = RangeRequest(
                lowerBound: segment.position - overlap, upperBound: segment.upperBound, identity: identity.resource,
                comparesValidator: identity.comparesValidator
            )
        }
        request = request.avoidingNode(of: self.sources[source].deviations.disagreement)
        request.isAdditional = self.leases.contains { $0.order.source == source }
        request.mayGetWhole = !self.sources.hasAlternative(to: source)
        return request
    }

    /// The number of bytes on disk before a new segment that are requested again and compared.
    private func overlapBefore(_ segment: Segment, from source: SourceID = .first) -> Int64 {
        let overlap = self.sources[source].trust == .sampled ? SampleSpots.length : self.proving.overlap
        guard overlap > 0, let index = self.plan.index(of: segment.id), index > 0 else { return 0 }
        let before = self.plan.segments[index - 1]
        return before.isComplete ? min(overlap, before.upperBound - before.lowerBound) : 0
    }

    /// Whether a request can compare bytes on disk: a hole follows written bytes, or one stream delivers everything.
    var canProve: Bool {
        self.isSingleStream || self.plan.segments.contains { !$0.isComplete && self.overlapBefore($0) > 0 }
    }

    private func isWithinReach(_ index: Int) -> Bool {
        guard index > 0, let holder = self.plan.segments[index - 1].lease,
            let lease = self.leases.first(where: { $0.id == holder })
        else { return false }
        return lease.phase == .receiving && lease.responseEnd >= self.plan.segments[index].upperBound
    }
}
