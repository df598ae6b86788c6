import SegmentedDownload
import SystemPackage

/// Decides what a queue stores, and which of its entries are in the download group.
///
/// Only as many entries are in the group as may run at once, so that an entry's place can change until its turn comes, and
/// ten thousand entries cost no more than their records.
struct QueueStateMachine: Sendable {
    /// A command of a user, or a report on the group.
    enum Event: Hashable, Sendable {
        /// Add entries at the end of the queue, or before all others. Their positions are assigned. None is added if the
        /// queue has one of their IDs.
        case add([QueueRecord], first: Bool)
        case pause([QueueEntry.ID])
        case resume([QueueEntry.ID])
        case cancel([QueueEntry.ID], keepingPartial: Bool)
        /// Move an entry to a place, counted from 0. A place behind the end is the end.
        case move(QueueEntry.ID, to: Int)
        /// Fetch an entry with another request, unless its request is not the first one any more, or it has begun and the
        /// destination differs. A download that runs with a request that does not continue as the new one is started again.
        case change(QueueEntry.ID, from: QueuedRequest, to: QueuedRequest)
        /// How many entries may be in the group.
        case limit(Int)
        /// Whether all entries wait, as if none had its turn.
        case hold(Bool)
        /// The queue runs: start its entries.
        case begin
        /// The queue ends: start nothing more.
        case end
        /// The file of a download has a name.
        case begun(QueueEntry.ID, at: FilePath)
        /// A download came to rest.
        case ended(QueueEntry.ID, Ending)
        /// An entry's partial file cannot be deleted.
        case cancelFailed(QueueEntry.ID, DownloadError)
        /// An entry that was to run cannot be added to the group.
        case startFailed(QueueEntry.ID, DownloadError)
        /// The group has another entry that fetches the same file, so this one is not in it.
        case blocked(QueueEntry.ID, by: QueueEntry.ID)
        /// The group no longer has the download.
        case removed(QueueEntry.ID)

        /// The entries that a command is about.
        var subjects: [QueueEntry.ID] {
            switch self {
            case .add(let records, _): records.map(\.id)
            case .pause(let ids), .resume(let ids), .cancel(let ids, _): ids
            case .move(let id, _), .change(let id, _, _): [id]
            case .limit, .hold, .begin, .end, .begun, .ended, .cancelFailed, .startFailed, .blocked, .removed: []
            }
        }
    }

    /// How a download came to rest.
    enum Ending: Hashable, Sendable {
        case completed(HistoryEntry)
        case failed(DownloadError, DownloadProgress?)
        case paused(DownloadProgress?)
        case cancelled(HistoryEntry)
    }

    /// What to do, in this order.
    enum Action: Hashable, Sendable {
        /// Store this before anything is done with the group.
        case store(QueueChange)
        /// Add the download to the group.
        case start(QueueEntry.ID)
        /// Add the download to the group in state `paused`, so that it can be cancelled.
        case load(QueueEntry.ID)
        case pause(QueueEntry.ID)
        /// Apply the options of its request that can change while the download runs.
        case update(QueueEntry.ID)
        case cancel(QueueEntry.ID, keepingPartial: Bool)
        /// Remove a download that is at rest from the group.
        case remove(QueueEntry.ID)
    }

    /// Whether an entry is in the download group.
    enum Phase: Hashable, Sendable {
        /// It is not. Becomes `active`.
        case idle
        /// It is. Becomes `leaving` or `blocked`, or the entry ends.
        case active
        /// Its download is at rest and about to leave the group. Becomes `idle`.
        case leaving
        /// It is not, until this entry has left the group. Becomes `idle`.
        case blocked(by: QueueEntry.ID)
    }

    struct Entry: Hashable, Sendable {
        var record: QueueRecord
        var phase = Phase.idle
        /// Whether its download was started with another request, so that how it ends says nothing about this one.
        fileprivate(set) var isOutdated = false
        /// The progress when it last came to rest in this run of the queue.
        var progress: DownloadProgress?

