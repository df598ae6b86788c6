import SegmentedDownloadCore
import SystemPackage

/// The state that the engine's loop owns: the state machine, the active leases, and what was reported to observers.
struct EngineState {
    struct Entry {
        let job: DownloadJob
        var leases: [SegmentLease] = []
        var isStepping = false
        var stepsWaiting: [ManifestStep] = []
        var startedAt: Duration = .zero
        var meter = ThroughputMeter(start: .zero)
        /// Bytes received by leases that have ended.
        var bytesBefore: Int64 = 0
        var isReported = false
        /// Whether an attempt has failed and no request has been sent since.
        var awaitsRetry = false
    }

    private var machine: GroupStateMachine
    private var generator: SplitMix64
    var entries: [Entry] = []
    /// The downloads whose part is being closed.
    var closing = ClosingJobs()
    private var indices = DownloadIndices()
    /// Sorted indices of started downloads that have not concluded. Ticks visit only these.
    private var active: [Int] = []
    private var isClosed = false
    private var resumesNothing = false
    private var ticks = 0

    init(machine: GroupStateMachine, seed: UInt64) {
        self.machine = machine
        self.generator = SplitMix64(seed: seed)
    }

    /// The notices of a group that makes no more requests.
    mutating func leave(now: Duration) -> [HostNotice] { self.machine.leave(now: now) }

    var isFinished: Bool { self.isClosed && self.machine.isIdle && self.closing.isEmpty }

    var jobs: [DownloadJob] { self.entries.map(\.job) }

    mutating func randomNumber() -> UInt64 { self.generator.next() }

    // MARK: Messages

    /// Handles a message.
    ///
    /// - Returns: The actions to perform.
    mutating func handle(_ message: DownloadEngine.Message, now: Duration) -> [GroupAction] {
        switch message {
        case .add(let job):
            self.append(job)
            return self.machine.handle(.added(job.id, job.settings, seed: self.generator.next()), now: now)
        case .move(let id, let other):
            return self.machine.handle(.moved(id, before: other), now: now)
        case .remove(let id):
            let actions = self.machine.handle(.removed(id), now: now)
            if !self.machine.holds(id) { self.forget(id) }
            return actions
        case .ask(let job, let event, let ticket):
            let actions = self.handle(.event(job.id, event), now: now)
            // If the event itself leads to a conclusion, the ticket is released by the action that concludes.
            let concludes = actions.contains { action in
                if case .download(job.id, .conclude) = action { true } else { false }
            }
            let rests = self.machine.ask(job.id) { $0.conclusion != nil } ?? true
            job.broadcaster.handle(ticket, isDone: rests && !concludes)
            return actions
        case .closed(let id, let conclusion, let part):
            if let job = self.job(id) { self.conclude(job, conclusion, part, now: now) }
            return []
        case .stopResuming:
            self.resumesNothing = true
            return []
        case .close:
            self.isClosed = true
            return []
        case .tick:
            for index in self.active { self.observe(index, now: now) }
            let actions = self.machine.handle(.tick, now: now)
            self.ticks += 1
            if self.ticks % DownloadEngine.ticksPerProgress == 0 {
                for index in self.active { self.reportProgress(index) }
            }
            return actions
        case .limits(let limits):
            for index in self.active { self.observe(index, now: now) }
            return self.machine.handle(.limits(limits.group), now: now) + self.machine.handle(.rateChanged, now: now)
        case .noticed(let notices):
            let actions = self.machine.handle(.noticed(notices), now: now)
            for index in self.active { self.noteWaiting(self.entries[index].job, now: now) }
            return actions
        case .adjust(let event):
            for index in self.active { self.observe(index, now: now) }
            return self.machine.handle(event, now: now)
        case .limit:
            return self.machine.handle(.rateChanged, now: now)
        case .snapshot:
            return []
        case .event(_, .resume) where self.resumesNothing:
            return []
        case .event(let id, let event):
            guard let index = self.index(id) else { return self.machine.handle(.download(id, event), now: now) }
            self.observe(index, now: now)
            let actions = self.machine.handle(.download(id, event), now: now)
            if case .ended(let lease, _) = event {
                self.close(lease, index)
                self.noteRetrying(index)
            }
            if case .resume = event { self.resumed(self.entries[index].job) }
            self.entries[index].job.count(connections: self.machine.connections(id))
            return actions
        }
    }

