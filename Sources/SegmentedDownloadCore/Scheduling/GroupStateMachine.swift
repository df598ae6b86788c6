/// Shares one budget of connections among many downloads. One file is a group of one.
///
/// Work is pulled: while the budget allows, each download in turn is asked for its next segment.
package struct GroupStateMachine: Hashable, Sendable {
    package struct Limits: Hashable, Sendable {
        /// Connections open at once, over all hosts.
        package var connections = 64
        /// Connections open at once to one host; browsers stop at 6, download managers at 16.
        package var connectionsPerHost = 16
        /// Files fetched at once; the rest waits.
        package var downloads = 5

        package init() {}
    }

    private struct Entry: Hashable {
        let id: DownloadID
        var machine: DownloadStateMachine
    }

    /// A connection taken from the budget.
    private struct Holding: Hashable {
        let download: DownloadID
        let lease: LeaseID
        let host: String
        var wasAccepted = false
    }

    private let limits: Limits
    private var entries: [Entry] = []
    private var holdings: [Holding] = []
    private var budget: ConcurrencyBudget
    /// Actions made while scheduling, in order.
    private var outbox: [GroupAction] = []

    package init(limits: Limits) {
        self.limits = limits
        self.budget = ConcurrencyBudget(
            connectionsMax: limits.connections, connectionsPerHostMax: limits.connectionsPerHost)
    }

    /// Whether every download rests: nothing happens any more unless someone asks for it.
    package var isIdle: Bool {
        self.holdings.isEmpty && self.entries.allSatisfy { $0.machine.conclusion != nil }
    }

    package func machine(_ id: DownloadID) -> DownloadStateMachine? {
        self.entries.first { $0.id == id }?.machine
    }

    /// Connections in use for one download.
    package func connections(_ id: DownloadID) -> Int {
        self.holdings.count { $0.download == id }
    }

    /// Takes an event and returns what should happen.
    package mutating func handle(_ event: GroupEvent, now: Duration) -> [GroupAction] {
        switch event {
        case .added(let id, let settings, let seed):
            precondition(!self.entries.contains { $0.id == id }, "a download is added once")
            self.entries.append(Entry(id: id, machine: DownloadStateMachine(settings: settings, seed: seed)))
        case .tick:
            for index in self.entries.indices {
                self.update(index) { $0.tick(now: now) }
            }
        case .moved(let id, let other):
            self.move(id, before: other)
        case .removed(let id):
            self.entries.removeAll { $0.id == id && $0.machine.conclusion != nil }
        case .download(let id, let event):
            // The connections of a download that was removed are still to be given back.
            self.account(for: event, of: id, now: now)
            guard let index = self.entries.firstIndex(where: { $0.id == id }) else { break }
            self.update(index) { $0.handle(event, now: now) }
        }
        self.schedule(now: now)
        defer { self.outbox = [] }
        return self.outbox
    }

    /// Notes how far a download's leases have come, just before an event.
    package mutating func observe(_ id: DownloadID, _ observations: [LeaseObservation], now: Duration) {
        guard let index = self.entries.firstIndex(where: { $0.id == id }) else { return }
        self.entries[index].machine.observe(observations, now: now)
    }

    /// Takes a download that waits for its turn before another, or to the front. The order of those that run is no order of turns.
    private mutating func move(_ id: DownloadID, before other: DownloadID?) {
        guard id != other, let from = self.entries.firstIndex(where: { $0.id == id }),
            self.entries[from].machine.isQueued
        else { return }
        let entry = self.entries.remove(at: from)
        let to = other.flatMap { other in self.entries.firstIndex { $0.id == other } }
        self.entries.insert(entry, at: other == nil ? 0 : to ?? from)
    }

    private mutating func update(_ index: Int, _ body: (inout DownloadStateMachine) -> [DownloadAction]) {
        let id = self.entries[index].id
        self.outbox += body(&self.entries[index].machine).map { .download(id, $0) }
    }

    /// What an event teaches about the host, and the connections it frees.
    private mutating func account(for event: MachineEvent, of id: DownloadID, now: Duration) {
        switch event {
        case .responded(let lease, let response, _):
            guard let index = self.holding(id, lease) else { return }
            if case .refused(let status, let retryAfter) = response {
                guard status == 429 || status == 503 else { return }
                let asked = retryAfter.map { Duration.seconds($0.seconds) }
                _ = self.budget.refused(self.holdings[index].host, retryAfter: asked, now: now)
            } else if !self.holdings[index].wasAccepted {
                self.holdings[index].wasAccepted = true
                self.budget.accepted(self.holdings[index].host, now: now)
            }
        case .ended(let lease, let end):
            guard let index = self.holding(id, lease) else { return }
            let holding = self.holdings.remove(at: index)
            self.budget.release(holding.host, wasAccepted: holding.wasAccepted, wasCut: end != .finished, now: now)
            // Reset before the head while others are served: an origin that counts connections, not requests.
            if case .failed(let failure) = end, failure.code == .network, !holding.wasAccepted,
                self.holdings.contains(where: { $0.host == holding.host && $0.wasAccepted })
            {
                _ = self.budget.refused(holding.host, retryAfter: nil, now: now)
            }
        case .surveyed, .found, .prepared, .storageFailed, .checkpointed, .checkpointFailed, .placed, .discarded,
            .narrowed, .limitReached, .pause, .resume, .cancel:
            break
        }
    }

    private func holding(_ id: DownloadID, _ lease: LeaseID) -> Int? {
        self.holdings.firstIndex { $0.download == id && $0.lease == lease }
    }

    private mutating func schedule(now: Duration) {
        var running = self.entries.count { !$0.machine.isQueued && $0.machine.conclusion == nil }
        for index in self.entries.indices where self.entries[index].machine.isQueued && running < self.limits.downloads
        {
            running += 1
            self.update(index) { $0.start() }
        }
        for index in self.entries.indices {
            let id = self.entries[index].id
            let host = self.entries[index].machine.settings.host
            // A probe told to stop may not have hung up yet: the next one would be a second connection.
            if self.entries[index].machine.isProbing, self.connections(id) > 0 { continue }
            while self.budget.allows(host, now: now) {
                guard let order = self.entries[index].machine.nextFetch(now: now) else {
                    // To cut a running response only to try whether one more is allowed would cost more than it teaches.
                    if self.budget.allowsWithoutTrial(host, now: now) {
                        self.update(index) { $0.steal(now: now) }
                    }
                    break
                }
                self.budget.reserve(host)
                self.holdings.append(Holding(download: id, lease: order.lease, host: host))
                self.outbox.append(.fetch(id, order))
            }
        }
    }
}

