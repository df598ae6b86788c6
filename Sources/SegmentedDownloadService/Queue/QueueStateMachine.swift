import SegmentedDownload

/// Decides what a queue stores, and which of its entries are in the download group.
///
/// Only as many entries are in the group as may run at once, so that an entry's place can change until its turn comes, and
/// ten thousand entries cost no more than their records.
struct QueueStateMachine: Sendable {
    /// What happened, or what a user wants.
    enum Event: Hashable, Sendable {
        /// Add entries at the end of the queue, or before all others. Their positions are assigned.
        case add([QueueRecord], first: Bool)
        case pause([QueueEntry.ID])
        case resume([QueueEntry.ID])
        case cancel([QueueEntry.ID], keepingPartial: Bool)
        /// Move an entry to a place, counted from 0. A place behind the end is the end.
        case move(QueueEntry.ID, to: Int)
        /// How many entries may be in the group.
        case limit(Int)
        /// The queue ends: start nothing more.
        case end
        /// The group reports that the file's name is known.
        case named(QueueEntry.ID, RecordedRequest)
        /// The group reports that a download came to rest.
        case rested(QueueEntry.ID, Outcome)
        /// The group no longer has the download.
        case removed(QueueEntry.ID)
    }

    /// How a download came to rest.
    enum Outcome: Hashable, Sendable {
        case completed(HistoryEntry)
        case failed(DownloadError)
        case paused
        case cancelled(HistoryEntry)
    }

    /// What to do with the group, once the changes are durable.
    enum Action: Hashable, Sendable {
        /// Store this first.
        case store(QueueChange)
        /// Add the download to the group.
        case start(QueueEntry.ID)
        /// Add the download to the group at rest, so that it can be cancelled.
        case load(QueueEntry.ID)
        case pause(QueueEntry.ID)
        case cancel(QueueEntry.ID, keepingPartial: Bool)
        /// Remove a download that is at rest from the group.
        case remove(QueueEntry.ID)
    }

    /// Where an entry is.
    enum Phase: Hashable, Sendable {
        /// Not in the group. Becomes `active`.
        case idle
        /// In the group. Becomes `leaving`, or the entry ends.
        case active
        /// At rest, and about to leave the group. Becomes `idle`.
        case leaving
    }

    struct Entry: Hashable, Sendable {
        var record: QueueRecord
        var phase: Phase
    }

    /// In the order of their positions.
    private(set) var order: [QueueEntry.ID] = []
    private(set) var entries: [QueueEntry.ID: Entry] = [:]
    private var limit: Int
    private var activeCount = 0
    private var isEnding = false

    /// Room between two positions, so that a move rarely has to change others.
    private static let gap: Int64 = 1 << 20

    /// - Parameter records: The stored entries, in the order of their positions.
    init(_ records: [QueueRecord], limit: Int) {
        self.limit = limit
        for record in records {
            self.order.append(record.id)
            self.entries[record.id] = Entry(record: record, phase: .idle)
        }
    }

    /// What to do at first.
    mutating func begin() -> [Action] { self.order.flatMap { self.finishCancelling($0) } + self.fill() }

    mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .add(let records, let first): return self.add(records, first: first) + self.fill()
        case .pause(let ids): return ids.flatMap { self.pause($0) } + self.fill()
        case .resume(let ids): return ids.flatMap { self.resume($0) } + self.fill()
        case .cancel(let ids, let keepingPartial):
            return ids.flatMap { self.cancel($0, keepingPartial: keepingPartial) } + self.fill()
        case .move(let id, let place): return self.move(id, to: place)
        case .limit(let limit):
            self.limit = limit
            return self.fill()
        case .end:
            self.isEnding = true
            return []
        case .named(let id, let request):
            guard let record = self.entries[id]?.record, record.request != request else { return [] }
            self.entries[id]?.record.request = request
            return [.store(.request(id, request))]
        case .rested(let id, let outcome): return self.rested(id, outcome)
        case .removed(let id):
            guard self.entries[id]?.phase == .leaving else { return [] }
            self.entries[id]?.phase = .idle
            self.activeCount -= 1
            return self.finishCancelling(id) + self.fill()
        }
    }

    // MARK: Wishes

    private mutating func add(_ records: [QueueRecord], first: Bool) -> [Action] {
        var position =
            first
            ? self.position(self.order.first, else: 0) - Self.gap * Int64(records.count + 1)
            : self.position(self.order.last, else: -Self.gap)
        var actions: [Action] = []
        for var record in records {
            position += Self.gap
            record.position = position
            self.entries[record.id] = Entry(record: record, phase: .idle)
            actions.append(.store(.insert(record)))
        }
        self.order.insert(contentsOf: records.map(\.id), at: first ? 0 : self.order.count)
        return actions
    }

    private func position(_ id: QueueEntry.ID?, else none: Int64) -> Int64 {
        id.flatMap { self.entries[$0]?.record.position } ?? none
    }

    private mutating func pause(_ id: QueueEntry.ID) -> [Action] {
        guard let entry = self.entries[id], entry.record.wish == .run else { return [] }
        return self.wish(id, .pause) + (entry.phase == .active ? [.pause(id)] : [])
    }

    /// Resumes a paused entry, or tries a failed one again.
    private mutating func resume(_ id: QueueEntry.ID) -> [Action] {
        guard let entry = self.entries[id] else { return [] }
        switch entry.record.wish {
        // An active one that is being paused starts again when it has left the group.
        case .pause, .retryLater: return self.wish(id, .run)
        case .run, .cancel: return []
        }
    }

    private mutating func cancel(_ id: QueueEntry.ID, keepingPartial: Bool) -> [Action] {
        guard let entry = self.entries[id] else { return [] }
        if case .cancel = entry.record.wish { return [] }
        // Stored, so that a crash does not bring the entry back.
        let actions = self.wish(id, .cancel(keepingPartial: keepingPartial))
        return entry.phase == .active
            ? actions + [.cancel(id, keepingPartial: keepingPartial)] : actions + self.finishCancelling(id)
    }

    /// Brings an entry that is to be cancelled into the group, which has its files deleted there.
    private mutating func finishCancelling(_ id: QueueEntry.ID) -> [Action] {
        guard let entry = self.entries[id], entry.phase == .idle, !self.isEnding,
            case .cancel(let keepingPartial) = entry.record.wish
        else { return [] }
        self.activate(id)
        return [.load(id), .cancel(id, keepingPartial: keepingPartial)]
    }

    private mutating func wish(_ id: QueueEntry.ID, _ wish: QueueRecord.Wish) -> [Action] {
        self.entries[id]?.record.wish = wish
        guard let record = self.entries[id]?.record else { return [] }
        return [.store(.wish(id, wish, attempts: record.attempts))]
    }

    private mutating func move(_ id: QueueEntry.ID, to place: Int) -> [Action] {
        guard let from = self.order.firstIndex(of: id) else { return [] }
        self.order.remove(at: from)
        let place = min(max(place, 0), self.order.count)
        self.order.insert(id, at: place)
        let before = place > 0 ? self.entries[self.order[place - 1]]?.record.position : nil
        let after = place + 1 < self.order.count ? self.entries[self.order[place + 1]]?.record.position : nil
        let position: Int64
        switch (before, after) {
        case (nil, nil): return []
        case (let before?, nil): position = before + Self.gap
        case (nil, let after?): position = after - Self.gap
        case (let before?, let after?):
            position = before + (after - before) / 2
            guard position > before else { return self.renumber() }
        }
        self.entries[id]?.record.position = position
        return [.store(.position(id, position))]
    }

    private mutating func renumber() -> [Action] {
        self.order.enumerated().map { index, id in
            let position = Int64(index) * Self.gap
            self.entries[id]?.record.position = position
            return .store(.position(id, position))
        }
    }

    // MARK: The group

    /// Brings entries into the group, in their order, while there is room.
    private mutating func fill() -> [Action] {
        var actions: [Action] = []
        for id in self.order where !self.isEnding {
            guard self.activeCount < self.limit else { break }
            guard let entry = self.entries[id], entry.phase == .idle, entry.record.wish == .run else { continue }
            self.activate(id)
            actions.append(.start(id))
        }
        return actions
    }

    private mutating func activate(_ id: QueueEntry.ID) {
        self.entries[id]?.phase = .active
        self.activeCount += 1
    }

    private mutating func rested(_ id: QueueEntry.ID, _ outcome: Outcome) -> [Action] {
        guard let entry = self.entries[id], entry.phase == .active else { return [] }
        switch (outcome, entry.record.wish) {
        case (.completed(let row), _): return self.finish(id, row) + self.fill()
        case (.cancelled(let row), .cancel): return self.finish(id, row) + self.fill()
        case (.failed, .cancel), (.paused, .cancel): return []  // The cancellation is still on its way.
        case (.failed(let error), .run):
            self.entries[id]?.record.attempts += 1
            return self.wish(id, .retryLater(error)) + self.leave(id)
        // The group has ended, or the download left it before it was known to the machine that it was at rest.
        case (.cancelled, _), (.paused, _), (.failed, _): return self.leave(id)
        }
    }

    private mutating func leave(_ id: QueueEntry.ID) -> [Action] {
        self.entries[id]?.phase = .leaving
        return [.remove(id)]
    }

    private mutating func finish(_ id: QueueEntry.ID, _ row: HistoryEntry) -> [Action] {
        self.entries[id] = nil
        self.activeCount -= 1
        if let index = self.order.firstIndex(of: id) { self.order.remove(at: index) }
        return [.store(.finish(id, row))]
    }
}
