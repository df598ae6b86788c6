/// The part of a download in which its plan is known and leases are out.
struct Fetching: Hashable, Sendable {
    /// Why no more leases are given out.
    enum Outcome: Hashable {
        case complete
        case failed(Failure)
        case changed(String)
        /// The URL leads to another resource than before.
        case moved
        /// What an earlier run left is of another file. The clause says how it differs.
        case otherFile(String)
    }

    /// Answers without the range asked for, before this origin is taken to serve one stream only.
    static let rangeRefusalsMax = 3

    /// As many as connections in a usual download: what is longer ago says less about now.
    static let ratesBeforeMax = 8

    /// An origin that serves anybody at all sends something so often.
    static let serviceInterval: Duration = .seconds(1)

    /// Of a file of less than so many of the smallest pieces none is cut so small: 8 MiB.
    static let briefPieces: Int64 = 128

    /// Between two attempts to take work from others, so that a tight race does not spin.
    static let stealSpacing: Duration = .milliseconds(100)

    var settings: DownloadSettings
    /// Where bytes come from, and how far each place is believed.
    var sources: SourceTable
    let isSegmented: Bool
    var plan: SegmentPlan
    var leases: [Lease] = []
    var outcome: Outcome?
    var controller: ConcurrencyController
    var generator: SplitMix64
    var leaseNext: Int
    var bytesReceived: Int64 = 0
    var isSingleStream: Bool
    var rangeRefusals = 0
    var malformed = 0
    /// When fetching began.
    let beganAt: Duration
    /// Whether a segment's first request overlaps what is on disk: nothing else proves a resumed resource is the same.
    private let overlap: Int64
    /// Set while a connection is asked to give up work: into how many pieces that is cut.
    var narrowing: Int?
    var stealAt: Duration = .zero
    var replaceAt: Duration
    var replacements = 0
    /// Bytes that were fetched twice, or may be.
    var hedgedLength: Int64 = 0
    /// When something may be asked for twice again, after that failed.
    var hedgeAt: Duration = .zero
    /// The lease that takes over from another, while that one is told where it ends.
    var takingOver: LeaseID?
    /// When a byte last came, on any connection; at first, when fetching began.
    var servedAt: Duration
    /// Whether nothing proves the resource to be the one begun before but its bytes, and none of them has agreed yet. Until
    /// then only segments are asked for that begin with such a comparison: others would write what may be another file's.
    var awaitsProof: Bool
    /// How many of the groups of earlier bytes were compared before anything was written.
    let provenGroups: Int
    /// Whether nothing but a comparison proved what an earlier run left.
    let beganWithComparison: Bool
    /// How fast the last connections were that are done, in bytes per second.
    var ratesBefore: [Double] = []
    /// Seconds from asking to the head, the best seen.
    var requestCost = 0.0
    /// Seconds from asking to the head, the worst seen.
    var slowestHead = 0.0
    /// How often connections were replaced on which nothing came, since all had their answers.
    var silences = 0
    /// What is still to be compared before the file is taken for whole.
    var audits: [Audit] = []
    var hasAudited = false
    /// Contradictions not decided yet, in the order in which they came.
    var disputes: [Dispute] = []
    /// Sources found to have other bytes, whose own are still to be withdrawn.
    var mismatchingSources: [SourceID] = []
    /// What else is to be withdrawn.
    var withdrawals: [Range<Int64>] = []
    /// Whether the manifest still names another source than the one that answered, until that one is proved the same.
    var owesRecord = false
    /// Claims behind this offset are withdrawn before the next request: one stream brings those bytes anew.
    private var forgetsFrom: Int64?
    /// What is being withdrawn: nothing else is begun meanwhile.
    var revision: Revision?
    /// Who takes the bytes in their order, if somebody does.
    var window: ReadingWindow?