        /// The path of its file, if it may have files on disk and the path is known.
        fileprivate var file: FilePath? {
            guard self.record.hasBegun, case .file(let path) = self.record.request.request.destination else {
                return nil
            }
            return path
        }

        /// Its place among the entries that may start; nil if it may not.
        fileprivate var turn: Turn? {
            self.phase == .idle && self.record.state == .queued
                ? Turn(position: self.record.position, id: self.record.id) : nil
        }
    }

    /// The place of an entry among those that may start.
    fileprivate struct Turn: Hashable, Comparable, Sendable {
        let position: Int64
        let id: QueueEntry.ID

        static func < (left: Self, right: Self) -> Bool {
            (left.position, left.id.number) < (right.position, right.id.number)
        }
    }

    /// In the order of their positions.
    private(set) var order: [QueueEntry.ID] = []
    private(set) var entries: [QueueEntry.ID: Entry] = [:]
    /// The entries that may start, in their order.
    private var turns: [Turn] = []
    /// The blocked entries, by the entry that blocks them.
    private var blocked: [QueueEntry.ID: [QueueEntry.ID]] = [:]
    /// How many entries have each file.
    private var files: [FilePath: Int] = [:]
    private var limit: Int
    private(set) var activeCount = 0
    private var isEnding = false
    private(set) var isHeld: Bool

    /// Room between two positions, so that a move rarely has to change others.
    private static let gap: Int64 = 1 << 20

    /// - Parameters:
    ///   - records: The stored entries, in the order of their positions.
    ///   - limit: How many may be in the group, at least 1.
    ///   - isHeld: Whether all entries wait at first.
    init(_ records: [QueueRecord], limit: Int, isHeld: Bool = false) {
        self.limit = max(limit, 1)
        self.isHeld = isHeld
        for record in records { self.insert(record) }
        self.order = records.map(\.id)
    }

    /// - Parameter time: In seconds since 1970.
    mutating func handle(_ event: Event, at time: Int64) -> [Action] {
        switch event {
        case .add(let records, let first):
            let actions = self.add(records, first: first)
            return actions.isEmpty ? [] : actions + self.fill()
        case .pause(let ids): return ids.flatMap { self.pause($0) } + self.fill()
        case .resume(let ids): return ids.flatMap { self.resume($0) } + self.fill()
        case .cancel(let ids, let keepingPartial):
            return ids.flatMap { self.cancel($0, keepingPartial: keepingPartial, at: time) } + self.fill()
        case .move(let id, let place): return self.move(id, to: place)
        case .change(let id, let old, let new): return self.change(id, from: old, to: new)
        case .limit(let limit):
            self.limit = max(limit, 1)
            return self.fill()
        case .hold(let isHeld): return self.hold(isHeld)
        case .begin: return self.order.flatMap { self.finishCancelling($0, at: time) } + self.fill()
        case .end:
            self.isEnding = true
            return []
        case .begun(let id, let path):
            // From the request as it is now: it may have been changed since the download started.
            guard let request = try? self.entries[id]?.record.request.begun(at: path) else { return [] }
            return self.begun(id, request)
        case .ended(let id, let ending): return self.ended(id, ending) + self.fill()
        case .cancelFailed(let id, let error): return self.cancelFailed(id, error)
        case .startFailed(let id, let error): return self.startFailed(id, error, at: time) + self.fill()
        case .blocked(let id, let other): return self.block(id, by: other, at: time) + self.fill()
        case .removed(let id):
            guard self.entries[id]?.phase == .leaving else { return [] }
            self.deactivate(id, to: .idle)
            return self.finishCancelling(id, at: time) + self.fill()
        }
    }

    // MARK: Commands

