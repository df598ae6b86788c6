import SegmentedDownloadCore
import Synchronization

/// Runs a group of downloads in one loop: it receives events, passes them to the state machine, and starts child tasks
/// for the actions returned.
///
/// The loop owns all state. A child task does one thing and posts the result; its failure never fails the group.
final class DownloadEngine: Sendable {
    enum Message: Sendable {
        case add(DownloadJob)
        case event(DownloadID, MachineEvent)
        /// Move a queued download in front of another, or to the front if `before` is `nil`.
        case move(DownloadID, before: DownloadID?)
        /// Remove a download that is at rest.
        case remove(DownloadID)
        /// The part of a download that has come to rest is closed.
        case closed(DownloadID, DownloadConclusion, PartialFile)
        /// Handle an event on behalf of a caller that waits until it is carried out.
        case ask(DownloadJob, MachineEvent, ticket: Int)
        case tick
        /// Apply new limits for the group.
        case limits(DownloadLimits)
        /// Apply notices of other processes. The times are the engine's.
        case noticed([HostNotice])
        /// Apply a new priority or number of segments for a download.
        case adjust(GroupEvent)
        /// Apply a new rate limit for a download; `nil` removes it.
        case limit(DownloadID, bytesPerSecond: Int64?)
        /// Answer the pending requests for segment snapshots.
        case snapshot
        /// Resume no downloads any more.
        case stopResuming
        /// Add no more downloads, and run until all are at rest.
        case close
    }

    /// 100 ms: the interval at which stalls, rates and retries are evaluated.
    static let tick: Duration = .milliseconds(100)

    /// Every second tick, so that observers get five progress events a second.
    static let ticksPerProgress = 2

    private struct Allowance {
        var limits: DownloadLimits
        /// Whether the transport currently enforces the limits.
        var isInForce = false
    }

    private let transport: any HTTPTransport
    private let storage: any Storage
    let clock: any EngineClock
    private let allowance: Mutex<Allowance>
    let gate: RateGate
    private let snapshots = SegmentSnapshot()
    private let seed: UInt64
    private let threads: EngineThreads
    /// The notices that processes of this machine share; nil if they share none.
    private let notices: NoticeBoard?
    /// Unbounded. Its length is limited by its writers: a child posts a few messages and ends, and ticks come at a
    /// fixed rate.
    private let inbox = Mailbox<Message>()
    /// Delivers the group's events.
    private let hub: GroupHub

    init(
        transport: any HTTPTransport, storage: any Storage, clock: any EngineClock, limits: DownloadLimits,
        seed: UInt64, threads: EngineThreads, hub: GroupHub, notices: NoticeBoard? = nil
    ) {
        self.notices = notices
        self.hub = hub
        self.transport = transport
        self.storage = storage
        self.clock = clock
        self.allowance = Mutex(Allowance(limits: limits))
        self.gate = RateGate(clock: clock)
        self.seed = seed
        self.threads = threads
        self.gate.update(limits.rates)
    }

    /// The limits that the group's downloads share.
    var currentLimits: DownloadLimits { self.allowance.withLock { $0.limits } }

    func update(_ limits: DownloadLimits) {
        // Posted while the lock is held, so that concurrent updates reach the transport and the loop in the same order.
        self.allowance.withLock { allowance in
            allowance.limits = limits
            if allowance.isInForce { self.transport.limit(limits.receive, for: ObjectIdentifier(self)) }
            self.post(.limits(limits))
        }
    }

    /// Applies the limits to the transport while the engine runs, and lifts them afterwards: a client's groups share
    /// the transport.
    private func enforceLimits(_ isInForce: Bool) {
        self.allowance.withLock { allowance in
            allowance.isInForce = isInForce
            self.transport.limit(isInForce ? allowance.limits.receive : nil, for: ObjectIdentifier(self))
        }
    }

    func post(_ message: Message) {
        self.inbox.post(message)
    }