    init(
        settings: DownloadSettings, sources: SourceTable, plan: SegmentPlan, isSegmented: Bool, overlap: Int64,
        leaseNext: Int, generator: SplitMix64, window: ReadingWindow? = nil, now: Duration
    ) {
        self.settings = settings
        self.window = window
        self.sources = sources
        self.plan = plan
        self.isSegmented = isSegmented
        self.isSingleStream = !isSegmented
        self.overlap = overlap
        self.servedAt = now
        self.beganAt = now
        // Where nothing was kept there is nothing to be proved the same.
        self.awaitsProof = overlap > 0 && plan.bytesDone > 0
        self.beganWithComparison = self.awaitsProof
        self.provenGroups = self.awaitsProof && isSegmented ? sources.earlier.count : 0
        self.leaseNext = leaseNext
        self.generator = generator
        self.controller = ConcurrencyController(
            isSegmented ? settings.segments : .exactly(1), known: settings.connectionsKnown)
        self.replaceAt = now + Self.replacementPatience
        if self.awaitsProof, isSegmented { self.audits = self.proofs() }
        self.finishIfComplete()
    }

    /// What a resumed probe must hand over when the plan is taken up elsewhere.
    var handover: (leaseNext: Int, generator: SplitMix64, sources: SourceTable) {
        (self.leaseNext, self.generator, self.sources)
    }

    /// What is fetched, as the reference says.
    var resource: RemoteResource {
        self.sources[self.sources.reference].resource ?? RemoteResource(completeLength: self.plan.completeLength)
    }

    var target: Int { self.isSingleStream ? 1 : self.controller.target }
    var receiving: Int { self.leases.count { $0.phase == .receiving } }

    // MARK: Giving out leases

    /// Takes over the probe's lease, whose response has been accepted, and cuts the rest among connections to come.
    mutating func adopt(_ probe: Lease, responseEnd: Int64, now: Duration) -> [DownloadAction] {
        guard self.outcome == nil, let segment = self.plan.segments.first(where: { !$0.isComplete }) else {
            return [.answer(probe.id, .stop)]
        }
        // With the connection's making, as for most requests to come.
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
        // Making the part file ready may have taken long, which is not the network's fault.
        lease.progressAt = now
        lease.meter = ThroughputMeter(start: now, count: lease.position)
        lease.phase = .receiving
        lease.responseEnd = responseEnd
        self.leases.append(lease)
        let limit = min(self.plan[segment.id]?.upperBound ?? responseEnd, responseEnd)
        return [
            .report(.segmentOpened(segment.id, segment.position..<limit, probe.order.source)),
            .answer(probe.id, .proceed(limit: limit)),
        ]
    }

    /// The head of an answer has come that is accepted.
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

    /// The next segment for a free connection, if one is waiting.
    ///
    /// - Parameter isOpen: whether a connection to a host may be opened.
    mutating func nextFetch(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        // While the bytes of one source are on their way out, others would be compared with them.
        guard self.outcome == nil, self.revision == nil, self.mismatchingSources.isEmpty, self.withdrawals.isEmpty,
            !self.isReplacing, self.leases.count < self.target
        else {
            return nil
        }
        if self.sources.hasMirrors || !self.audits.isEmpty, !self.isSingleStream {
            if let sample = self.nextSample(now: now, isOpen: isOpen) { return sample }
            guard self.leases.count < self.target - self.roomForSamples(now: now) else { return nil }
        }
        if !self.isSingleStream, self.rangeRefusals >= Self.rangeRefusalsMax {
            guard self.leases.isEmpty else { return nil }
            // Nobody gives us ranges any more: one stream carries the rest, compared with what we have.
            self.plan.truncate(to: self.plan.frontier)
            self.isSingleStream = true
            self.forgetsFrom = self.plan.frontier
            self.disputes = []
            self.audits = []
        }
        // One stream brings everything behind the first hole.
        let first = self.plan.segments.firstIndex { !$0.isComplete }
        let room = self.room
        let waiting = self.plan.segments.indices.filter { index in
            let segment = self.plan.segments[index]
            return segment.lease == nil && !segment.isComplete && segment.retryAt <= now
                && (!self.isSingleStream || index == first) && room.holds(segment)
                && (!self.awaitsProof || self.isSingleStream || self.overlapBefore(segment) > 0)
        }
        // One that a running response will reach by itself is left to it as long as there is another.
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
            writesFrom: segment.position, limit: segment.upperBound, forgetsFrom: self.forgetsFrom,
            mark: self.mark(of: source)
        )
        self.forgetsFrom = nil
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