    /// Withdraws pauses that are still being waited for, and updates the state of a download that was resumed.
    private func resumed(_ job: DownloadJob) {
        guard self.machine.ask(job.id, { $0.conclusion == nil }) == true else { return }
        job.broadcaster.reopen()
        job.broadcaster.withdrawPauses()
        if self.machine.ask(job.id, { $0.isQueued || $0.isSurveying }) == true { job.update(state: .queued) }
    }

    private mutating func observe(_ index: Int, now: Duration) {
        let observations = self.entries[index].leases.map(\.observation)
        self.machine.observe(self.entries[index].job.id, observations, now: now)
        let bytes = observations.reduce(self.entries[index].bytesBefore) { $0 + $1.bytesReceived }
        self.entries[index].meter.record(bytes, at: now)
    }

    // MARK: Leases

    func index(_ id: DownloadID) -> Int? { self.indices[id] }

    private mutating func append(_ job: DownloadJob) {
        self.indices[job.id] = self.entries.count
        self.entries.append(Entry(job: job))
    }

    /// Removes an entry. The last entry takes its place.
    private mutating func forget(_ id: DownloadID) {
        guard let index = self.index(id) else { return }
        let last = self.entries.count - 1
        self.active.removeAll { $0 == index }
        self.entries.swapAt(index, last)
        self.entries.removeLast()
        self.indices[id] = nil
        guard index != last else { return }
        self.indices[self.entries[index].job.id] = index
        guard self.active.last == last else { return }
        self.active.removeLast()
        self.active.insert(index, at: self.active.firstIndex { $0 > index } ?? self.active.endIndex)
    }

    func weight(of id: DownloadID) -> Double { self.machine.weight(id) }

    /// Whether the first request of a download has not yet determined what to fetch.
    func isProbing(_ id: DownloadID) -> Bool { self.machine.ask(id) { $0.isProbing } ?? false }

    func job(_ id: DownloadID) -> DownloadJob? { self.index(id).map { self.entries[$0].job } }

    func lease(_ lease: LeaseID, of id: DownloadID) -> SegmentLease? {
        self.index(id).flatMap { self.entries[$0].leases.first { $0.order.lease == lease } }
    }

    mutating func open(_ order: FetchOrder, of id: DownloadID) -> SegmentLease {
        let lease = SegmentLease(order)
        if let index = self.index(id) {
            self.entries[index].leases.append(lease)
            self.entries[index].awaitsRetry = false
            let job = self.entries[index].job
            if job.state == .retrying { job.update(state: self.entries[index].isReported ? .running : .probing) }
            self.entries[index].job.count(requests: 1, connections: self.machine.connections(id))
        }
        return lease
    }

    /// Whether a lease is revoked because its connection is late, silent or slow.
    func isFaulted(_ lease: LeaseID, of id: DownloadID) -> Bool {
        self.machine.ask(id) { $0.isFaulted(lease) } ?? false
    }

    private mutating func close(_ id: LeaseID, _ index: Int) {
        guard let position = self.entries[index].leases.firstIndex(where: { $0.order.lease == id }) else { return }
        let received = self.entries[index].leases.remove(at: position).observation.bytesReceived
        self.entries[index].bytesBefore += received
        self.entries[index].job.count(bytesFetched: received)
    }

    // MARK: Events of downloads

    mutating func noteStart(of job: DownloadJob, now: Duration) {
        guard let index = self.index(job.id) else { return }
        // An active download that surveys again keeps its start time.
        if !self.active.contains(index) {
            self.entries[index].startedAt = now
            self.active.append(index)
            self.active.sort()
        }
        job.update(state: .probing)
        self.noteWaiting(job, now: now)
    }