    /// A snapshot of the download's segments; empty if there is no plan or the engine has ended.
    func segments(of job: DownloadJob) async -> [SegmentStatus] {
        await self.snapshots.segments(of: job) { self.post(.snapshot) }
    }

    /// Runs until the group is closed and every download is at rest, or until the task is cancelled.
    func run() async {
        self.enforceLimits(true)
        defer { self.enforceLimits(false) }
        // Limits that were changed before this point are in the inbox too.
        var state = EngineState(machine: GroupStateMachine(limits: self.currentLimits.group), seed: self.seed)
        // Before the first request.
        if let news = self.notices?.news(now: self.clock.now) {
            _ = state.handle(.noticed(news), now: self.clock.now)
        }
        await withDiscardingTaskGroup { group in
            group.addTask { await self.tickForever() }
            group.addTask { await self.gate.run() }
            while !state.isFinished {
                let messages = await self.inbox.next()
                guard !messages.isEmpty else { break }
                // Observers are woken once for all that these messages bring about.
                self.hub.hold()
                for message in messages where !state.isFinished { self.handle(message, state: &state, in: &group) }
                self.hub.release()
            }
            self.snapshots.close()
            group.cancelAll()
        }
        let now = self.clock.now
        for notice in state.leave(now: now) { self.notices?.post(notice, now: now) }
        let jobs = state.jobs.filter { $0.part != nil }
        if !jobs.isEmpty { await self.threads.run(.stepping) { for job in jobs { job.close() } } }
        state.finishAll()
    }

    private func handle(_ message: Message, state: inout EngineState, in group: inout DiscardingTaskGroup) {
        guard !state.closing.hold(message) else { return }
        self.adjustGate(after: message)
        var actions = state.handle(message, now: self.clock.now)
        var next = 0
        while next < actions.count {
            actions += self.perform(actions[next], state: &state, in: &group)
            next += 1
        }
        self.beginNextStep(after: message, state: &state, in: &group)
        if case .snapshot = message { self.snapshots.answer { state.segments(of: $0, now: self.clock.now) } }
        guard case .closed(let id, _, _) = message else { return }
        let released = state.closing.end(id)
        for job in released.surveys { self.survey(job, in: &group) }
        for message in released.messages { self.handle(message, state: &state, in: &group) }
    }

    private func adjustGate(after message: Message) {
        switch message {
        case .add(let job):
            if let rate = job.request.bytesPerSecond { self.gate.update(job.id, bytesPerSecond: rate) }
        case .limits(let limits): self.gate.update(limits.rates)
        case .limit(let id, let rate): self.gate.update(id, bytesPerSecond: rate)
        case .adjust(.priority(let id, let priority)):
            self.gate.update(id, weight: GroupStateMachine.weight(of: priority))
        case .event, .closed, .move, .remove, .ask, .tick, .noticed, .adjust, .snapshot, .stopResuming, .close:
            break
        }
    }

    private func tickForever() async {
        var next = self.clock.now
        while !Task.isCancelled {
            // Ticks missed while the machine was suspended are skipped.
            next = max(next + Self.tick, self.clock.now)
            guard (try? await self.clock.sleep(until: next)) != nil else { return }
            self.threads.unblock()
            if let news = self.notices?.news(now: self.clock.now), !news.isEmpty { self.post(.noticed(news)) }
            self.post(.tick)
        }
    }

    /// Performs one action.
    ///
    /// - Returns: Actions that the state machine requests as an immediate consequence.
    private func perform(
        _ action: GroupAction, state: inout EngineState, in group: inout DiscardingTaskGroup
    ) -> [GroupAction] {
        switch action {
        case .fetch(let id, let order):
            guard let job = state.job(id) else { return [] }
            let lease = state.open(order, of: id)
            let fetcher = self.fetcher(lease, job)
            self.threads.run(state.isProbing(id) ? .asking : .fetching(id), in: &group) {
                self.post(.event(id, .ended(order.lease, await fetcher.run())))
            }
        case .download(let id, let action):
            guard let job = state.job(id) else { return [] }
            return self.perform(action, job, state: &state, in: &group)
        case .post(let notice):
            self.notices?.post(notice, now: self.clock.now)
        }
        return []
    }

