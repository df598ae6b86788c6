/// The phase in which the plan is known and leases fetch its segments.
struct Fetching: Hashable, Sendable {
    /// The reason why no more leases are given out.
    enum Outcome: Hashable {
        case complete
        case failed(Failure)
        case changed(String)
        /// The URL leads to another resource than before.
        case moved
        /// The partial file of an earlier run belongs to another file. The clause says how it differs.
        case otherFile(String)
    }

    /// 8, the number of connections of a typical download. Older rates say less about the present.
    static let ratesBeforeMax = 8

    /// An origin that serves any connection sends bytes at least this often.
    static let serviceInterval: Duration = .seconds(1)

    /// A file shorter than this many of the smallest pieces (2 MiB at the default of 16 KiB) is not cut that small.
    static let briefPieces: Int64 = 128

    /// The interval between attempts to take work, so that connections that end together do not cause a busy loop.
    static let stealSpacing: Duration = .milliseconds(100)

    var settings: DownloadSettings
    /// The sources of the bytes, and how far each is trusted.
    var sources: SourceTable
    /// How bytes are requested.
    var mode: Mode
    var plan: SegmentPlan
    var leases: [Lease] = []
    var outcome: Outcome?
    var controller: ConcurrencyController
    var generator: SplitMix64
    var leaseNext: Int
    var bytesReceived: Int64 = 0
    var speedWindow: SpeedWindow
    var malformed = 0
    /// When this phase began.
    let beganAt: Duration
    /// The number of bytes before a resumed segment that are requested again and compared. 0 if a validator proves the
    /// resource.
    private let overlap: Int64
    /// The work that a connection is asked to give up, absent if none is.
    var narrowing: Narrowing?
    var stealAt: Duration = .zero
    var replaceAt: Duration
    var replacements = 0
    /// The number of bytes that were or may be fetched twice.
    var hedgedLength: Int64 = 0
    /// When the next hedge may be made after an unsuccessful one.
    var hedgeAt: Duration = .zero
    /// When any connection last received a byte; initially, when this phase began.
    var servedAt: Duration
    /// Whether the bytes of an earlier run belong to the resource.
    var proof: Proof
    /// The number of groups in ``SourceTable/earlier`` that were compared before anything was written.
    let provenGroups: Int
    /// The rates of the last finished connections in bytes per second.
    var ratesBefore: [Double] = []
    /// The shortest time from a request to its head, in seconds.
    var requestCost = 0.0
    /// The longest time from a request to its head, in seconds.
    var slowestHead = 0.0
    /// How often silent connections were replaced since all requests were last answered.
    var silences = 0
    /// The comparisons to make before the file counts as complete.
    var audits: [Audit] = []
    var hasAudited = false
    /// Undecided contradictions between sources, oldest first.
    var disputes: [Dispute] = []
    /// Sources with other bytes, whose contributions are still to be withdrawn.
    var mismatchingSources: [SourceID] = []
    /// Other bytes to be withdrawn.
    var withdrawals: [Range<Int64>] = []
    /// Whether the manifest still names another source than the one that answered, until that one is proven equal.
    var owesRecord = false
    /// The withdrawal in progress. No request is made until it ends.
    var revision: Revision?
    /// The window of a consumer that takes the bytes in order, absent without one.
    var window: ReadingWindow?