    private mutating func add(_ records: [QueueRecord], first: Bool) -> [Action] {
        let ids = Set(records.map(\.id))
        guard ids.count == records.count, ids.allSatisfy({ self.entries[$0] == nil }) else { return [] }
        var position =
            first
            ? self.position(self.order.first, else: 0) - Self.gap * Int64(records.count + 1)
            : self.position(self.order.last, else: -Self.gap)
        var actions: [Action] = []
        for var record in records {
            position += Self.gap
            record.position = position
            self.insert(record)
            actions.append(.store(.insert(record)))
        }
        self.order.insert(contentsOf: records.map(\.id), at: first ? 0 : self.order.count)
        return actions
    }

    private func position(_ id: QueueEntry.ID?, else none: Int64) -> Int64 {
        id.flatMap { self.entries[$0]?.record.position } ?? none
    }

    private mutating func pause(_ id: QueueEntry.ID) -> [Action] {
        guard let entry = self.entries[id], entry.record.state == .queued else { return [] }
        return self.set(id, .paused) + (entry.phase == .active ? [.pause(id)] : [])
    }

    /// Resumes a paused entry, or runs a failed one again. One that is still in the group starts when it has left it.
    private mutating func resume(_ id: QueueEntry.ID) -> [Action] {
        switch self.entries[id]?.record.state {
        case .paused, .failed: self.set(id, .queued)
        case .queued, .cancelling, nil: []
        }
    }

    private mutating func cancel(_ id: QueueEntry.ID, keepingPartial: Bool, at time: Int64) -> [Action] {
        guard let entry = self.entries[id], !entry.record.state.isCancelling else { return [] }
        // The files of a blocked entry are those of the entry that blocks it.
        if case .blocked = entry.phase { return self.finish(id, .cancelled(entry.record, at: time)) }
        // Stored, so that a crash does not bring the entry back.
        let actions = self.set(id, .cancelling(keepingPartial: keepingPartial))
        return entry.phase == .active
            ? actions + [.cancel(id, keepingPartial: keepingPartial)] : actions + self.finishCancelling(id, at: time)
    }

    /// Ends an entry that is to be cancelled. If it may have files that are to be deleted, it is brought into the group
    /// for that.
    private mutating func finishCancelling(_ id: QueueEntry.ID, at time: Int64) -> [Action] {
        guard let entry = self.entries[id], entry.phase == .idle, !self.isEnding,
            case .cancelling(let keepingPartial) = entry.record.state
        else { return [] }
        guard entry.record.hasBegun, !keepingPartial, !self.sharesFile(entry) else {
            return self.finish(id, .cancelled(entry.record, at: time))
        }
        self.activate(id)
        return [.load(id), .cancel(id, keepingPartial: keepingPartial)]
    }

    private mutating func move(_ id: QueueEntry.ID, to place: Int) -> [Action] {
        guard let from = self.order.firstIndex(of: id) else { return [] }
        self.order.remove(at: from)
        let place = min(max(place, 0), self.order.count)
        self.order.insert(id, at: place)
        guard place != from else { return [] }
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
        return self.set(id, position)
    }

    private mutating func change(
        _ id: QueueEntry.ID, from old: QueuedRequest, to new: QueuedRequest
    ) -> [Action] {
        guard let entry = self.entries[id], entry.record.request == old, !entry.record.state.isCancelling,
            !entry.record.hasBegun || old.request.destination == new.request.destination
        else { return [] }
        let continues = !entry.record.hasBegun || old.continues(as: new)
        let stored = continues ? new : new.restarting(after: old)
        self.change(id) { entry in
            entry.record.request = stored
            if entry.phase == .active, !continues { entry.isOutdated = true }
        }
        let change = Action.store(.request(id, stored))
        guard entry.phase == .active else { return [change] }
        guard !continues else { return [change, .update(id)] }
        // It starts again when it has left the group. One that is paused is being paused already.
        return entry.record.state == .queued ? [change, .pause(id)] : [change]
    }

    /// Pauses what runs, and starts nothing more until the hold ends. The stored states stay as they are.
    private mutating func hold(_ isHeld: Bool) -> [Action] {
        guard isHeld != self.isHeld else { return [] }
        self.isHeld = isHeld
        guard isHeld else { return self.fill() }
        return self.order.compactMap { id in
            guard let entry = self.entries[id], entry.phase == .active, entry.record.state == .queued else {
                return nil
            }
            return .pause(id)
        }
    }

