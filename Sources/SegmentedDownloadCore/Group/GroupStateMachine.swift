/// Shares one budget of connections among many downloads. A single file is a group of one.
///
/// Scheduling pulls work: while the budget allows, the download with the fewest connections for its priority is asked
/// for its next segment. Only started downloads are examined, so a queued one costs nothing.
package struct GroupStateMachine: Hashable, Sendable {
    package struct Limits: Hashable, Sendable {
        /// Connections open at the same time, over all hosts.
        package var connections = 64
        /// Connections open at the same time to one host. Browsers use 6, download managers 16.
        package var connectionsPerHost = 16
        /// Files fetched at the same time, of short ones ``shortDownloads``. The others are queued. If there is no room
        /// otherwise, a file does not count before it has its first connection while its hosts are closed, see
        /// ``ConcurrencyBudget/Shortage/closed``.
        package var downloads = 5
        /// Files fetched at the same time while fewer than ``downloads`` of them are long. If it is not more than that,
        /// all files count alike.
        package var shortDownloads = 0
        /// The tasks of the job that this process is one of, which all use the same hosts; 1 without a job. Only the
        /// value at the beginning counts.
        package var tasks = 1

        package init() {}
    }

    /// The phase of a download, as far as scheduling needs it.
    enum Phase: Hashable {
        case queued
        /// It is determining what to fetch.
        case starting
        case fetching
        /// It needs no more connections.
        case ending
        case resting
    }

    struct Entry: Hashable {
        let id: DownloadID
        var machine: DownloadStateMachine
        /// Its share of connections is proportional to this.
        var weight: Double
        /// The number of its connections, including those being closed.
        var held = 0
        /// Whether it is being moved into place and is so short that the next download starts soon.
        var isBrief = false
        /// Whether it has at most ``GroupStateMachine/shortLength`` bytes, or is expected to before a response shows
        /// it.
        var isShort = false
        /// Whether it had a connection since it was started, or was started as a short file.
        var isAdmitted = false
        /// Whether one more connection may be of use, as of the last update. Most of the time none is, and to ask the
        /// machine costs more.
        var mayUseConnection = false
        /// How its host refuses it; for a task of a job only.
        var refusals = FileRefusals()
    }

    /// A connection reserved from the budget.
    struct Holding: Hashable {
        let download: DownloadID
        let lease: LeaseID
        let source: SourceID
        let host: String
        var wasAccepted = false
        /// Whether it is being closed.
        var isEnding = false
    }

    var limits: Limits
    var entries = DownloadTable()
    var queue = StartQueue()
    /// Whether the last file of which a response showed the length was short. Files that start are expected to be like
    /// it.
    var expectsShort = false
    /// The connections reserved from the budget, at most as many as it allowed.
    var holdings: [Holding] = []
    var budget: ConcurrencyBudget
    /// The download that each host refused last, until it serves one.
    private var suspects: [String: DownloadID] = [:]
    /// The actions collected while an event is handled, in order.
    var outbox: [GroupAction] = []
    /// Until this time connections move fast after a change; later, slowly.
    var settlesAt: Duration = .zero
    var rebalanceAt: Duration = .zero

    package init(limits: Limits) {
        self.limits = limits
        self.budget = ConcurrencyBudget(
            connectionsMax: limits.connections, connectionsPerHostMax: limits.connectionsPerHost, tasks: limits.tasks)
    }

    /// Whether every download is at rest. Nothing happens until an event starts one.
    package var isIdle: Bool { self.holdings.isEmpty && self.entries.isResting }

    package func machine(_ id: DownloadID) -> DownloadStateMachine? {
        self.index(id).map { self.entries[$0].machine }
    }

    /// Whether the download was added and not removed.
    package func holds(_ id: DownloadID) -> Bool { self.index(id) != nil }

    /// Reads from a download's state without copying it.
    package func ask<Answer>(_ id: DownloadID, _ question: (borrowing DownloadStateMachine) -> Answer) -> Answer? {
        guard let index = self.index(id) else { return nil }
        return question(self.entries[index].machine)
    }

    /// The number of entries, including vacant ones.
    package var placesCount: Int { self.entries.count }

    /// The number of connections in use for a download.
    package func connections(_ id: DownloadID) -> Int {
        self.index(id).map { self.entries[$0].held } ?? 0
    }

    /// The weight of a download, or that of the default priority if it was removed.
    package func weight(_ id: DownloadID) -> Double {
        self.index(id).map { self.entries[$0].weight } ?? Self.weight(of: 0.5)
    }

    /// The entries of downloads that are neither queued nor at rest, in order.
    var active: [Int] { self.entries.active }

    func index(_ id: DownloadID) -> Int? { self.entries.index(id) }

    /// Handles an event and returns the actions to perform.
    package mutating func handle(_ event: GroupEvent, now: Duration) -> [GroupAction] {
        switch event {
        case .added(let id, let settings, let seed): self.add(id, settings, seed: seed, now: now)
        case .tick:
            for index in self.active {
                self.update(index, now: now) { $0.tick(now: now) }
            }
            self.shed(now: now)
            self.rebalance(now: now)
        case .moved(let id, let other):
            guard let index = self.index(id) else { return [] }
            self.queue.move(index, before: other.map { self.index($0) ?? index })
        case .removed(let id): self.entries.remove(id)
        case .download(let id, let event):
            // The connections of a removed download must still be released.
            self.account(for: event, of: id, now: now)
            guard let index = self.index(id) else { break }
            self.update(index, now: now) { $0.handle(event, now: now) }
        case .limits(let limits):
            self.limits = limits
            self.budget.update(
                connectionsMax: limits.connections, connectionsPerHostMax: limits.connectionsPerHost)
            self.noteChange(now: now)
            self.shed(now: now)
        case .priority(let id, let priority):
            guard let index = self.index(id) else { return [] }
            self.entries[index].weight = Self.weight(of: priority)
            if self.entries[index].machine.isQueued { self.queue.add(index, priority: self.entries[index].weight) }
            self.noteChange(now: now)
        case .segments(let id, let segments):
            guard let index = self.index(id) else { return [] }
            self.update(index, now: now) { $0.update(segments: segments) }
            self.noteChange(now: now)
            self.shed(now: now)
        case .rateChanged:
            for index in self.active { self.update(index, now: now) { $0.reconsiderConnections() } }
        case .noticed(let notices): self.budget.noticed(notices, now: now)
        }
        self.schedule(now: now)
        for notice in self.budget.takeNotices() { self.outbox.append(.post(notice)) }
        defer { self.outbox = [] }
        return self.outbox
    }

    /// Returns the notices of a process that makes no more requests.
    package mutating func leave(now: Duration) -> [HostNotice] {
        self.budget.leave(now: now)
        return self.budget.takeNotices()
    }

    /// Records the progress of a download's leases. Call it just before handling an event.
    package mutating func observe(_ id: DownloadID, _ observations: [LeaseObservation], now: Duration) {
        guard let index = self.index(id) else { return }
        self.entries[index].machine.observe(observations, now: now)
    }

    private mutating func add(_ id: DownloadID, _ settings: DownloadSettings, seed: UInt64, now: Duration) {
        precondition(self.index(id) == nil, "a download is added once")
        var settings = settings
        if self.limits.tasks > 1 {
            settings.isOfJob = true
            settings.isPaced = true
            for host in settings.hosts { self.budget.admit(host, seed: seed, now: now) }
        }
        let entry = Entry(
            id: id, machine: DownloadStateMachine(settings: settings, seed: seed),
            weight: Self.weight(of: settings.priority))
        let index = self.entries.add(entry)
        if entry.machine.isQueued { self.queue.add(index, priority: entry.weight) }
    }

    /// 1/1000: practically no share. A weight of zero could not be compared with others.
    private static let weightMin = 0.001

    package static func weight(of priority: Double) -> Double {
        // The comparison is also false for NaN.
        priority > Self.weightMin ? min(priority, 1) : Self.weightMin
    }

    /// Runs a transition of one download, collects its actions and updates its phase.
    mutating func update(_ index: Int, now: Duration, _ body: (inout DownloadStateMachine) -> [DownloadAction]) {
        let id = self.entries[index].id
        let before = self.entries[index].machine.phase
        let actions = body(&self.entries[index].machine)
        for action in actions {
            switch action {
            case .revoke(let lease), .answer(let lease, .stop):
                if let holding = self.holding(id, lease) { self.holdings[holding].isEnding = true }
            case .place(let length, _): self.entries[index].isBrief = length <= Self.briefLength
            case .report(.retrying(let failure, let attempt, let delay)) where self.limits.tasks > 1:
                let delay = max(delay, self.delayUntilOpen(index, now: now))
                self.outbox.append(.download(id, .report(.retrying(failure, attempt: attempt, delay: delay))))
                continue
            case .survey, .replaceExisting, .require, .prepare, .answer(_, .proceed), .narrow, .checkpoint, .revise,
                .interrupt, .discard,
                .report,
                .conclude:
                break
            }
            self.outbox.append(.download(id, action))
        }
        self.entries[index].mayUseConnection = self.entries[index].machine.mayUseConnection
        self.move(index, from: before, to: self.entries[index].machine.phase, now: now)
    }

    private mutating func move(_ index: Int, from before: Phase, to after: Phase, now: Duration) {
        guard before != after else { return }
        self.noteChange(now: now)
        switch before {
        case .queued: self.queue.remove(index)
        case .starting: self.noteShort(index)
        case .fetching, .ending, .resting: break
        }
        if after == .queued { self.queue.add(index, priority: self.entries[index].weight) }
        self.entries.move(index, from: before, to: after)
    }

    /// Updates the budget: connections that an event frees, and what it shows about a host's limit.
    private mutating func account(for event: MachineEvent, of id: DownloadID, now: Duration) {
        switch event {
        case .responded(let lease, let response, _):
            guard let index = self.holding(id, lease) else { return }
            if case .refused(let status, _) = response {
                guard TransientStatus.refusals.contains(status) else { return }
                self.refused(self.holdings[index], response, now: now)
            } else if response.isFailure, self.isAdditional(self.holdings[index]) {
                self.refused(self.holdings[index], response, now: now)
            } else if !self.holdings[index].wasAccepted {
                self.holdings[index].wasAccepted = true
                self.budget.accepted(self.holdings[index].host, now: now)
                self.accepted(self.holdings[index])
            }
        case .ended(let lease, let end):
            guard let index = self.holding(id, lease) else { return }
            let holding = self.holdings.remove(at: index)
            if let index = self.index(id) {
                self.entries[index].held -= 1
                // A task of a job meets the host's restart in many files.
                if self.limits.tasks > 1, self.budget.hasAnswered(holding.host) {
                    self.entries[index].machine.noteContact()
                }
            }
            self.budget.release(holding.host, wasAccepted: holding.wasAccepted, wasCut: end != .finished, now: now)
            // A reset before the head while others are served indicates an origin that limits connections, not
            // requests.
            if case .failed(let failure) = end, [.network, .tls].contains(failure.code), !holding.wasAccepted {
                if self.holdings.contains(where: { $0.host == holding.host && $0.wasAccepted }) {
                    _ = self.budget.refused(holding.host, retryAfter: nil, isResponse: false, now: now)
                } else if failure.code == .network {
                    self.budget.unreachable(holding.host, now: now)
                }
            }
        case .surveyed, .found, .prepared, .taken, .storageFailed, .checkpointed, .checkpointFailed, .revised, .placed,
            .discarded,
            .narrowed, .limitReached, .pause, .resume, .cancel:
            break
        }
    }

    /// Whether the download has another connection to the same source. A response without the file then concerns the number
    /// of connections.
    private func isAdditional(_ holding: Holding) -> Bool {
        self.holdings.contains {
            $0.download == holding.download && $0.source == holding.source && $0.lease != holding.lease && !$0.isEnding
        }
    }

    /// Updates the budget after a refusal, and tells the download whether its host or the file is at fault.
    private mutating func refused(_ holding: Holding, _ response: RangeResponse, now: Duration) {
        let retryAfter: Duration? = if case .refused(_, let retryAfter) = response { retryAfter?.duration } else { nil }
        if let notice = response.notice(of: HostKey(holding.host), now: now) { self.outbox.append(.post(notice)) }
        guard let index = self.index(holding.download) else {
            _ = self.budget.refused(holding.host, retryAfter: retryAfter, now: now)
            return
        }
        // Of requests made together, a refusal may arrive before the answer to the one that is served.
        let hasOthers = self.holdings.contains {
            $0.host == holding.host && !$0.isEnding && ($0.download != holding.download || $0.lease != holding.lease)
        }
        self.entries[index].machine.noteRefusal(servesOthers: hasOthers)
        guard self.limits.tasks > 1 else {
            _ = self.budget.refused(holding.host, retryAfter: retryAfter, now: now)
            return
        }
        let others = self.holdings.filter { $0.host == holding.host && $0.wasAccepted }
        let isCrowd = others.contains { $0.download == holding.download }
        let isOfFile = self.entries[index].refusals.note(servesOthers: !others.isEmpty && !isCrowd, now: now)
        if isOfFile, others.isEmpty {
            self.budget.refusedFile(holding.host)
        } else {
            let delayFixed = self.entries[index].machine.settings.retry.delayFixed
            _ = self.budget.refused(holding.host, retryAfter: retryAfter, delayFixed: delayFixed, now: now)
            if others.isEmpty { self.suspects[holding.host] = holding.download }
        }
        let isLasting = self.entries[index].refusals.isLasting
        self.entries[index].machine.noteRefusal(isPaced: !isOfFile, isOfJob: !isLasting)
    }

    private mutating func accepted(_ holding: Holding) {
        guard self.limits.tasks > 1 else { return }
        if let index = self.index(holding.download), self.entries[index].refusals != FileRefusals() {
            self.entries[index].refusals = FileRefusals()
            self.entries[index].machine.noteRefusal(isPaced: true, isOfJob: true)
        }
        guard let suspect = self.suspects.removeValue(forKey: holding.host), suspect != holding.download,
            let index = self.index(suspect)
        else { return }
        self.entries[index].refusals.noteOtherServed()
    }

    /// The time until one of a download's hosts may be asked.
    private func delayUntilOpen(_ index: Int, now: Duration) -> Duration {
        let times = self.entries[index].machine.settings.hosts.map { self.budget.closedUntil($0) }
        return max((times.min() ?? now) - now, .zero)
    }

    /// The time before which a download waits because its host refused another process; nil if it does not.
    package func waitsElsewhere(_ id: DownloadID, now: Duration) -> Duration? {
        guard let index = self.index(id), self.entries[index].held == 0 else { return nil }
        return self.budget.closedElsewhere(self.entries[index].machine.settings.host, now: now)
    }

    func holding(_ id: DownloadID, _ lease: LeaseID) -> Int? {
        self.holdings.firstIndex { $0.download == id && $0.lease == lease }
    }
}

extension DownloadStateMachine {
    /// Its phase, as far as scheduling needs it.
    var phase: GroupStateMachine.Phase {
        switch self.state {
        case .queued: .queued
        case .surveying, .probing, .preparing: .starting
        case .fetching, .settling: .fetching
        case .placing, .discarding: .ending
        case .resting: .resting
        }
    }
}