    init(
        settings: DownloadSettings, sources: SourceTable, plan: SegmentPlan, isSegmented: Bool, overlap: Int64,
        leaseNext: Int, generator: SplitMix64, window: ReadingWindow? = nil, now: Duration
    ) {
        self.settings = settings
        self.window = window
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
        self.replaceAt = now + Self.replacementPatience
        if self.awaitsProof, isSegmented { self.audits = self.proofs() }
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
        if probe.wasAccepted { self.noteHead(cost: (probe.progressAt - probe.startedAt).inSeconds) }
        if !self.isSingleStream {
            self.controller.begin(requestCost: self.requestCost, now: now)
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
        lease.progressAt = now
        lease.meter = ThroughputMeter(start: now, count: lease.position)
        lease.speedWindow = SpeedWindow(at: now, bytes: 0)
        lease.phase = .receiving
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
        self.noteHead(cost: (now - lease.startedAt).inSeconds)
    }

    private mutating func noteHead(cost: Double) {
        self.requestCost = self.requestCost == 0 ? cost : min(self.requestCost, cost)
        self.slowestHead = max(self.slowestHead, cost)
    }

    /// The next request for a free connection. Nil if none can be made now.
    ///
    /// - Parameter isOpen: Whether a connection to a host may be opened.
    mutating func nextFetch(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        guard self.isUndisturbed, self.leases.count < self.target else { return nil }
        if self.sources.hasMirrors || !self.audits.isEmpty, !self.isSingleStream {
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
        self.leases.append(Lease(order: order, now: now))
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
        let overlap = self.sources[source].standing == .sampled ? Self.sampleLength : self.overlap
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

    /// Whether the file is so short that smaller pieces near its end are not worth their requests.
    private var isBrief: Bool {
        (self.plan.completeLength ?? 0) / Self.briefPieces < self.settings.stealLengthMinimum
    }

    /// A piece is worth its request if it takes a connection this many seconds or this many times a request's cost.
    static let pieceTime = 1.0
    static let pieceCosts = 4.0

    /// Whether a connection has just begun, so that its rate is still growing.
    ///
    /// - Parameter costs: How many times a request's cost this phase lasts.
    func isCold(_ lease: Lease, costs: Double = Self.coldCosts, now: Duration) -> Bool {
        (now - lease.startedAt).inSeconds < costs * self.requestCost + ThroughputMeter.spanMinimum.inSeconds
    }

    static let coldCosts = 2.0

    /// The planner for the current speeds: the slower the connections, the smaller the pieces, down to the user's
    /// minimum.
    private func planner(now: Duration) -> SegmentPlanner {
        let (least, most) = (self.settings.stealLengthMinimum, self.settings.planLengthMinimum)
        let rates = self.leases.filter {
            $0.phase == .receiving && !$0.order.isSample && !self.isCold($0, now: now)
        }.compactMap(\.meter.rate)
        guard least < most, let rate = SegmentSplitter.middle(rates), rate > 0 else {
            // On a long path a connection receives little before it becomes fast.
            let isLong = self.requestCost >= ConcurrencyController.longRequest
            return SegmentPlanner(splitLengthMinimum: isLong ? max(most / 4, least) : most)
        }
        let worth = rate * max(Self.pieceTime, Self.pieceCosts * self.requestCost)
        return SegmentPlanner(splitLengthMinimum: worth < Double(most) ? max(Int64(worth), least) : most)
    }

    /// Takes work for a free connection from the lease with the most time left, if no segment is waiting.
    mutating func steal(now: Duration) -> [DownloadAction] {
        guard self.outcome == nil, !self.isSingleStream, !self.mode.hasLostRanges, self.narrowing == nil,
            now >= self.stealAt, self.leases.count < self.target, !self.hasWaiting
        else { return [] }
        let candidates = self.leases.filter { $0.phase == .receiving && !$0.order.isSample }.map { lease in
            let segment = self.plan[lease.order.segment]
            return SegmentSplitter.Candidate(
                lease: lease.id, remaining: lease.position..<max(segment?.upperBound ?? lease.position, lease.position),
                rate: self.isCold(lease, now: now) ? nil : lease.meter.rate
            )
        }
        let splitter = SegmentSplitter(
            planner: self.planner(now: now), stealLengthMinimum: self.isBrief ? nil : self.settings.stealLengthMinimum)
        self.stealAt = now + Self.stealSpacing
        // The free connections share the work. Taking it one after the other would halve the rest again and again.
        let proposal = splitter.proposal(
            among: candidates, ratesBefore: self.ratesBefore, requestCost: self.requestCost,
            free: self.target - self.leases.count, mayReplace: now >= self.replaceAt)
        switch proposal {
        case .none: return []
        case .split(let victim, let offset, let pieces):
            self.narrowing = .split(into: pieces)
            self.stealAt = now
            return [.narrow(victim, to: offset)]
        case .replace(let victim):
            self.noteReplacement(now: now)
            return self.revoke(victim, .tooSlow)
        }
    }

    /// The lease will write nothing from `limit` on. The bytes after that become new segments.
    mutating func narrowed(_ id: LeaseID, to limit: Int64, now: Duration) -> [DownloadAction] {
        let narrowing = self.narrowing
        self.narrowing = nil
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
            self.stealAt = now + Self.stealSpacing
            return []
        }
        if let rest = self.plan[back] {
            self.planner(now: now).cut(rest, of: &self.plan, into: pieces)
        }
        return self.plan.segments.filter { $0.lowerBound >= limit && $0.upperBound <= segment.upperBound }
            .map { .report(.segmentSplit($0.id, $0.lowerBound..<$0.upperBound)) }
    }
}
