public import SegmentedDownload

extension DownloadQueue {
    /// Adds downloads, and returns once they are durable: a crash afterwards does not lose them.
    ///
    /// A relative destination is resolved against the queue's directory. ``DownloadRequest/id`` is ignored.
    ///
    /// - Parameters:
    ///   - ids: The IDs of some entries, by the index of the request. The others get random ones.
    ///   - paused: Whether they wait until they are resumed.
    ///   - first: Whether they come before all others, not after.
    /// - Returns: The IDs of the new entries, in the order of the requests.
    /// - Throws: ``DownloadError`` with code `usage` if a request is invalid or goes to a descriptor, or an ID is taken;
    ///   `cancelled` if the queue has ended; `file` if they cannot be stored. Then none is added.
    @discardableResult
    public func add(
        _ requests: [DownloadRequest], ids: [Int: QueueEntry.ID] = [:], paused: Bool = false, first: Bool = false
    ) async throws(DownloadError) -> [QueueEntry.ID] {
        var records: [QueueRecord] = []
        for (index, request) in requests.enumerated() {
            var request = request
            try request.validate()
            request.destination = request.destination.resolved(in: self.directory)
            guard let path = request.destination.path else {
                throw DownloadError(.usage, "a queue cannot write to a descriptor")
            }
            records.append(
                QueueRecord(
                    id: ids[index] ?? QueueEntry.ID(UInt64.random(in: 1...UInt64.max)), position: 0,
                    state: paused ? .paused : .queued,
                    added: self.clock.secondsSinceEpoch, request: try QueuedRequest(request, path: path, hasName: false)
                ))
        }
        for id in ids.values where try await self.history(of: id) != nil { throw Self.isTaken(id) }
        let added = try await self.command(.add(records, first: first))
        // None was added.
        if added.isEmpty, let id = ids.values.first { throw Self.isTaken(id) }
        return added
    }

    private static func isTaken(_ id: QueueEntry.ID) -> DownloadError {
        DownloadError(.usage, "the queue or its history has an entry with the ID \(id)")
    }

    /// Pauses entries that run or wait. Others are left as they are.
    ///
    /// The call returns once that is stored; a running download stops soon afterwards.
    ///
    /// - Returns: Those that it paused.
    /// - Throws: ``DownloadError`` as ``add(_:paused:first:)``.
    @discardableResult
    public func pause(_ ids: [QueueEntry.ID]) async throws(DownloadError) -> [QueueEntry.ID] {
        try await self.command(.pause(ids))
    }

    /// Resumes paused entries and tries failed ones again. Others are left as they are.
    ///
    /// - Returns: Those that it resumed.
    /// - Throws: ``DownloadError`` as ``add(_:paused:first:)``.
    @discardableResult
    public func resume(_ ids: [QueueEntry.ID]) async throws(DownloadError) -> [QueueEntry.ID] {
        try await self.command(.resume(ids))
    }

    /// Removes entries from the queue. A finished file is not touched.
    ///
    /// The call returns once that is stored; a running download stops soon afterwards, and then the history has a row. If
    /// a partial file cannot be deleted, the entry fails instead.
    ///
    /// - Parameter keepingPartial: Whether partial files and their manifests stay on disk. If not, they are deleted.
    /// - Returns: Those that are removed or will be.
    /// - Throws: ``DownloadError`` as ``add(_:paused:first:)``.
    @discardableResult
    public func cancel(
        _ ids: [QueueEntry.ID], keepingPartial: Bool = true
    ) async throws(DownloadError) -> [QueueEntry.ID] {
        try await self.command(.cancel(ids, keepingPartial: keepingPartial))
    }

    /// Moves an entry to a place in the queue, counted from 0. A place behind the end is the end.
    ///
    /// - Throws: ``DownloadError`` as ``add(_:paused:first:)``.
    public func move(_ id: QueueEntry.ID, to place: Int) async throws(DownloadError) {
        _ = try await self.command(.move(id, to: place))
    }

    /// Changes how an entry is fetched.
    ///
    /// A new priority, number of segments or rate applies to a running download at once, and new mirrors when it is next
    /// resumed. After any other change it is paused and resumed, because a download that ends counts only for the request
    /// that it was started with. The destination of a download that has begun cannot change: its partial file stays where
    /// it is.
    ///
    /// - Parameter change: Changes the request. It may be called several times.
    /// - Returns: Whether it was changed. Entries that have left the queue or are being cancelled are not.
    /// - Throws: ``DownloadError`` as ``add(_:paused:first:)``, with code `usage` if the destination of a download that has
    ///   begun differs, and what `change` throws.
    @discardableResult
    public func update(
        _ id: QueueEntry.ID, _ change: (inout DownloadRequest) throws(DownloadError) -> Void
    ) async throws(DownloadError) -> Bool {
        while let record = try await self.running().machine.entries[id]?.record, !record.state.isCancelling {
            var request = record.request.complete(id: nil)
            try change(&request)
            try request.validate()
            request.destination = request.destination.resolved(in: self.directory)
            guard let path = request.destination.path else {
                throw DownloadError(.usage, "a queue cannot write to a descriptor")
            }
            guard !record.hasBegun || request.destination == record.request.request.destination else {
                throw DownloadError(
                    .usage, "the destination cannot be changed any more: the download has begun",
                    hint: "Cancel the download, and add it again")
            }
            let changed = try QueuedRequest(request, path: path, hasName: false)
            // Again, if the request was changed in the meantime.
            if try await !self.command(.change(id, from: record.request, to: changed)).isEmpty { return true }
        }
        return false
    }

