/// Decides everything about one download; does nothing.
///
/// It takes what happened and returns what should happen. Time and randomness come in as values, so a run can be replayed.
package struct DownloadStateMachine: Hashable, Sendable {
    private enum State: Hashable {
        /// Waits for its turn. Becomes `surveying` or `resting`.
        case queued
        /// The destination is being looked at. Becomes `probing`, `preparing` or `resting`.
        case surveying
        /// The first request is out. Becomes `preparing`, `settling` or `resting`.
        case probing(Probing)
        /// The resource is known; the part file is being made ready. Becomes `fetching`, `probing` or `settling`.
        case preparing(Preparing)
        /// Segments are being fetched. Becomes `placing` or `settling`.
        case fetching(Fetching)
        /// Connections are being closed and what they brought is made durable. Becomes `resting`, `probing` or `discarding`.
        case settling(Settling)
        /// All bytes are there: verifying and moving into place. Becomes `resting`.
        case placing
        /// The part is being deleted. Becomes `resting`.
        case discarding
        /// Ended, or paused until resumed. Becomes `surveying`.
        case resting(DownloadConclusion)
    }

    private struct Preparing: Hashable {
        let probing: Probing
        let resource: RemoteResource
        let plan: SegmentPlan
        let isSegmented: Bool
        let responseEnd: Int64
    }

    /// Why the connections are closed.
    private enum Stop: Hashable {
        case pause
        case cancel(keepingPartial: Bool)
        case fail(Failure)
        case restart(String)
    }

    private struct Settling: Hashable {
        var leases: [LeaseID]
        var stop: Stop
        let hasPart: Bool
    }

    /// How much may be written before a checkpoint is due, in bytes: what a power cut may cost.
    package static let checkpointLength: Int64 = 64 << 20

    /// How long anything written may stay unsynced.
    package static let checkpointInterval: Duration = .seconds(5)

    package let settings: DownloadSettings
    private var state: State = .queued
    private var generator: SplitMix64
    private var leaseNext = 0
    /// What to do once the step under way, which cannot be broken off, is over.
    private var pendingStop: Stop?
    private var isSurveyed = false
    private var mustBeginAnew = false
    private var restarts = 0
    /// Checkpoints asked for and not answered yet; they are carried out in order.
    private var checkpointsPending = 0
    private var resumesWhenSettled = false
    private var checkpointAt: Duration = .zero
    private var bytesAtCheckpoint: Int64 = 0

    /// A changed resource is begun anew this often in one run; one that changes all the time is reported instead.
    package static let restartsMax = 3

    package init(settings: DownloadSettings, seed: UInt64) {
        self.settings = settings
        self.generator = SplitMix64(seed: seed)
    }

    // MARK: What others may know

    package var conclusion: DownloadConclusion? {
        if case .resting(let conclusion) = self.state { return conclusion }
        return nil
    }

    package var isQueued: Bool { self.state == .queued }
    package var plan: SegmentPlan? {
        if case .fetching(let fetching) = self.state { return fetching.plan }
        return nil
    }

    package var connections: Int {
        switch self.state {
        case .probing(let probing): probing.lease == nil ? 0 : 1
        case .fetching(let fetching): fetching.leases.count { $0.phase != .ending }
        case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting: 0
        }
    }

    // MARK: What the user wants

    package mutating func start() -> [DownloadAction] {
        guard case .queued = self.state else { return [] }
        self.state = .surveying
        return [.survey]
    }

    /// Goes on after a pause or a failure. Idempotent: a running download just runs.
    package mutating func resume() -> [DownloadAction] {
        switch self.state {
        case .resting(.paused), .resting(.failed): self.state = .queued
        case .settling(let settling) where settling.stop == .pause: self.resumesWhenSettled = true
        case .queued, .surveying, .probing, .preparing, .fetching, .settling, .placing, .discarding, .resting: break
        }
        return []
    }

    package mutating func pause() -> [DownloadAction] { self.stop(.pause) }

    package mutating func cancel(keepingPartial: Bool) -> [DownloadAction] {
        self.stop(.cancel(keepingPartial: keepingPartial))
    }

    private mutating func stop(_ stop: Stop) -> [DownloadAction] {
        switch self.state {
        case .queued:
            return self.settled(stop, hasPart: false)
        case .surveying, .preparing, .discarding:
            self.pendingStop = stop
            return []
        case .placing:
            self.pendingStop = stop
            return [.interruptPlacing]
        case .probing(var probing):
            guard let lease = probing.lease else { return self.settled(stop, hasPart: false) }
            probing.lease = nil
            self.state = .settling(Settling(leases: [lease.id], stop: stop, hasPart: false))
            return [.revoke(lease.id)]
        case .fetching(var fetching):
            let actions = fetching.revokeAll()
            return actions + self.settle(stop, leases: fetching.leases.map(\.id), hasPart: true)
        case .settling(var settling):
            // A user's word goes before ours, and a cancellation before a pause.
            if case .cancel = settling.stop {} else { settling.stop = stop }
            self.state = .settling(settling)
            return []
        case .resting(.paused), .resting(.failed):
            return stop == .pause ? [] : self.settled(stop, hasPart: false)
        case .resting:
            return []
        }
    }

    // MARK: What happened on disk

    package mutating func surveyed(_ survey: Survey, now: Duration) -> [DownloadAction] {
        guard case .surveying = self.state else { return [] }
        self.isSurveyed = true
        if let stop = self.takePendingStop() { return self.settled(stop, hasPart: false) }
        return self.begin(with: survey, now: now)
    }

    private mutating func begin(with survey: Survey, now: Duration) -> [DownloadAction] {
        switch survey {
        case .nothing:
            guard self.settings.continuation != .must else {
                return self.rest(
                    .failed(
                        Failure(.state, "there is nothing to continue", hint: "Start anew with --continue auto")))
            }
            self.state = .probing(Probing(.fresh, replaces: false))
            return []
        case .partial(let saved):
            guard self.settings.continuation != .no, !self.mustBeginAnew else {
                self.state = .probing(Probing(.fresh, replaces: true))
                return []
            }
            guard !saved.missing.isEmpty else {
                let plan = SegmentPlan(completeLength: saved.completeLength, missing: [])
                let probing = Probing(.fresh, replaces: false)
                return self.prepare(probing, saved.resource, plan, isSegmented: true, responseEnd: 0, mode: .adopted)
            }
            self.state = .probing(Probing(.resume(saved), replaces: false))
            return []
        case .existing(let file):
            return self.begin(with: file)
        }
    }

    private mutating func begin(with file: ExistingFile) -> [DownloadAction] {
        let exists = { (why: String) -> DownloadConclusion in
            .failed(
                Failure(
                    .exists, "the destination exists\(why)",
                    hint: "Keep both with --if-exists rename, or replace it with --if-exists overwrite"))
        }
        switch self.settings.ifExists {
        case .skip: return self.rest(.alreadyComplete)
        case .fail: return self.rest(exists(""))
        case .overwrite, .rename:
            self.state = .probing(Probing(.fresh, replaces: true))
            return []
        case .verify:
            switch (file.agreesWithDigests, file.record) {
            case (true?, _): return self.rest(.alreadyComplete)
            case (false?, _): return self.rest(exists(" and has another digest than the one given"))
            case (nil, let record?) where record.completeLength == file.length:
                self.state = .probing(Probing(.compare(file, record), replaces: false))
                return []
            case (nil, _): return self.rest(exists(" and nothing proves it to be the file asked for"))
            }
        }
    }

    /// The part file is ready to be written.
    package mutating func prepared(now: Duration) -> [DownloadAction] {
        guard case .preparing(let preparing) = self.state else { return [] }
        let probing = preparing.probing
        if let stop = self.takePendingStop() {
            let leases = probing.lease.map { [$0.id] } ?? []
            return leases.map { .revoke($0) } + self.settle(stop, leases: leases, hasPart: true)
        }
        var fetching = Fetching(
            settings: self.settings, resource: preparing.resource, plan: preparing.plan,
            isSegmented: preparing.isSegmented, overlap: probing.overlapLength, leaseNext: self.leaseNext,
            generator: self.generator, now: now
        )
        var actions: [DownloadAction] = [
            .report(
                .started(
                    resource: preparing.resource, resumedFrom: preparing.plan.bytesDone,
                    segmented: preparing.isSegmented))
        ]
        if let lease = probing.lease {
            actions += fetching.adopt(lease, responseEnd: preparing.responseEnd)
        }
        self.checkpointAt = now + Self.checkpointInterval
        self.bytesAtCheckpoint = preparing.plan.bytesDone
        self.state = .fetching(fetching)
        return actions + self.advanceFetching()
    }

    /// The response named a destination at which something was found: the probe's body is of no use, but its answer was.
    package mutating func found(_ survey: Survey, now: Duration) -> [DownloadAction] {
        guard case .preparing(let preparing) = self.state else { return [] }
        let leases = preparing.probing.lease.map { [$0.id] } ?? []
        // The waiting fetch ends by itself; what it reports then concerns nobody.
        let answers = leases.map { DownloadAction.answer($0, .stop) }
        self.state = .surveying
        return answers + self.surveyed(survey, now: now)
    }

    package mutating func checkpointed(bytes: Int64) -> [DownloadAction] {
        self.checkpointsPending -= 1
        guard case .settling(let settling) = self.state, settling.leases.isEmpty, self.checkpointsPending == 0 else {
            return [.report(.checkpointed(bytes: bytes))]
        }
        return [.report(.checkpointed(bytes: bytes))] + self.settled(settling.stop, hasPart: true)
    }

    package mutating func placed() -> [DownloadAction] {
        guard case .placing = self.state else { return [] }
        self.pendingStop = nil
        return self.rest(.completed)
    }

    package mutating func discarded() -> [DownloadAction] {
        guard case .discarding = self.state else { return [] }
        return self.rest(.cancelled)
    }

    /// A checkpoint failed: what was not durable is not claimed any more.
    package mutating func checkpointFailed(_ failure: Failure) -> [DownloadAction] {
        self.checkpointsPending -= 1
        if case .settling(let settling) = self.state, settling.leases.isEmpty {
            return self.checkpointsPending > 0 ? [] : self.rest(.failed(failure))
        }
        return self.storageFailed(failure)
    }

    /// A step on disk failed; everything durable before it still is.
    package mutating func storageFailed(_ failure: Failure) -> [DownloadAction] {
        switch self.state {
        case .surveying, .discarding:
            return self.rest(.failed(failure))
        case .preparing(let preparing):
            let answers = preparing.probing.lease.map { [DownloadAction.answer($0.id, .stop)] } ?? []
            return answers + self.rest(self.takePendingStop().map(Self.conclusion(of:)) ?? .failed(failure))
        case .placing:
            // An integrity failure outlives a pause that came too late.
            if failure.code == .cancelled, let stop = self.takePendingStop() { return self.settled(stop, hasPart: true) }
            return self.rest(.failed(failure))
        case .fetching(var fetching):
            let actions = fetching.revokeAll()
            return actions + self.settle(.fail(failure), leases: fetching.leases.map(\.id), hasPart: false)
        case .settling(var settling):
            if case .cancel = settling.stop {} else { settling.stop = .fail(failure) }
            self.state = .settling(Settling(leases: settling.leases, stop: settling.stop, hasPart: false))
            return self.checkSettled()
        case .queued, .probing, .resting:
            return []
        }
    }

    // MARK: What happened on the network

    /// The next request for a free connection, if there is one to make.
    package mutating func nextFetch(now: Duration) -> FetchOrder? {
        switch self.state {
        case .probing(var probing):
            let order = probing.nextFetch(id: LeaseID(self.leaseNext), now: now)
            if order != nil {
                self.leaseNext += 1
            }
            self.state = .probing(probing)
            return order
        case .fetching(var fetching):
            let order = fetching.nextFetch(now: now)
            self.state = .fetching(fetching)
            return order
        case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting:
            return nil
        }
    }

    /// A connection is free and nothing is waiting: may take work from another.
    package mutating func steal(now: Duration) -> [DownloadAction] {
        self.updateFetching { $0.steal(now: now) }
    }

    package mutating func observe(_ observations: [LeaseObservation], now: Duration) {
        guard case .fetching(var fetching) = self.state else { return }
        fetching.observe(observations, now: now)
        self.state = .fetching(fetching)
    }

    package mutating func narrowed(_ id: LeaseID, to limit: Int64, now: Duration) -> [DownloadAction] {
        self.updateFetching { $0.narrowed(id, to: limit, now: now) }
    }

    package mutating func limitReached(_ id: LeaseID) -> [DownloadAction] {
        guard case .fetching = self.state else { return [.answer(id, .stop)] }
        return self.updateFetching { $0.limitReached(id) }
    }

    /// The head of a response has been judged; its fetch waits for an answer.
    package mutating func responded(
        _ id: LeaseID, _ response: RangeResponse, suggestedName: String?, now: Duration
    ) -> [DownloadAction] {
        switch self.state {
        case .probing(var probing) where probing.lease?.id == id:
            let verdict = probing.responded(response, settings: self.settings, now: now, using: &self.generator)
            return self.conclude(probing, verdict, suggestedName: suggestedName)
        case .fetching:
            return self.updateFetching { $0.responded(id, response, now: now) }
        case .queued, .surveying, .probing, .preparing, .settling, .placing, .discarding, .resting:
            return [.answer(id, .stop)]
        }
    }

    private mutating func conclude(
        _ probing: Probing, _ verdict: Probing.Verdict, suggestedName: String?
    ) -> [DownloadAction] {
        var probing = probing
        let lease = probing.lease
        let stop = lease.map { [DownloadAction.answer($0.id, .stop)] } ?? []
        switch verdict {
        case .accepted(let resource, let isSegmented, let responseEnd):
            var plan = SegmentPlan(completeLength: resource.completeLength)
            var mode = Preparation.Mode.fresh
            if case .resume(let saved) = probing.purpose {
                plan = SegmentPlan(completeLength: saved.completeLength, missing: saved.missing)
                mode = .adopted
                if !isSegmented {
                    plan.truncate(to: plan.frontier)
                    mode = .adoptedUp(to: plan.frontier)
                }
            }
            return self.prepare(
                probing, resource, plan, isSegmented: isSegmented, responseEnd: responseEnd, mode: mode,
                suggestedName: suggestedName)
        case .empty(let resource):
            probing.lease = nil
            return stop
                + self.prepare(
                    probing, resource, SegmentPlan(completeLength: 0), isSegmented: false, responseEnd: 0, mode: .fresh,
                    suggestedName: suggestedName)
        case .again(let actions):
            probing.lease = nil
            self.state = .probing(probing)
            return stop + actions
        case .current:
            return stop + self.rest(.alreadyComplete)
        case .changed(let difference):
            if case .compare = probing.purpose {
                return stop
                    + self.rest(
                        .failed(
                            Failure(
                                .exists, "the destination exists and is not the remote file: \(difference)",
                                hint: "Keep both with --if-exists rename, or replace it with --if-exists overwrite")))
            }
            return stop + self.settled(self.stop(forChange: difference), hasPart: false)
        case .failed(let failure):
            return stop + self.rest(.failed(failure))
        }
    }

    private mutating func prepare(
        _ probing: Probing, _ resource: RemoteResource, _ plan: SegmentPlan, isSegmented: Bool, responseEnd: Int64,
        mode: Preparation.Mode, suggestedName: String? = nil
    ) -> [DownloadAction] {
        self.state = .preparing(
            Preparing(
                probing: probing, resource: resource, plan: plan, isSegmented: isSegmented, responseEnd: responseEnd))
        return [
            .prepare(
                Preparation(resource: resource, mode: mode, replaces: probing.replaces, suggestedName: suggestedName))
        ]
    }

    private mutating func stop(forChange difference: String) -> Stop {
        self.restarts += 1
        guard self.settings.onChange == .restart, self.restarts <= Self.restartsMax else {
            return .fail(
                Failure(
                    .changed, "the remote file changed while it was being fetched: \(difference)",
                    hint: "Start anew with --on-change restart"))
        }
        return .restart(difference)
    }

    /// A fetch is over. Every fetch order is followed by exactly one of these.
    package mutating func ended(_ id: LeaseID, _ end: LeaseEnd, now: Duration) -> [DownloadAction] {
        switch self.state {
        case .probing(var probing) where probing.lease?.id == id:
            switch end {
            case .failed(let failure), .storageFailed(let failure):
                let verdict = probing.failed(failure, settings: self.settings, now: now, using: &self.generator)
                return self.conclude(probing, verdict, suggestedName: nil)
            case .revoked:
                let waited = self.settings.headTimeout.inSeconds
                let failure = Failure(
                    .network, "\(self.settings.host): no complete response head within \(waited) s", isTransient: true)
                let verdict = probing.failed(failure, settings: self.settings, now: now, using: &self.generator)
                return self.conclude(probing, verdict, suggestedName: nil)
            case .finished, .differs:
                probing.lease = nil
                self.state = .probing(probing)
                return []
            }
        case .fetching:
            return self.updateFetching { $0.ended(id, end, now: now) }
        case .settling(var settling):
            settling.leases.removeAll { $0 == id }
            self.state = .settling(settling)
            return self.checkSettled()
        case .queued, .surveying, .probing, .preparing, .placing, .discarding, .resting:
            return []
        }
    }

    // MARK: Time

    package mutating func tick(now: Duration) -> [DownloadAction] {
        switch self.state {
        case .probing(let probing):
            guard let lease = probing.lease, now - lease.startedAt > self.settings.headTimeout,
                lease.revocation == nil
            else { return [] }
            var revoked = probing
            revoked.lease?.revocation = .headTooSlow
            self.state = .probing(revoked)
            return [.revoke(lease.id)]
        case .fetching(let fetching):
            let bytes = fetching.plan.bytesDone
            var actions: [DownloadAction] = []
            if self.checkpointsPending == 0, bytes > self.bytesAtCheckpoint,
                bytes - self.bytesAtCheckpoint >= Self.checkpointLength || now >= self.checkpointAt
            {
                self.checkpointsPending += 1
                self.bytesAtCheckpoint = bytes
                self.checkpointAt = now + Self.checkpointInterval
                actions.append(.checkpoint(isPause: false))
            }
            return actions + self.updateFetching { $0.tick(now: now) }
        case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting:
            return []
        }
    }

    // MARK: Steps from one state to the next

    private mutating func updateFetching(_ body: (inout Fetching) -> [DownloadAction]) -> [DownloadAction] {
        guard case .fetching(var fetching) = self.state else { return [] }
        let actions = body(&fetching)
        self.state = .fetching(fetching)
        return actions + self.advanceFetching()
    }

    /// Leaves `fetching` once its outcome is known.
    private mutating func advanceFetching() -> [DownloadAction] {
        guard case .fetching(var fetching) = self.state, let outcome = fetching.outcome else { return [] }
        (self.leaseNext, self.generator) = fetching.handover
        switch outcome {
        case .complete:
            // The last bytes are written; connections that still hand back their response are of no interest.
            guard fetching.leases.isEmpty, let length = fetching.plan.completeLength else { return [] }
            self.state = .placing
            return [.place(length: length)]
        case .failed(let failure):
            let actions = fetching.revokeAll()
            return actions + self.settle(.fail(failure), leases: fetching.leases.map(\.id), hasPart: true)
        case .changed(let difference):
            let actions = fetching.revokeAll()
            let stop = self.stop(forChange: difference)
            return actions + self.settle(stop, leases: fetching.leases.map(\.id), hasPart: true)
        }
    }

    private mutating func settle(_ stop: Stop, leases: [LeaseID], hasPart: Bool) -> [DownloadAction] {
        self.state = .settling(Settling(leases: leases, stop: stop, hasPart: hasPart))
        return self.checkSettled()
    }

    private mutating func checkSettled() -> [DownloadAction] {
        guard case .settling(let settling) = self.state, settling.leases.isEmpty else { return [] }
        guard settling.hasPart, settling.stop != .cancel(keepingPartial: false) else {
            return self.checkpointsPending > 0 ? [] : self.settled(settling.stop, hasPart: settling.hasPart)
        }
        self.checkpointsPending += 1
        return [.checkpoint(isPause: true)]
    }

    /// Nothing is in flight any more.
    private mutating func settled(_ stop: Stop, hasPart: Bool) -> [DownloadAction] {
        switch stop {
        case .cancel(keepingPartial: false):
            self.state = .discarding
            return [.discard]
        case .restart(let difference):
            self.mustBeginAnew = true
            self.state = .probing(Probing(.fresh, replaces: true))
            return [.report(.restarted(difference))]
        case .pause where self.resumesWhenSettled:
            self.resumesWhenSettled = false
            self.state = .queued
            return []
        case .pause, .cancel, .fail:
            return self.rest(Self.conclusion(of: stop))
        }
    }

    private static func conclusion(of stop: Stop) -> DownloadConclusion {
        switch stop {
        case .pause, .restart: .paused
        case .cancel: .cancelled
        case .fail(let failure): .failed(failure)
        }
    }

    private mutating func rest(_ conclusion: DownloadConclusion) -> [DownloadAction] {
        self.state = .resting(conclusion)
        return [.conclude(conclusion)]
    }

    private mutating func takePendingStop() -> Stop? {
        defer { self.pendingStop = nil }
        return self.pendingStop
    }
}
