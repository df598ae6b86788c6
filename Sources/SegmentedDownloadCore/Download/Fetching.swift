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

    /// An origin that serves any connection sends bytes at least this often.
    static let serviceInterval: Duration = .seconds(1)

    // What is fetched, and how.
    var settings: DownloadSettings
    var mode: Mode
    var proof: Proof
    /// The reason why no more leases are given out.
    var outcome: Outcome?
    var plan: SegmentPlan
    /// The window of a consumer that takes the bytes in order, absent without one.
    var window: ReadingWindow?
    /// The number of bytes before a resumed segment that are requested again and compared. 0 if a validator proves the
    /// resource.
    private let overlap: Int64
    var generator: SplitMix64

    // The connections, and the measurements taken from them.
    var leases: [Lease] = []
    var leaseNext: Int
    var controller: ConcurrencyController
    var path = PathStatistics()
    var speedWindow: SpeedWindow
    var bytesReceived: Int64 = 0
    /// When this phase began.
    let beganAt: Duration
    /// When any connection last received a byte; initially, when this phase began.
    var servedAt: Duration
    /// How often silent connections were replaced since all requests were last answered.
    var silences = 0
    /// The number of invalid HTTP responses.
    var malformed = 0

    // Work that moves from one connection to another.
    /// The work that a connection is asked to give up, absent if none is.
    var narrowing: Narrowing?
    var stealing: WorkStealing
    var hedging = Hedging()

    // The sources, and how they are compared.
    var sources: SourceTable
    var audits = Audits()
    var confirmation = Confirmation()
    var disputes = Disputes()
    var withdrawals = Withdrawals()
    /// The number of groups in ``SourceTable/earlier`` that were compared before anything was written.
    let provenGroups: Int
    /// Whether the complete file will be compared with a digest, which is stronger than audits.
    let hasDigest: Bool
    /// Whether the manifest still names another source than the one that answered, until that one is proven equal.
    var owesRecord = false

    init(
        settings: DownloadSettings, sources: SourceTable, plan: SegmentPlan, isSegmented: Bool, overlap: Int64,
        leaseNext: Int, generator: SplitMix64, window: ReadingWindow? = nil, hasDigest: Bool = false, now: Duration
    ) {
        self.settings = settings
        self.window = window
        self.hasDigest = hasDigest || !settings.digests.isEmpty
        self.sources = sources
        self.plan = plan
        self.mode = isSegmented ? .segmented(rangeRefusals: 0) : .stream
        self.overlap = overlap
        self.servedAt = now
        self.beganAt = now
        self.speedWindow = SpeedWindow(at: now, bytes: 0)
        // Without kept bytes there is nothing to compare.
        self.proof = overlap > 0 && plan.bytesDone > 0 ? .awaited : .unneeded
        self.provenGroups = self.proof == .awaited && isSegmented ? sources.earlier.count : 0
        self.leaseNext = leaseNext
        self.generator = generator
        self.controller = ConcurrencyController(
            isSegmented ? settings.segments : .exactly(1), known: settings.connectionsKnown)
        self.stealing = WorkStealing(beganAt: now)
        if self.awaitsProof, isSegmented { self.audits.add(self.proofs()) }
        self.finishIfComplete()
    }

    /// The state that outlives this phase.
    var handover: (leaseNext: Int, generator: SplitMix64, sources: SourceTable) {
        (self.leaseNext, self.generator, self.sources)
    }

    /// The resource, as the reference defines it.
    var resource: RemoteResource {
        self.sources[self.sources.reference].resource ?? RemoteResource(completeLength: self.plan.completeLength)
    }

    var target: Int { self.isSingleStream ? 1 : self.controller.target }
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
            self.path.noteHead(cost: (probe.progressAt - probe.startedAt).inSeconds)
        }
        if !self.isSingleStream {
            self.controller.begin(requestCost: self.path.requestCost, now: now)
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
        if !self.leases.contains(where: { $0.phase == .requested && $0.id != lease.id }) { self.silences = 0 }
        self.path.noteHead(cost: (now - lease.startedAt).inSeconds)
    }

    /// The next request for a free connection. Nil if none can be made now.
    ///
    /// - Parameter isOpen: Whether a connection to a host may be opened.
    mutating func nextFetch(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        guard self.isUndisturbed, self.leases.count < self.target else { return nil }
        if self.sources.hasMirrors || !self.audits.isEmpty || self.sourceToConfirm != nil, !self.isSingleStream {
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
        let lease = LeaseID(self.leaseNext)
        self.leaseNext += 1
        let order = FetchOrder(
            lease: lease, source: source, segment: segment.id, request: self.request(for: segment, from: source),
            writesFrom: segment.position, limit: segment.upperBound, forgetsFrom: self.mode.takeForgetsFrom(),
            mark: self.mark(of: source)
        )
        self.plan.assign(segment.id, to: lease)
        self.leases.append(Lease(order: order, now: now, bytesBefore: self.sources[order.source].bytesWritten))
        return order
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
        request.closesConnection = self.sources[source].disagreement.isOpen
        return request
    }

    /// The number of bytes on disk before a new segment that are requested again and compared.
    private func overlapBefore(_ segment: Segment, from source: SourceID = .first) -> Int64 {
        let overlap = self.sources[source].trust == .sampled ? SampleSpots.length : self.overlap
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