    private func fetcher(_ lease: SegmentLease, _ job: DownloadJob) -> SegmentFetcher {
        SegmentFetcher(
            lease: lease, follower: job.follower(to: lease.order.source), part: { job.part },
            suggestName: { job.record(from: $0) },
            noteStated: { try job.note(stated: $0, comparing: lease.order.isSample ? lease.order.source : nil) },
            ask: { question in
                switch question {
                case .responded(let response, let name):
                    self.post(.event(job.id, .responded(lease.order.lease, response, suggestedName: name)))
                case .limitReached:
                    self.post(.event(job.id, .limitReached(lease.order.lease)))
                }
            },
            pass: RatePass(
                gate: self.gate, download: job.id, host: job.request.sources[lease.order.source.rawValue].host),
            threads: self.threads)
    }

    private func perform(
        _ action: DownloadAction, _ job: DownloadJob, state: inout EngineState, in group: inout DiscardingTaskGroup
    ) -> [GroupAction] {
        switch action {
        case .answer(let lease, let decision):
            state.lease(lease, of: job.id)?.answer(decision)
        case .narrow(let lease, let limit):
            let actual = state.lease(lease, of: job.id)?.narrow(to: limit) ?? .max
            return state.handle(.event(job.id, .narrowed(lease, to: actual)), now: self.clock.now)
        case .revoke(let lease):
            state.lease(lease, of: job.id)?.revoke(asFaulted: state.isFaulted(lease, of: job.id))
        case .survey:
            state.noteStart(of: job, now: self.clock.now)
            job.beginInterruptible()
            self.gate.update(job.id, weight: state.weight(of: job.id))
            if !state.closing.hold(surveyOf: job) { self.survey(job, in: &group) }
        case .prepare(let preparation):
            let id = state.randomNumber()
            do throws(DownloadError) {
                if try job.prepareInMemory(preparation, id: id) { return self.prepared(job, state: &state, in: &group) }
            } catch {
                return state.handle(.event(job.id, .storageFailed(error)), now: self.clock.now)
            }
            self.spawn(job, in: &group) {
                guard let finding = try await job.prepare(preparation, id: id) else {
                    return Self.preparedEvent(of: job)
                }
                return .found(finding.survey)
            }
        case .checkpoint(let isPause):
            if state.begin(.checkpoint(isPause: isPause), of: job.id) {
                self.perform(.checkpoint(isPause: isPause), of: job, in: &group)
            }
        case .revise(let revision):
            if state.begin(.revision(revision), of: job.id) {
                self.perform(.revision(revision), of: job, in: &group)
            }
        case .replaceExisting:
            job.replaceExisting()
        case .require(let digests):
            job.require(digests)
        case .place(let length, let evidence):
            job.update(state: .verifying)
            job.beginInterruptible()
            self.spawn(job, in: &group) {
                .placed(try await job.place(length: length, evidence: evidence))
            }
        case .interrupt:
            job.interrupt()
        case .discard:
            self.spawn(job, in: &group) {
                try job.discard()
                return .discarded
            }
        case .report(let report):
            state.publish(report, of: job)
        case .conclude(let conclusion):
            switch conclusion {
            case .completed, .cancelled: self.gate.forget(job.id)
            case .failed, .paused: break
            }
            self.conclude(job, conclusion, state: &state, in: &group)
        }
        return []
    }

    private static func preparedEvent(of job: DownloadJob) -> MachineEvent {
        .prepared(job.part?.reader?.window, hasDigest: job.hasDigest)
    }