    /// Reports that a download waits because its host refused another process.
    private func noteWaiting(_ job: DownloadJob, now: Duration) {
        guard let until = self.machine.waitsElsewhere(job.id, now: now) else { return }
        let seconds = Int((until - now).inSeconds.rounded(.up))
        job.broadcaster.send(
            .note(
                "\(job.request.source.host) refused a request of another process of this machine; waiting \(seconds) s")
        )
    }

    /// Sets the state to `retrying` if an attempt has failed and no connection is left.
    private func noteRetrying(_ index: Int) {
        let entry = self.entries[index]
        guard entry.awaitsRetry, self.machine.connections(entry.job.id) == 0,
            self.machine.ask(entry.job.id, { $0.isProbing || $0.plan != nil }) == true
        else { return }
        entry.job.update(state: .retrying)
    }

    private func progress(_ entry: Entry) -> DownloadProgress {
        var progress = entry.job.progress
        if let (done, total) = self.machine.ask(
            entry.job.id, { $0.plan.map { ($0.bytesDone, $0.completeLength) } }) ?? nil
        {
            progress.bytesDone = done
            progress.bytesTotal = total
        }
        progress.rate = entry.meter.rate
        progress.connections = self.machine.connections(entry.job.id)
        return progress
    }

    /// The status of the download's segments; empty if there is no plan.
    func segments(of job: DownloadJob, now: Duration) -> [SegmentStatus] {
        guard let index = self.index(job.id), let plan = self.machine.ask(job.id, { $0.plan }) ?? nil else { return [] }
        let orders = self.entries[index].leases.map(\.order)
        // Without mirrors a segment has its own retry time. With mirrors a failed segment may be fetched from another
        // source at once, and only the download as a whole is retrying.
        let isRetrying = job.state == .retrying
        return plan.segments.map { segment in
            let order = segment.lease.flatMap { lease in orders.first { $0.lease == lease } }
            let state: SegmentStatus.State =
                segment.isComplete
                ? .done : segment.lease != nil ? .fetching : isRetrying || segment.retryAt > now ? .retrying : .waiting
            return SegmentStatus(
                segment: segment.id.rawValue, start: segment.lowerBound, position: segment.position,
                end: segment.upperBound == .max ? nil : segment.upperBound, state: state,
                source: state == .fetching ? order?.source.rawValue : nil)
        }
    }

    private mutating func reportProgress(_ index: Int) {
        let entry = self.entries[index]
        guard entry.isReported, self.machine.ask(entry.job.id, { $0.plan != nil }) == true else { return }
        let progress = self.progress(entry)
        entry.job.update(progress: progress)
        entry.job.broadcaster.send(.progress(progress))
    }