    private mutating func renumber() -> [Action] {
        self.order.enumerated().flatMap { index, id in self.set(id, Int64(index) * Self.gap) }
    }

    // MARK: Reports on the group

    private mutating func begun(_ id: QueueEntry.ID, _ request: QueuedRequest) -> [Action] {
        guard let record = self.entries[id]?.record, !record.hasBegun || record.request != request else { return [] }
        self.change(id) { entry in
            entry.record.request = request
            entry.record.hasBegun = true
        }
        return [.store(.begun(id, request))]
    }

    private mutating func ended(_ id: QueueEntry.ID, _ ending: Ending) -> [Action] {
        guard let entry = self.entries[id], entry.phase == .active else { return [] }
        switch ending {
        case .failed(_, let progress?), .paused(let progress?): self.change(id) { $0.progress = progress }
        case .completed, .cancelled, .failed(_, nil), .paused(nil): break
        }
        switch (ending, entry.record.state) {
        case (.completed, _) where entry.isOutdated, (.failed, .queued) where entry.isOutdated: return self.leave(id)
        case (.completed(let row), _): return self.finish(id, row)
        // When the queue ends, downloads are cancelled too.
        case (.cancelled(let row), .cancelling) where !self.isEnding: return self.finish(id, row)
        // What becomes of the cancellation is still to be reported.
        case (.failed, .cancelling), (.paused, .cancelling): return []
        case (.failed(let error, _), .queued): return self.fail(id, error) + self.leave(id)
        case (.cancelled, _), (.paused, _), (.failed, _): return self.leave(id)
        }
    }

    private mutating func block(_ id: QueueEntry.ID, by other: QueueEntry.ID, at time: Int64) -> [Action] {
        guard let entry = self.entries[id], entry.phase == .active else { return [] }
        let isThere = self.entries[other].map { $0.phase == .active || $0.phase == .leaving } ?? false
        self.deactivate(id, to: isThere ? .blocked(by: other) : .idle)
        guard isThere else { return self.finishCancelling(id, at: time) }
        self.blocked[other, default: []].append(id)
        return entry.record.state.isCancelling ? self.finish(id, .cancelled(entry.record, at: time)) : []
    }

    private mutating func cancelFailed(_ id: QueueEntry.ID, _ error: DownloadError) -> [Action] {
        guard let entry = self.entries[id], entry.phase == .active, entry.record.state.isCancelling else { return [] }
        // At the end of the queue, a cancellation may be interrupted: the next run carries it out.
        return (self.isEnding ? [] : self.set(id, .failed(error))) + self.leave(id)
    }

    private mutating func startFailed(_ id: QueueEntry.ID, _ error: DownloadError, at time: Int64) -> [Action] {
        guard let entry = self.entries[id], entry.phase == .active else { return [] }
        self.deactivate(id, to: .idle)
        // Cancelled in the meantime.
        if entry.record.state.isCancelling { return self.finishCancelling(id, at: time) }
        return entry.record.state == .queued && !entry.isOutdated ? self.fail(id, error) : []
    }

    private mutating func fail(_ id: QueueEntry.ID, _ error: DownloadError) -> [Action] {
        self.change(id) { $0.record.attempts += 1 }
        return self.set(id, .failed(error))
    }

    private mutating func leave(_ id: QueueEntry.ID) -> [Action] {
        self.change(id) { $0.phase = .leaving }
        return [.remove(id)]
    }

    /// Brings entries into the group, in their order, while there is room.
    private mutating func fill() -> [Action] {
        var actions: [Action] = []
        while !self.isEnding, !self.isHeld, self.activeCount < self.limit, let turn = self.turns.first {
            self.activate(turn.id)
            if let record = self.entries[turn.id]?.record, !record.hasBegun {
                // Stored before the group creates files, so that a cancellation after a crash deletes them.
                actions += self.begun(turn.id, record.request)
            }
            actions.append(.start(turn.id))
        }
        return actions
    }