    /// Has the state machine handle at once that a part is ready.
    private func prepared(
        _ job: DownloadJob, state: inout EngineState, in group: inout DiscardingTaskGroup
    ) -> [GroupAction] {
        let message = Message.event(job.id, Self.preparedEvent(of: job))
        let actions = state.handle(message, now: self.clock.now)
        self.beginNextStep(after: message, state: &state, in: &group)
        return actions
    }

    private func survey(_ job: DownloadJob, in group: inout DiscardingTaskGroup) {
        self.spawn(job, in: &group) {
            .surveyed(try await job.survey().survey)
        }
    }

    /// Closes the part of a download that has come to rest, and then reports the end.
    private func conclude(
        _ job: DownloadJob, _ conclusion: DownloadConclusion, state: inout EngineState,
        in group: inout DiscardingTaskGroup
    ) {
        let part = job.takePart()
        // The part of a completed download was closed when it was put in place.
        guard let part, conclusion.file?.wasThere != false else {
            return state.conclude(job, conclusion, part, now: self.clock.now)
        }
        state.rest(job)
        state.closing.begin(job.id)
        // By a child, because a file system may write the file when it is closed.
        self.threads.run(.stepping, in: &group) {
            part.close()
            self.post(.closed(job.id, conclusion, part))
        }
    }

    /// Runs a storage step in a child task and posts its result.
    private func spawn(
        _ job: DownloadJob, in group: inout DiscardingTaskGroup,
        failing: @escaping @Sendable (DownloadError) -> MachineEvent = { .storageFailed($0) },
        _ step: @escaping @Sendable () async throws -> MachineEvent
    ) {
        self.threads.run(.stepping, in: &group) {
            do {
                self.post(.event(job.id, try await step()))
            } catch let failure as DownloadError {
                self.post(.event(job.id, failing(failure)))
            } catch let error as StorageError {
                self.post(.event(job.id, failing(error.failure)))
            } catch {
                self.post(.event(job.id, failing(DownloadError(.internal, "unexpected: \("\(error)".printable)"))))
            }
        }
    }

    private func beginNextStep(
        after message: Message, state: inout EngineState, in group: inout DiscardingTaskGroup
    ) {
        switch message {
        case .event(let id, .prepared(let window, _)):
            guard let job = state.job(id), let part = job.part else { return }
            if window != nil, let reader = part.reader { self.read(with: reader, of: job, in: &group) }
            if part.readBack != nil { self.threads.run(.reading, in: &group) { await part.readBackAlong() } }
        case .event(let id, .checkpointed), .event(let id, .revised), .event(let id, .checkpointFailed):
            guard let job = state.job(id), let step = state.endStep(of: id) else { return }
            self.perform(step, of: job, in: &group)
        case .add, .event, .closed, .move, .remove, .ask, .tick, .limits, .noticed, .adjust, .limit, .snapshot,
            .stopResuming, .close:
            break
        }
    }

    /// Starts the child task that reads the file in order while it is fetched.
    private func read(with reader: InOrderReader, of job: DownloadJob, in group: inout DiscardingTaskGroup) {
        let window = reader.window.id
        self.threads.run(.reading, in: &group) {
            do {
                try await reader.run { self.post(.event(job.id, .taken(upTo: $0, window: window))) }
            } catch {
                let failure = error as? DownloadError ?? DownloadError(.internal, "unexpected: \("\(error)".printable)")
                self.post(.event(job.id, .storageFailed(failure)))
            }
        }
    }

    private func perform(_ step: EngineState.ManifestStep, of job: DownloadJob, in group: inout DiscardingTaskGroup) {
        self.spawn(job, in: &group, failing: { .checkpointFailed($0) }) {
            switch step {
            case .checkpoint(let isPause):
                return .checkpointed(bytes: try await job.part?.checkpoint(isPause: isPause) ?? 0)
            case .revision(let revision):
                try await job.revise(revision)
                return .revised
            }
        }
    }
}
