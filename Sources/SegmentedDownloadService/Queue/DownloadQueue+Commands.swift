public import SegmentedDownload

extension DownloadQueue {
    /// Adds downloads, and returns once they are durable: a crash afterwards does not lose them.
    ///
    /// A relative destination is resolved against the queue's directory. ``DownloadRequest/id`` is ignored.
    ///
    /// - Parameters:
    ///   - paused: Whether they wait until they are resumed.
    ///   - first: Whether they come before all others, not after.
    /// - Returns: The IDs of the new entries, in the order of the requests.
    /// - Throws: ``DownloadError`` with code `usage` if a request is invalid or goes to a descriptor; `cancelled` if the
    ///   queue has ended; `file` if they cannot be stored. Then none is added.
    @discardableResult
    public func add(
        _ requests: [DownloadRequest], paused: Bool = false, first: Bool = false
    ) async throws(DownloadError) -> [QueueEntry.ID] {
        var records: [QueueRecord] = []
        for var request in requests {
            try request.validate()
            request.destination = request.destination.resolved(in: self.directory)
            guard let path = request.destination.path else {
                throw DownloadError(.usage, "a queue cannot write to a descriptor")
            }
            records.append(
                QueueRecord(
                    id: QueueEntry.ID(UInt64.random(in: 1...UInt64.max)), position: 0,
                    state: paused ? .paused : .queued,
                    added: Self.now, request: try QueuedRequest(request, path: path, hasName: false)))
        }
        return try await self.command(.add(records, first: first))
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

    /// The latest rows of the history, the newest first: one for each entry that completed or was cancelled. The latest
    /// 1,000,000 are kept.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended, `file` or `state` if the database cannot
    ///   be read.
    public func history(limit: Int) async throws(DownloadError) -> [HistoryEntry] {
        let database = try await self.running().database
        return try await EngineThreads.aside { () throws(DownloadError) in try database.history(limit: limit) }
    }
}

extension QueueEntry {
    fileprivate init?(_ id: ID, in running: DownloadQueue.Running) {
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
            progress: entry.phase == .active ? running.group.download(id: id.download)?.snapshot : nil)
    }
}
