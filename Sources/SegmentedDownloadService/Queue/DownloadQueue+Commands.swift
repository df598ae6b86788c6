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
                    id: QueueEntry.ID(UInt64.random(in: 1...UInt64.max)), position: 0, wish: paused ? .pause : .run,
                    added: Self.now, request: RecordedRequest(request, path: path.string, hasName: false),
                    secrets: RequestSecrets(request)))
        }
        try await self.command(.add(records, first: first))
        return records.map(\.id)
    }

    /// Pauses entries that run or wait. Others are left as they are.
    ///
    /// The call returns once that is stored; a running download stops soon afterwards.
    ///
    /// - Throws: ``DownloadError`` as ``add(_:paused:first:)``.
    public func pause(_ ids: [QueueEntry.ID]) async throws(DownloadError) { try await self.command(.pause(ids)) }

    /// Resumes paused entries and tries failed ones again. Others are left as they are.
    ///
    /// - Throws: ``DownloadError`` as ``add(_:paused:first:)``.
    public func resume(_ ids: [QueueEntry.ID]) async throws(DownloadError) { try await self.command(.resume(ids)) }

    /// Removes entries from the queue. A finished file is not touched.
    ///
    /// The call returns once that is stored; a running download stops soon afterwards. Then the history has a row.
    ///
    /// - Parameter keepingPartial: Whether partial files and their manifests stay on disk. If not, they are deleted.
    /// - Throws: ``DownloadError`` as ``add(_:paused:first:)``.
    public func cancel(_ ids: [QueueEntry.ID], keepingPartial: Bool = true) async throws(DownloadError) {
        try await self.command(.cancel(ids, keepingPartial: keepingPartial))
    }

    /// Moves an entry to a place in the queue, counted from 0. A place behind the end is the end.
    ///
    /// - Throws: ``DownloadError`` as ``add(_:paused:first:)``.
    public func move(_ id: QueueEntry.ID, to place: Int) async throws(DownloadError) {
        try await self.command(.move(id, to: place))
    }

    /// The entries, in the order of the queue.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended.
    public func entries() async throws(DownloadError) -> [QueueEntry] {
        let (machine, group, _) = try await self.stored()
        var entries: [QueueEntry] = []
        for id in machine.order {
            guard let entry = machine.entries[id] else { continue }
            entries.append(try QueueEntry(entry, in: group))
        }
        return entries
    }

    /// The entry with this ID; nil if it has left the queue.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended.
    public func entry(_ id: QueueEntry.ID) async throws(DownloadError) -> QueueEntry? {
        let (machine, group, _) = try await self.stored()
        guard let entry = machine.entries[id] else { return nil }
        return try QueueEntry(entry, in: group)
    }

    /// The latest rows of the history, the newest first: one for each entry that completed or was cancelled.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the queue has ended, `file` or `state` if the database cannot
    ///   be read.
    public func history(limit: Int) async throws(DownloadError) -> [HistoryEntry] {
        try await self.stored().database.history(limit: limit)
    }
}

extension QueueEntry {
    init(_ entry: QueueStateMachine.Entry, in group: DownloadGroup) throws(DownloadError) {
        let record = entry.record
        let state: State
        switch (record.wish, entry.phase) {
        case (.run, .active): state = .active
        case (.run, .idle), (.run, .leaving): state = .waiting
        case (.pause, _): state = .paused
        case (.retryLater, _): state = .failed
        case (.cancel, _): state = .cancelling
        }
        self.init(
            id: record.id, state: state, request: try record.request.request(), attempts: record.attempts,
            added: record.added, error: record.wish.error,
            download: entry.phase == .active ? group.download(id: record.id.download) : nil)
    }
}

extension QueueRecord {
    /// The request with its secrets, as it is added to the group.
    func downloadRequest() throws(DownloadError) -> DownloadRequest {
        var request = try self.request.request()
        self.secrets.complete(&request)
        request.id = self.id.download
        return request
    }
}