    // MARK: Entries

    private mutating func insert(_ record: QueueRecord) {
        let entry = Entry(record: record)
        self.entries[record.id] = entry
        self.count(entry.file, 1)
        if let turn = entry.turn { self.turns.insert(turn) }
    }

    private mutating func set(_ id: QueueEntry.ID, _ state: QueueRecord.State) -> [Action] {
        self.change(id) { $0.record.state = state }
        guard let record = self.entries[id]?.record else { return [] }
        return [.store(.state(id, state, attempts: record.attempts))]
    }

    private mutating func set(_ id: QueueEntry.ID, _ position: Int64) -> [Action] {
        self.change(id) { $0.record.position = position }
        return [.store(.position(id, position))]
    }

    private mutating func activate(_ id: QueueEntry.ID) {
        self.change(id) { entry in
            entry.phase = .active
            entry.isOutdated = false
        }
        self.activeCount += 1
    }

    /// Records that an entry is no longer in the group.
    private mutating func deactivate(_ id: QueueEntry.ID, to phase: Phase) {
        self.activeCount -= 1
        self.change(id) { $0.phase = phase }
        self.unblock(by: id)
    }

    private mutating func finish(_ id: QueueEntry.ID, _ row: HistoryEntry) -> [Action] {
        if let phase = self.entries[id]?.phase, phase == .active || phase == .leaving {
            self.deactivate(id, to: .leaving)
        }
        self.change(id) { $0.phase = .leaving }
        if let entry = self.entries.removeValue(forKey: id) { self.count(entry.file, -1) }
        if let index = self.order.firstIndex(of: id) { self.order.remove(at: index) }
        return [.store(.finish(id, row))]
    }

    private mutating func unblock(by id: QueueEntry.ID) {
        for other in self.blocked.removeValue(forKey: id) ?? [] where self.entries[other]?.phase == .blocked(by: id) {
            self.change(other) { $0.phase = .idle }
        }
    }

    /// Whether another entry has the same file, so that this one must not delete it.
    private func sharesFile(_ entry: Entry) -> Bool { entry.file.map { self.files[$0, default: 0] > 1 } ?? false }

    private mutating func count(_ file: FilePath?, _ change: Int) {
        guard let file else { return }
        let count = self.files[file, default: 0] + change
        self.files[file] = count > 0 ? count : nil
    }

    /// Changes an entry, and its turn with it.
    private mutating func change(_ id: QueueEntry.ID, _ body: (inout Entry) -> Void) {
        guard var entry = self.entries[id] else { return }
        let (before, file) = (entry.turn, entry.file)
        body(&entry)
        self.entries[id] = entry
        if file != entry.file {
            self.count(file, -1)
            self.count(entry.file, 1)
        }
        guard before != entry.turn else { return }
        if let before { self.turns.remove(before) }
        if let after = entry.turn { self.turns.insert(after) }
    }
}

extension QueueRecord.State {
    var isCancelling: Bool { if case .cancelling = self { true } else { false } }
}

extension [QueueStateMachine.Turn] {
    /// The index of the first turn that is not before this one.
    private func index(of turn: Element) -> Int {
        var (low, high) = (0, self.count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < turn { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Inserts a turn in its place.
    fileprivate mutating func insert(_ turn: Element) { self.insert(turn, at: self.index(of: turn)) }

    fileprivate mutating func remove(_ turn: Element) {
        let index = self.index(of: turn)
        if index < self.count, self[index] == turn { self.remove(at: index) }
    }
}

extension HistoryEntry {
    /// The row of an entry that is cancelled while it is not in the download group.
    fileprivate static func cancelled(_ record: QueueRecord, at time: Int64) -> HistoryEntry {
        let request = record.request.request
        return HistoryEntry(
            time: time, id: record.id.rawValue, url: request.source.description, path: request.destination.path ?? ".",
            bytes: 0, outcome: .cancelled, code: nil, message: nil, userInfo: request.userInfo)
    }
}