    mutating func publish(_ report: DownloadReport, of job: DownloadJob) {
        switch report {
        case .started(let resource, let resumedFrom, let segmented):
            guard let index = self.index(job.id) else { return }
            self.entries[index].isReported = true
            job.update(state: .running)
            var progress = job.progress
            progress.bytesDone = resumedFrom
            progress.bytesTotal = resource.completeLength
            job.update(progress: progress)
            let validator = resource.validator == Validator.none ? nil : "\(resource.validator)"
            job.broadcaster.send(
                .started(
                    .init(
                        url: job.location, path: FilePath(job.path), bytesTotal: resource.completeLength,
                        resumedFrom: resumedFrom, isSegmented: segmented, validator: validator)))
            if resource.endsWithConnection {
                job.broadcaster.send(
                    .note("the server does not state the file's length, so it cannot be proved complete"))
            }
            if job.isUnexpectedPage {
                job.broadcaster.send(
                    .note("the server sends a web page (text/html) under this name; check that it is your file"))
            }
            if let coding = resource.contentEncoding {
                job.broadcaster.send(
                    .note("the server sends the file with content coding \(coding.printable); it is stored as sent"))
            }
        case .segmentOpened(let id, let range, let source): self.publish(.opened, id, range, source, of: job)
        case .segmentSplit(let id, let range): self.publish(.split, id, range, nil, of: job)
        case .segmentDone(let id, let range, let source): self.publish(.done, id, range, source, of: job)
        case .segmentRetry(let id, let range, let source): self.publish(.retry, id, range, source, of: job)
        case .retrying(let failure, let attempt, let delay):
            if let index = self.index(job.id) {
                self.entries[index].awaitsRetry = true
                self.noteRetrying(index)
            }
            job.broadcaster.send(.retrying(failure, attempt: attempt, delay: delay))
        case .note(let text): job.broadcaster.send(.note(text))
        case .checkpointed(let bytes):
            job.update(bytesDurable: bytes)
            job.broadcaster.send(.checkpoint(bytesDurable: bytes))
        case .connectionCountFound(let connections): job.record(connectionCount: connections)
        case .setAside(let difference): job.notePart(differing: difference)
        case .restarted(let difference):
            // The bytes done so far are of the old version. If its part is kept, a later report has its length.
            var progress = job.progress
            progress.bytesDone = 0
            progress.bytesTotal = nil
            job.update(progress: progress)
            job.update(bytesDurable: 0)
            job.broadcaster.send(.note("the remote file changed: \(difference); starting over"))
        }
    }

    private func publish(
        _ state: DownloadEvent.SegmentChange.State, _ id: Segment.ID, _ range: Range<Int64>, _ source: SourceID?,
        of job: DownloadJob
    ) {
        let end = range.upperBound == .max ? nil : range.upperBound
        job.broadcaster.send(
            .segment(
                .init(
                    segment: id.rawValue, start: range.lowerBound, end: end, state: state,
                    source: source.map { job.description(of: $0) })))
    }

    /// Ends the ticks and the steps of a download that has come to rest.
    mutating func rest(_ job: DownloadJob) {
        guard let index = self.index(job.id) else { return }
        self.active.removeAll { $0 == index }
        self.entries[index].isStepping = false
        self.entries[index].stepsWaiting = []
    }

    /// Reports that a download has come to rest.
    ///
    /// - Parameter part: The part that it had, which is closed; nil if it had none.
    mutating func conclude(
        _ job: DownloadJob, _ conclusion: DownloadConclusion, _ part: PartialFile? = nil, now: Duration
    ) {
        self.rest(job)
        guard let index = self.index(job.id) else { return }
        let entry = self.entries[index]
        var progress = self.progress(entry)
        progress.connections = 0
        if let file = conclusion.file {
            progress.bytesDone = file.length
            progress.bytesTotal = file.length
        } else if let part {
            // Bytes that were written but not claimed, or could not be stored, are lost to a later run.
            progress.bytesDone = part.lengthKept
            // A length found at the end of a stream is not recorded, so it is unknown to the run that starts over.
            if part.header.resource.completeLength == nil { progress.bytesTotal = nil }
        }
        job.conclude(&progress, part, isInPlace: conclusion.file != nil)
        job.endClaim(isKept: conclusion.file?.wasThere == true)
        self.entries[index].isReported = false
        switch conclusion {
        case .completed(let file):
            job.update(state: .completed)
            job.broadcaster.send(.completed(job.result(file, duration: now - entry.startedAt)))
        case .failed(let failure):
            job.update(state: .failed)
            job.broadcaster.send(.failed(failure, progress))
        case .paused:
            job.update(state: .paused)
            job.broadcaster.send(.paused(progress))
        case .cancelled:
            job.update(state: .cancelled)
            job.broadcaster.send(.cancelled)
        }
    }

    /// Ends the events of all jobs after the loop has ended. Downloads that have not ended are reported as cancelled.
    func finishAll() {
        for entry in self.entries { entry.job.broadcaster.finish() }
    }
}
