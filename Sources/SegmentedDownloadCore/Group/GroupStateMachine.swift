/// Shares one budget of connections among many downloads. One file is a group of one.
///
/// Work is pulled: while the budget allows, the download that has least for its priority is asked for its next segment.
/// What waits for its turn costs nothing: only downloads that have been started are looked at.
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

    /// Where a download stands, as far as it matters to the others.
    enum Standing: Hashable {
        case queued
        /// It is looked up what there is to fetch.
        case starting
        case fetching
        /// It needs no connection any more.
        case ending
        case resting
    }

    struct Entry: Hashable {
        let id: DownloadID
        var machine: DownloadStateMachine
        /// Its share beside others is in proportion to it.
        var weight: Double
        /// Connections it has, those that are being closed among them.
        var held = 0
        /// Whether it is being put into place and was so short that the next one's turn comes at once.
        var isBrief = false
    }

    /// A connection taken from the budget.
    struct Holding: Hashable {
        let download: DownloadID
        let lease: LeaseID
        let host: String
        var wasAccepted = false
        /// Whether it is being given up.
        var isEnding = false
    }

    var limits: Limits
    var entries: [Entry] = []
    /// Where each download's entry is, by its number: numbers are given in sequence, though they may come out of it.
    private var indices: [Int] = []
    /// Entries of downloads that are neither waiting for their turn nor at rest, in order.
    private(set) var active: [Int] = []
    var queue = StartQueue()
    private var resting = 0
    /// Entries of downloads that were removed: the next ones take their places, so that a group grows with what it holds and
    /// not with what it has done.
    private var vacant: [Int] = []
    /// As many as the budget allows, or did when they were taken.
    var holdings: [Holding] = []
    var budget: ConcurrencyBudget
    /// Actions made while scheduling, in order.
    var outbox: [GroupAction] = []
    /// Until then shares are brought up to what they should be, afterwards changed reluctantly.
    var settlesAt: Duration = .zero
    var rebalanceAt: Duration = .zero

    package init(limits: Limits) {
        self.limits = limits
        self.budget = ConcurrencyBudget(
            connectionsMax: limits.connections, connectionsPerHostMax: limits.connectionsPerHost)
    }

    /// Whether every download rests: nothing happens any more unless someone asks for it.
    package var isIdle: Bool { self.holdings.isEmpty && self.resting == self.entries.count }

    package func machine(_ id: DownloadID) -> DownloadStateMachine? {
        self.index(id).map { self.entries[$0].machine }
    }

    /// Whether a download was added and not removed since.
    package func holds(_ id: DownloadID) -> Bool { self.index(id) != nil }

    /// What is asked of one download's state, without a copy of all of it.
    package func ask<Answer>(_ id: DownloadID, _ question: (borrowing DownloadStateMachine) -> Answer) -> Answer? {
        guard let index = self.index(id) else { return nil }
        return question(self.entries[index].machine)
    }

    /// How many downloads there is room for without growing.
    package var placesCount: Int { self.entries.count }

    /// Connections in use for one download.
    package func connections(_ id: DownloadID) -> Int {
        self.index(id).map { self.entries[$0].held } ?? 0
    }

    /// A download's share beside others is in proportion to it.
    package func weight(_ id: DownloadID) -> Double {
        self.index(id).map { self.entries[$0].weight } ?? Self.weight(of: 0.5)
    }

    func index(_ id: DownloadID) -> Int? {
        guard self.indices.indices.contains(id.rawValue), self.indices[id.rawValue] >= 0 else { return nil }
        return self.indices[id.rawValue]
    }

    /// Takes an event and returns what should happen.
    package mutating func handle(_ event: GroupEvent, now: Duration) -> [GroupAction] {
        switch event {
        case .added(let id, let settings, let seed): self.add(id, settings, seed: seed)
        case .tick:
            for index in self.active {
                self.update(index, now: now) { $0.tick(now: now) }
            }
            self.shed(now: now)
            self.rebalance(now: now)
        case .moved(let id, let other):
            guard let index = self.index(id) else { return [] }
            self.queue.move(index, before: other.map { self.index($0) ?? index })
        case .removed(let id): self.remove(id)
        case .download(let id, let event):
            // The connections of a download that was removed are still to be given back.
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
        }
        self.schedule(now: now)
        defer { self.outbox = [] }
        return self.outbox
    }

    /// Notes how far a download's leases have come, just before an event.
    package mutating func observe(_ id: DownloadID, _ observations: [LeaseObservation], now: Duration) {
        guard let index = self.index(id) else { return }
        self.entries[index].machine.observe(observations, now: now)
    }

    private mutating func add(_ id: DownloadID, _ settings: DownloadSettings, seed: UInt64) {
        precondition(self.index(id) == nil, "a download is added once")
        if self.indices.count <= id.rawValue {
            self.indices += Array(repeating: -1, count: id.rawValue + 1 - self.indices.count)
        }
        let entry = Entry(
            id: id, machine: DownloadStateMachine(settings: settings, seed: seed),
            weight: Self.weight(of: settings.priority))
        let index = self.vacant.popLast() ?? self.entries.count
        self.indices[id.rawValue] = index
        if index < self.entries.count {
            self.entries[index] = entry
            self.resting -= 1
        } else {
            self.entries.append(entry)
        }
        if self.entries[index].machine.isQueued {
            self.queue.add(index, priority: self.entries[index].weight)
        } else {
            self.resting += 1
        }
    }

    /// Forgets a download that rests. Its place stays, for the others' are counted from it, and waits for the next one.
    private mutating func remove(_ id: DownloadID) {
        guard let index = self.index(id), self.entries[index].machine.conclusion != nil else { return }
        self.indices[id.rawValue] = -1
        self.vacant.append(index)
    }

    /// 1/1000: a share so small that it is none; a download of no weight at all could not be compared with others.
    private static let weightMin = 0.001

    package static func weight(of priority: Double) -> Double {
        // What is no number is not above anything.
        priority > Self.weightMin ? min(priority, 1) : Self.weightMin
    }

    /// Has one download do something, and keeps account of where it stands.
    mutating func update(_ index: Int, now: Duration, _ body: (inout DownloadStateMachine) -> [DownloadAction]) {
        let id = self.entries[index].id
        let before = self.entries[index].machine.standing
        let actions = body(&self.entries[index].machine)
        for action in actions {
            switch action {
            case .revoke(let lease), .answer(let lease, .stop):
                if let holding = self.holding(id, lease) { self.holdings[holding].isEnding = true }
            case .place(let length, _): self.entries[index].isBrief = length <= Self.briefLength
            case .survey, .replaceExisting, .prepare, .answer(_, .proceed), .narrow, .checkpoint, .revise,
                .interruptPlacing, .discard,
                .report,
                .conclude:
                break
            }
            self.outbox.append(.download(id, action))
        }
        self.move(index, from: before, to: self.entries[index].machine.standing, now: now)
    }

    private mutating func move(_ index: Int, from before: Standing, to after: Standing, now: Duration) {
        guard before != after else { return }
        self.noteChange(now: now)
        switch before {
        case .queued: self.queue.remove(index)
        case .resting: self.resting -= 1
        case .starting, .fetching, .ending: break
        }
        let place = self.active.partitioningIndex { $0 >= index }
        let isActive = place < self.active.count && self.active[place] == index
        switch after {
        case .queued: self.queue.add(index, priority: self.entries[index].weight)
        case .resting: self.resting += 1
        case .starting, .fetching, .ending:
            if !isActive { self.active.insert(index, at: place) }
            return
        }
        if isActive { self.active.remove(at: place) }
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
            if let index = self.index(id) { self.entries[index].held -= 1 }
            self.budget.release(holding.host, wasAccepted: holding.wasAccepted, wasCut: end != .finished, now: now)
            // Reset before the head while others are served: an origin that counts connections, not requests.
            if case .failed(let failure) = end, failure.code == .network, !holding.wasAccepted,
                self.holdings.contains(where: { $0.host == holding.host && $0.wasAccepted })
            {
                _ = self.budget.refused(holding.host, retryAfter: nil, now: now)
            }
        case .surveyed, .found, .prepared, .taken, .storageFailed, .checkpointed, .checkpointFailed, .revised, .placed,
            .discarded,
            .narrowed, .limitReached, .pause, .resume, .cancel:
            break
        }
    }

    func holding(_ id: DownloadID, _ lease: LeaseID) -> Int? {
        self.holdings.firstIndex { $0.download == id && $0.lease == lease }
    }
}

extension DownloadStateMachine {
    /// Where it stands, as far as it matters to the others.
    var standing: GroupStateMachine.Standing {
        switch self.state {
        case .queued: .queued
        case .surveying, .probing, .preparing: .starting
        case .fetching, .settling: .fetching
        case .placing, .discarding: .ending
        case .resting: .resting
        }
    }
}