/// Names one download of a group.
package struct DownloadID: Hashable, Comparable, Sendable {
    package let rawValue: Int

    package init(_ rawValue: Int) {
        self.rawValue = rawValue
    }

    package static func < (left: DownloadID, right: DownloadID) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// What happens to a group.
package enum GroupEvent: Sendable {
    case added(DownloadID, DownloadSettings, seed: UInt64)
    /// Its turn is to come before the other's, or first of all.
    case moved(DownloadID, before: DownloadID?)
    /// It rests and is of no interest any more.
    case removed(DownloadID)
    case tick
    case download(DownloadID, MachineEvent)
}

/// What a group wants done.
package enum GroupAction: Hashable, Sendable {
    /// Make this request in a task of its own.
    case fetch(DownloadID, FetchOrder)
    case download(DownloadID, DownloadAction)
}

/// What happens to one download.
package enum MachineEvent: Hashable, Sendable {
    case surveyed(Survey)
    case found(Survey)
    case prepared
    case storageFailed(Failure)
    case checkpointed(bytes: Int64)
    case checkpointFailed(Failure)
    case placed
    case discarded
    case responded(LeaseID, RangeResponse, suggestedName: String?)
    case narrowed(LeaseID, to: Int64)
    case limitReached(LeaseID)
    case ended(LeaseID, LeaseEnd)
    case pause
    case resume
    case cancel(keepingPartial: Bool)
}

extension DownloadStateMachine {
    /// Takes an event and returns what should happen.
    mutating func handle(_ event: MachineEvent, now: Duration) -> [DownloadAction] {
        switch event {
        case .surveyed(let survey): self.surveyed(survey, now: now)
        case .found(let survey): self.found(survey, now: now)
        case .prepared: self.prepared(now: now)
        case .storageFailed(let failure): self.storageFailed(failure)
        case .checkpointed(let bytes): self.checkpointed(bytes: bytes)
        case .checkpointFailed(let failure): self.checkpointFailed(failure)
        case .placed: self.placed()
        case .discarded: self.discarded()
        case .responded(let lease, let response, let name):
            self.responded(lease, response, suggestedName: name, now: now)
        case .narrowed(let lease, let limit): self.narrowed(lease, to: limit, now: now)
        case .limitReached(let lease): self.limitReached(lease)
        case .ended(let lease, let end): self.ended(lease, end, now: now)
        case .pause: self.pause()
        case .resume: self.resume()
        case .cancel(let keepingPartial): self.cancel(keepingPartial: keepingPartial)
        }
    }
}
