/// Makes all decisions about one download, without side effects.
///
/// It takes events and returns actions. Time and random numbers are passed in as values, so that a run can be replayed.
package struct DownloadStateMachine: Hashable, Sendable {
    enum State: Hashable {
        /// Waiting for its turn. Becomes `surveying`, `discarding` or `resting`.
        case queued
        /// The destination is being inspected. Becomes `probing`, `discarding`, `resting`, or `queued` if it was paused and resumed.
        case surveying
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
        /// All bytes are on disk; the file is being verified and moved into place. Becomes `resting`, `settling`,
        /// `surveying`, `fetching` or `discarding`.
        case placing
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

    /// 64 MiB: the number of written bytes after which a checkpoint is due, and so the most that a power failure can
    /// cost.
    package static let checkpointLength: Int64 = 64 << 20

    /// The longest time that written bytes stay unsynced.
    package static let checkpointInterval: Duration = .seconds(5)

    package internal(set) var settings: DownloadSettings
    var state: State = .queued
    var sources: SourceTable
    /// The state before verification, in case bytes must be fetched again from another source.
    var beforePlacing: Fetching?
    /// The sources from which everything was already fetched alone in this run.
    var trusted: [SourceID] = []
    var generator: SplitMix64
    var leaseNext = 0
    /// The stop to carry out after the current step.
    var pendingStop: Stop?
    var isSurveyed = false
    var mustBeginAnew = false
    /// Whether this run has begun to write the part. From then on it resumes that part, regardless of the
    /// `continuation` setting.
    var hasBegun = false
    /// If set, only the bytes of an adopted part before this offset are trusted.
    var adoptsUpTo: Int64?
    var restarts = 0
    /// How often the URL led to another resource without new bytes in between.
    var relocations = 0
    var hasRelocated = false
    /// The most bytes that were on disk when the URL led to another resource.
    var bytesAtRelocation: Int64 = 0
    /// Whether a digest, and not the URL, identifies the surveyed part.
    var isPinned = false
    var healings = 0
    /// Whether the part is surveyed again within a run. Then it may be gone.
    var isHealing = false
    /// The number of checkpoints and revisions without an answer. They are performed in order.
    var checkpointsPending = 0
    var resumesWhenSettled = false
    var checkpointAt: Duration = .zero
    var bytesAtCheckpoint: Int64 = 0
    /// The first tick of this run at which it needed the network.
    var startedAt: Duration?

    /// How often a run restarts when the resource changes. After that, the change is reported.
    package static let restartsMax = 3

    /// How often a URL may lead to another resource without new bytes in between. After that, a change is reported.
    package static let relocationsMax = 8

    /// How often a run surveys a part again that other processes change. After that, the failure is reported.
    package static let healingsMax = 3

    package init(settings: DownloadSettings, seed: UInt64) {
        self.settings = settings
        self.sources = SourceTable(hosts: settings.hosts)
        self.generator = SplitMix64(seed: seed)
        if settings.startsPaused { self.state = .resting(.paused) }
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
    package var isSurveying: Bool { self.state == .surveying }

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
        self.state = .surveying
        return [.survey]
    }

    /// Resumes after a pause or a failure. Has no effect on a running download.
    package mutating func resume() -> [DownloadAction] {
        switch self.state {
        case .resting(.paused), .resting(.failed):
            self.sources.reinstate()
            self.state = .queued
        case .settling(let settling) where settling.stop == .pause: self.resumesWhenSettled = true
        case .preparing where self.pendingStop == .pause: self.pendingStop = nil
        // The step was interrupted, and begins again.
        case .surveying where self.pendingStop == .pause, .placing where self.pendingStop == .pause:
            self.resumesWhenSettled = true
        case .queued, .surveying, .probing, .preparing, .fetching, .settling, .placing, .discarding, .resting: break
        }
        return []
    }

    package mutating func pause() -> [DownloadAction] { self.stop(.pause) }

    package mutating func cancel(keepingPartial: Bool) -> [DownloadAction] {
        self.stop(.cancel(keepingPartial: keepingPartial))
    }

    mutating func stop(_ stop: Stop) -> [DownloadAction] {
        self.resumesWhenSettled = false
        switch self.state {
        case .queued:
            return self.settled(stop)
        case .preparing:
            self.pendingStop = Self.stronger(self.pendingStop, stop)
            return []
        case .discarding:
            return []
        case .surveying, .placing:
            self.pendingStop = Self.stronger(self.pendingStop, stop)
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
            // Fewer bytes may be on disk than before, because some were withdrawn.
            self.bytesAtCheckpoint = min(self.bytesAtCheckpoint, bytes)
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
