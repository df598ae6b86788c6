/// Makes all decisions about one download, without side effects.
///
/// It takes events and returns actions. Time and random numbers are passed in as values, so that a run can be replayed.
package struct DownloadStateMachine: Hashable, Sendable {
    enum State: Hashable {
        /// Waiting for its turn. Becomes `surveying`, `discarding` or `resting`.
        case queued
        /// The destination is being inspected. If it was before, in this run, the part may be gone. Becomes `probing`,
        /// `discarding`, `resting`, or `queued` if it was paused and resumed.
        case surveying(isRepeated: Bool = false)
        /// The first request is in flight or waiting to be made. Becomes `preparing`, `surveying`, `settling`,
        /// `discarding` or `resting`.
        case probing(Probing)
        /// The resource is known and the part file is being made ready. Becomes `fetching`, `surveying`, `settling`,
        /// `discarding` or `resting`.
        case preparing(Preparing)
        /// Segments are being fetched. Becomes `placing` or `settling`.
        case fetching(Fetching)
        /// Connections are being closed and their bytes made durable. Becomes `resting`, `queued`, `probing`,
        /// `surveying` or `discarding`.
        case settling(Settling)
        /// All bytes are on disk; the file is being verified and moved into place. The state before is kept in case bytes
        /// must be fetched again from another source. Becomes `resting`, `settling`, `surveying`, `fetching` or `discarding`.
        case placing(after: Fetching?)
        /// The part is being deleted. Becomes `resting`.
        case discarding
        /// Ended or paused. Becomes `queued` when resumed, or `discarding`.
        case resting(DownloadConclusion)
    }

    struct Preparing: Hashable {
        var probing: Probing
        let resource: RemoteResource
        let plan: SegmentPlan
        let isSegmented: Bool
        let responseEnd: Int64

        /// The bytes of an earlier run that are kept.
        var written: SourceTable.Written {
            guard let saved = self.probing.saved, let length = self.plan.completeLength else {
                return SourceTable.Written()
            }
            let ranges = self.plan.missing.complement(in: length)
            let marked = saved.marked.map { group in
                MarkedRanges(mark: group.mark, ranges: group.ranges.subtracting(self.plan.missing))
            }
            return SourceTable.Written(ranges: ranges, marked: marked, isElsewheres: self.probing.isElsewhere)
        }
    }

    /// The reason why the connections are closed.
    enum Stop: Hashable {
        case pause
        case cancel(keepingPartial: Bool)
        case fail(DownloadError)
        case restart(String)
        /// The part on disk belongs to another file and is set aside. The clause says how it differs.
        case beginAnew(String)
        /// The part has the wrong digest, and the file is fetched anew from sources that have not been tried. The failure is
        /// reported if none of them answers.
        case beginWithOthers(DownloadError)
        /// The URL leads to another resource than before. The bytes on disk are compared with it, as after a pause.
        case relocate
    }

    struct Settling: Hashable {
        var leases: [LeaseID]
        var stop: Stop
        let hasPart: Bool
    }

    /// How often a run surveys a part again that other processes change. After that, the failure is reported.
    package static let healingsMax = 3

    private var present: State = .queued
    /// The context, unless bytes are fetched. Then ``Fetching`` has it.
    private var ownContext: DownloadContext
    /// The sources from which everything was already fetched alone in this run.
    var trusted: [SourceID] = []
    var interruption = Interruption()
    var resumption = Resumption()
    var changes = DownloadChanges()
    var healings = 0
    var checkpoints = Checkpoints()
    /// The first tick of this run at which it needed the network.
    var startedAt: Duration?

    /// What interrupts the current step.
    struct Interruption: Hashable {
        /// The stop to carry out after the step.
        var stop: Stop?
        /// Whether the download is resumed after that.
        var isResumed = false
    }

    /// How the part on disk is used.
    struct Resumption: Hashable {
        /// Whether this run has begun to write the part. From then on it resumes that part, regardless of the
        /// `continuation` setting.
        var hasBegun = false
        var mustBeginAnew = false
        /// Whether a digest, and not the URL, identifies the surveyed part.
        var isPinned = false
    }

    package init(settings: DownloadSettings, seed: UInt64) {
        self.ownContext = DownloadContext(settings: settings, seed: seed)
        if settings.startsPaused { self.present = .resting(.paused) }
    }

    var state: State {
        get { self.present }
        set {
            if case .fetching(let fetching) = self.present { self.ownContext = fetching.context }
            self.present = newValue
        }
    }

    var context: DownloadContext {
        get {
            if case .fetching(let fetching) = self.present { return fetching.context }
            return self.ownContext
        }
        set {
            if self.withFetching({ $0.context = newValue }) == nil { self.ownContext = newValue }
        }
    }

    package var settings: DownloadSettings {
        if case .fetching(let fetching) = self.present { fetching.context.settings } else { self.ownContext.settings }
    }

    var sources: SourceTable {
        get { if case .fetching(let fetching) = self.present { fetching.sources } else { self.ownContext.sources } }
        set { self.context.sources = newValue }
    }

    /// Changes the state `fetching`, without a copy of its arrays.
    ///
    /// - Returns: What `body` returns; nil in another state.
    @discardableResult
    mutating func withFetching<Answer>(_ body: (inout Fetching) -> Answer) -> Answer? {
        guard case .fetching(var fetching) = self.present else { return nil }
        // Gives up the other reference to each array, so that changing one does not copy it.
        self.present = .discarding
        defer { self.present = .fetching(fetching) }
        return body(&fetching)
    }

    // MARK: Observing

    package var conclusion: DownloadConclusion? {
        if case .resting(let conclusion) = self.state { return conclusion }
        return nil
    }

    /// Whether the first request has not yet determined what to fetch.
    package var isProbing: Bool {
        if case .probing = self.state { return true }
        return false
    }

    package var isQueued: Bool { self.state == .queued }

    /// Whether a connection was closed because it stalled, was too slow or its head took too long, and not because it
    /// is no longer needed.
    package func isFaulted(_ id: LeaseID) -> Bool {
        let lease =
            switch self.state {
            case .probing(let probing): probing.lease
            case .fetching(let fetching): fetching.lease(id)
            case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting: Lease?.none
            }
        return switch lease?.revocation {
        case .stalled, .headTooSlow, .tooSlow: lease?.id == id
        case .stopping, .silent, .outrun, .yielding, nil: false
        }
    }

    /// Whether the destination is being surveyed.
    package var isSurveying: Bool { if case .surveying = self.state { true } else { false } }

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

    // MARK: Commands

    package mutating func start() -> [DownloadAction] {
        guard case .queued = self.state else { return [] }
        self.state = .surveying()
        return [.survey]
    }

    /// Resumes after a pause or a failure. Has no effect on a running download.
    package mutating func resume() -> [DownloadAction] {
        switch self.state {
        case .resting(.paused), .resting(.failed):
            self.sources.reinstate()
            self.state = .queued
        case .settling(let settling) where settling.stop == .pause: self.interruption.isResumed = true
        case .preparing where self.interruption.stop == .pause: self.interruption.stop = nil
        // The step was interrupted, and begins again.
        case .surveying where self.interruption.stop == .pause, .placing where self.interruption.stop == .pause:
            self.interruption.isResumed = true
        case .queued, .surveying, .probing, .preparing, .fetching, .settling, .placing, .discarding, .resting: break
        }
        return []
    }

    package mutating func pause() -> [DownloadAction] { self.stop(.pause) }

    package mutating func cancel(keepingPartial: Bool) -> [DownloadAction] {
        self.stop(.cancel(keepingPartial: keepingPartial))
    }

    mutating func stop(_ stop: Stop) -> [DownloadAction] {
        self.interruption.isResumed = false
        switch self.state {
        case .queued:
            return self.settled(stop)
        case .preparing:
            self.interruption.stop = Self.stronger(self.interruption.stop, stop)
            return []
        case .discarding:
            return []
        case .surveying, .placing:
            self.interruption.stop = Self.stronger(self.interruption.stop, stop)
            return [.interrupt]
        case .probing(var probing):
            guard let lease = probing.lease else { return self.settled(stop) }
            probing.lease = nil
            self.state = .settling(Settling(leases: [lease.id], stop: stop, hasPart: false))
            return [.revoke(lease.id)]
        case .fetching(let fetching):
            return self.leave(fetching, stop, hasPart: true)
        case .settling(var settling):
            settling.stop = Self.stronger(settling.stop, stop)
            self.state = .settling(settling)
            return []
        case .resting(.paused), .resting(.failed):
            return stop == .pause ? [] : self.settled(stop)
        case .resting:
            return []
        }
    }

    /// The stop that remains of two. A cancellation outranks a pause, and one that deletes outranks all others. A pause
    /// does not replace a failure.
    static func stronger(_ before: Stop?, _ now: Stop) -> Stop {
        switch (before, now) {
        case (.cancel(keepingPartial: false), _): .cancel(keepingPartial: false)
        case (.cancel, .pause): .cancel(keepingPartial: true)
        case (.fail(let failure), .pause): .fail(failure)
        case (_, _): now
        }
    }

    // MARK: Time

    package mutating func tick(now: Duration) -> [DownloadAction] {
        if let failure = self.overdue(now: now) { return self.stop(.fail(failure)) }
        switch self.state {
        case .probing(var probing):
            let hasOther = probing.canMove && self.sources.hasUnfailed(besides: probing.source)
            let actions = probing.tick(
                patience: self.settings.options.headPatience(isOnly: !hasOther),
                host: self.settings.hosts[probing.source.rawValue], now: now)
            if !actions.isEmpty { self.state = .probing(probing) }
            return actions
        case .fetching(let fetching):
            let isDue = self.checkpoints.request(bytesDone: fetching.plan.bytesDone, now: now)
            let actions: [DownloadAction] = isDue ? [.checkpoint(isPause: false)] : []
            return actions + self.updateFetching { $0.tick(now: now) }
        case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting:
            return []
        }
    }

    /// The failure to report if the run exceeds its time limit. Work on disk is never interrupted for it.
    private mutating func overdue(now: Duration) -> DownloadError? {
        guard let limit = self.settings.timeLimit else { return nil }
        switch self.state {
        case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting: return nil
        // All bytes have arrived; only the disk and comparisons are awaited.
        case .fetching(let fetching) where fetching.outcome != nil || fetching.plan.isComplete: return nil
        case .probing, .fetching: break
        }
        let startedAt = self.startedAt ?? now
        self.startedAt = startedAt
        guard now - startedAt >= limit else { return nil }
        return DownloadError(.network, "the time limit of \(limit.inSeconds) s was reached", isTransient: false)
    }
}