    /// How much of what is on disk before a segment not begun yet is asked for again, to be compared.
    private func overlapBefore(_ segment: Segment, from source: SourceID = .first) -> Int64 {
        let overlap = self.sources[source].standing == .sampled ? Self.sampleLength : self.overlap
        guard overlap > 0, let index = self.plan.index(of: segment.id), index > 0 else { return 0 }
        let before = self.plan.segments[index - 1]
        return before.isComplete ? min(overlap, before.upperBound - before.lowerBound) : 0
    }

    /// Whether some missing bytes follow written ones.
    var canProve: Bool {
        self.isSingleStream || self.plan.segments.contains { !$0.isComplete && self.overlapBefore($0) > 0 }
    }

    private func isWithinReach(_ index: Int) -> Bool {
        guard index > 0, let holder = self.plan.segments[index - 1].lease,
            let lease = self.leases.first(where: { $0.id == holder })
        else { return false }
        return lease.phase == .receiving && lease.responseEnd >= self.plan.segments[index].upperBound
    }

    /// Whether the file is so short that its end is not worth smaller requests than its beginning.
    private var isBrief: Bool {
        (self.plan.completeLength ?? 0) / Self.briefPieces < self.settings.stealLengthMinimum
    }

    /// A piece is worth its request if it takes a connection so many seconds, or so many times what its request costs.
    static let pieceTime = 1.0
    static let pieceCosts = 4.0

    /// Whether a connection has just begun and will be faster.
    ///
    /// - Parameter costs: so many times what a request costs, after it was asked for, it still is.
    func isCold(_ lease: Lease, costs: Double = Self.coldCosts, now: Duration) -> Bool {
        (now - lease.startedAt).inSeconds < costs * self.requestCost + ThroughputMeter.spanMinimum.inSeconds
    }

    static let coldCosts = 2.0

    /// Cuts pieces as small as the user allows where connections are slow: what is little for a fast one takes a slow one long.
    private func planner(now: Duration) -> SegmentPlanner {
        let (least, most) = (self.settings.stealLengthMinimum, self.settings.planLengthMinimum)
        let rates = self.leases.filter {
            $0.phase == .receiving && !$0.order.isSample && !self.isCold($0, now: now)
        }.compactMap(\.meter.rate)
        guard least < most, let rate = SegmentSplitter.middle(rates), rate > 0 else {
            // In the time that a long way takes to be fast, nobody brings much.
            let isLong = self.requestCost >= ConcurrencyController.longRequest
            return SegmentPlanner(splitLengthMinimum: isLong ? max(most / 4, least) : most)
        }
        let worth = rate * max(Self.pieceTime, Self.pieceCosts * self.requestCost)
        return SegmentPlanner(splitLengthMinimum: worth < Double(most) ? max(Int64(worth), least) : most)
    }

    /// Asks the connection with most time left to give some of it up, for a free connection that found nothing waiting.
    mutating func steal(now: Duration) -> [DownloadAction] {
        guard self.outcome == nil, !self.isSingleStream, self.narrowing == nil, self.takingOver == nil,
            now >= self.stealAt,
            self.rangeRefusals < Self.rangeRefusalsMax, self.leases.count < self.target,
            !self.hasWaiting
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
        // Many that become free at once have a share each, and do not halve the rest again and again.
        let proposal = splitter.proposal(
            among: candidates, ratesBefore: self.ratesBefore, requestCost: self.requestCost,
            free: self.target - self.leases.count, mayReplace: now >= self.replaceAt)
        switch proposal {
        case .none: return []
        case .split(let victim, let offset, let pieces):
            self.narrowing = pieces
            self.stealAt = now
            return [.narrow(victim, to: offset)]
        case .replace(let victim):
            self.noteReplacement(now: now)
            return self.revoke(victim, .tooSlow)
        }
    }

    /// The lease will write nothing at or behind `limit`; what lies there is free to be taken.
    mutating func narrowed(_ id: LeaseID, to limit: Int64, now: Duration) -> [DownloadAction] {
        if let heir = self.takingOver {
            self.takingOver = nil
            return self.takeOver(heir, from: limit, now: now)
        }
        let pieces = self.narrowing ?? 1
        self.narrowing = nil
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