    /// Pauses all downloads that run and starts none, until it is called with `false`. The entries' states are not changed:
    /// those that ran wait. It is not stored.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended.
    public func hold(_ isHeld: Bool) async throws(DownloadError) {
        _ = try await self.command(.hold(isHeld))
    }

    /// The client that fetches the downloads, for example to change its network policy.
    ///
    /// - Throws: ``DownloadError`` as ``DownloadService/client()``.
    public func client() async throws(DownloadError) -> DownloadClient {
        _ = try await self.running()
        return try await self.service.client()
    }

    /// The limits that the downloads share.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended.
    public func limits() async throws(DownloadError) -> DownloadLimits { try await self.running().group.limits }

    /// Changes the limits that the downloads share until the queue ends. `downloads` is how many entries may run at once.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended.
    public func update(_ limits: DownloadLimits) async throws(DownloadError) {
        try await self.running().group.update(limits)
        _ = try await self.command(.limit(limits.downloads))
    }

    /// The entries, in the order of the queue.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended.
    public func entries() async throws(DownloadError) -> [QueueEntry] {
        let running = try await self.running()
        return running.machine.order.compactMap { QueueEntry($0, in: running) }
    }

    /// The entry with this ID; nil if it has left the queue.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended.
    public func entry(_ id: QueueEntry.ID) async throws(DownloadError) -> QueueEntry? {
        QueueEntry(id, in: try await self.running())
    }

    /// The events of the running downloads from now on. A download's ID is that of its entry. Control it through the queue
    /// only. If the request was changed while the download ran, its end is not that of the entry: see ``update(_:_:)``.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended.
    public func events() async throws(DownloadError) -> AsyncStream<DownloadGroup.Event> {
        try await self.running().group.events
    }

    /// Whether a download was started with another request than its entry has now, so that its end is not the entry's.
    package func isOutdated(_ download: Download) async -> Bool {
        guard let id = QueueEntry.ID(rawValue: download.id.rawValue),
            let current = try? await self.running().machine.entries[id]?.record.request.complete(id: id)
        else { return false }
        var started = download.request
        // They differ once the file has a name.
        started.destination = current.destination
        started.continuation = current.continuation
        started.ifExists = current.ifExists
        return !started.continues(as: current)
    }

    /// The segments of an entry's file; empty unless it is active. See ``Download/segments``.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended.
    public func segments(of id: QueueEntry.ID) async throws(DownloadError) -> [SegmentStatus] {
        await (try await self.running()).group.download(id: id.download)?.segments ?? []
    }

    // MARK: History and settings

    /// The latest rows of the history, the newest first: one for each entry that completed or was cancelled. The latest
    /// 1,000,000 are kept.
    ///
    /// - Parameter offset: How many of the newest rows are skipped.
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended, `file` or `state` if the database cannot
    ///   be read.
    public func history(limit: Int, offset: Int = 0) async throws(DownloadError) -> [HistoryEntry] {
        try await self.running().storage.history(limit: limit, offset: offset)
    }

    /// The number of rows in the history.
    ///
    /// - Throws: ``DownloadError`` as ``history(limit:offset:)``.
    public func historyCount() async throws(DownloadError) -> Int {
        try await self.running().storage.historyCount()
    }

    /// The row of an entry that completed or was cancelled; nil if there is none.
    ///
    /// - Throws: ``DownloadError`` as ``history(limit:offset:)``.
    public func history(of id: QueueEntry.ID) async throws(DownloadError) -> HistoryEntry? {
        try await self.running().storage.history(of: id)
    }

    /// Deletes the rows of these entries from the history, or all rows.
    ///
    /// - Returns: The number of deleted rows.
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended, `file` or `space` if the database cannot
    ///   be written.
    @discardableResult
    public func deleteHistory(of ids: [QueueEntry.ID]?) async throws(DownloadError) -> Int {
        try await self.running().storage.deleteHistory(of: ids)
    }

    /// The text that ``set(_:to:)`` stored under a name; nil if there is none.
    ///
    /// - Throws: ``DownloadError`` as ``history(limit:offset:)``.
    public func setting(_ name: String) async throws(DownloadError) -> String? {
        try await self.running().storage.setting(name)
    }

    /// Stores a text of the embedding program's own under a name, in the queue's database. It is durable when the call
    /// returns.
    ///
    /// - Throws: ``DownloadError`` as ``deleteHistory(of:)``.
    public func set(_ name: String, to value: String) async throws(DownloadError) {
        try await self.running().storage.set(name, to: value)
    }
}

extension QueueEntry {
    init?(_ id: ID, in running: DownloadQueue.Running) {
        guard let entry = running.machine.entries[id] else { return nil }
        let record = entry.record
        let state: State
        switch (record.state, entry.phase) {
        case (.queued, .active): state = .active
        case (.queued, .idle), (.queued, .leaving), (.queued, .blocked): state = .waiting
        case (.paused, _): state = .paused
        case (.failed, _): state = .failed
        case (.cancelling, _): state = .cancelling
        }
        self.init(
            id: record.id, state: state, request: record.request.request, attempts: record.attempts,
            added: record.added, error: record.state.error,
            progress: (entry.phase == .active ? running.group.download(id: id.download)?.snapshot : nil)
                ?? entry.progress)
    }
}
