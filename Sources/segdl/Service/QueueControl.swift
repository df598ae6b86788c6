import SegmentedDownload
import SegmentedDownloadService

/// What the service does for its clients, whichever protocol they use.
struct QueueControl: Sendable {
    /// What can be done with entries.
    enum Action: String, CaseIterable, Sendable {
        /// Pause entries that run or wait.
        case pause
        /// Resume paused entries.
        case resume
        /// Pause entries that run or wait, and resume paused ones.
        case toggle
        /// Try failed entries again.
        case retry
        /// Stop entries, and take them out of the queue.
        case cancel
        /// Take entries at rest out of the queue, and ended ones out of the history.
        case remove
        /// Move an entry.
        case move
        /// Change options.
        case change
    }

    let queue: DownloadQueue
    let policy: ServicePolicy
    /// The options that apply to each file, below those of a request.
    let layers: Layers
    /// Relative paths of clients begin here.
    let directory: FilePath
    /// Where clients may save files; nil for anywhere. Clients for which it is set cannot send a ``PortableRequest``.
    var roots: SavingRoots?
    /// See ``DownloadOptions/allowsPrivateAddresses``.
    var allowsPrivateAddresses = true

    private var selector: EntrySelector { EntrySelector(queue: self.queue) }

    // MARK: Adding

    /// Adds the files, and returns once they are durable.
    func add(_ submission: Submission) async throws(DownloadError) -> [QueueEntry.ID] {
        var requests: [DownloadRequest] = []
        var ids: [Int: QueueEntry.ID] = [:]
        for (index, file) in submission.downloads.enumerated() {
            switch file {
            case .request(let request):
                guard self.roots == nil else {
                    throw DownloadError(.policy, "a download must be described by its URL and options")
                }
                requests.append(try request.request())
            case .described(let description):
                requests.append(try self.request(description))
                guard let text = description.gid else { continue }
                guard let id = QueueEntry.ID(rawValue: text) else {
                    throw DownloadError(.usage, "a gid has 16 hexadecimal digits, unlike \(text.shown)")
                }
                ids[index] = id
            }
        }
        return try await self.queue.add(
            requests, ids: ids, paused: submission.paused ?? false, first: submission.first ?? false)
    }

    /// The request that a client's description means.
    func request(_ description: Submission.Description) throws(DownloadError) -> DownloadRequest {
        var draft = RequestDraft(request: DownloadRequest(try SourceURL(description.url)))
        for mirror in description.mirrors ?? [] { draft.request.mirrors.append(try SourceURL(mirror)) }
        draft.dir = self.directory.string
        try self.layers.current.apply(to: &draft)
        try Self.apply(description.options ?? [:], to: &draft)
        var request = draft.finished
        request.id = nil
        request.options.lengthExpected = description.length
        request.pieceDigests = description.pieceDigests
        switch request.destination {
        case .file, .directory: break
        case .descriptor, .stream:
            throw DownloadError(.usage, "a download of the service needs a file, not standard output")
        }
        try self.roots?.confine(&request)
        self.restrict(&request)
        return request
    }

    /// Applies what the client may not do to a request that it adds or changes.
    func restrict(_ request: inout DownloadRequest) {
        if !self.allowsPrivateAddresses { request.allowsPrivateAddresses = false }
    }

    private static func apply(
        _ options: [String: Submission.OptionValue], to draft: inout RequestDraft
    ) throws(DownloadError) {
        do throws(ListProblem) {
            // Sorted, so that the first error does not depend on chance.
            for (name, value) in options.sorted(by: { $0.key < $1.key }) {
                for text in value.texts {
                    guard !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
                        throw ListProblem(.element(""), "\(name.shown) contains a control character")
                    }
                    try draft.apply(InputList.Option(place: .element(""), key: name, value: text))
                }
            }
        } catch {
            throw DownloadError(error.code, error.message)
        }
        try draft.endLayer()
    }

    // MARK: Acting on entries

    func perform(_ action: Action, on selection: EntrySelection) async throws(DownloadError) -> EntrySelection.Answer {
        var entries: [QueueEntry] = []
        var rows: [QueueEntry.ID] = []
        var errors: [String: EntryRecord.Failure] = [:]
        if selection.all == true {
            guard selection.ids == nil, action != .move, action != .change else {
                throw DownloadError(.usage, "\"all\" excludes \"ids\", and does not apply to \(action.rawValue)")
            }
            entries = try await self.queue.entries().filter { Self.applies(action, to: $0.state) }
            if action == .remove { try await self.queue.deleteHistory(of: nil) }
        }
        let ids = selection.ids ?? []
        let index = ids.isEmpty ? nil : try await self.selector.index()
        var latest: [HistoryEntry]?
        for text in ids {
            do throws(DownloadError) {
                if let entry = try index?.entry(text, in: selection.directory) {
                    guard Self.applies(action, to: entry.state) else { throw Self.refusal(of: action, entry) }
                    entries.append(entry)
                } else if action == .remove,
                    let row = try await self.selector.row(text, in: &latest, from: selection.directory),
                    let id = QueueEntry.ID(rawValue: row.id)
                {
                    rows.append(id)
                } else {
                    throw EntrySelector.unknown(text)
                }
            } catch {
                errors[text] = EntryRecord.Failure(error)
            }
        }
        var changed = try await self.perform(action, on: entries, selection, &errors)
        if !rows.isEmpty {
            try await self.queue.deleteHistory(of: rows)
            changed += rows
        }
        return EntrySelection.Answer(changed: changed.map(\.rawValue), errors: errors)
    }

    private func perform(
        _ action: Action, on entries: [QueueEntry], _ selection: EntrySelection,
        _ errors: inout [String: EntryRecord.Failure]
    ) async throws(DownloadError) -> [QueueEntry.ID] {
        let ids = entries.map(\.id)
        guard !ids.isEmpty else { return [] }
        switch action {
        case .pause: return try await self.queue.pause(ids)
        case .toggle:
            let resumed = try await self.queue.resume(entries.filter { $0.state == .paused }.map(\.id))
            return resumed + (try await self.queue.pause(entries.filter { $0.state != .paused }.map(\.id)))
        case .resume, .retry: return try await self.queue.resume(ids)
        case .cancel: return try await self.queue.cancel(ids, keepingPartial: !(selection.delete ?? false))
        case .remove:
            let changed = try await self.queue.cancel(ids)
            // It was at rest, so it is in the history already.
            try await self.queue.deleteHistory(of: changed)
            return changed
        case .move:
            guard ids.count == 1, let place = selection.to, place >= 0 else {
                throw DownloadError(.usage, "move needs one entry, and \"to\", a place from 0")
            }
            try await self.queue.move(ids[0], to: place)
            return ids
        case .change:
            let changes = await self.change(ids, selection.options ?? [:])
            // A mistake in the options is one of the whole request.
            if ids.count == 1, let error = changes.first?.error { throw error }
            for change in changes { errors[change.id.rawValue] = change.error.map { EntryRecord.Failure($0) } }
            return changes.filter(\.isMade).map(\.id)
        }
    }

    /// Changes options of an entry. Where its file goes can be changed until the download has begun.
    func change(
        _ id: QueueEntry.ID, _ options: [String: Submission.OptionValue]
    ) async throws(DownloadError) -> Bool {
        let moves = options.keys.contains { FileOption.named($0)?.isPlacement == true }
        return try await self.queue.update(id) { (request) throws(DownloadError) in
            var draft = RequestDraft(request: request)
            if moves { draft.place() }
            // Instead of those that it had: a wrong one could not be corrected otherwise.
            if options.keys.contains(where: { FileOption.named($0)?.name == "checksum" }) { draft.request.digests = [] }
            try Self.apply(options, to: &draft)
            let directory = request.destination.directory
            request = moves ? draft.finished : draft.request
            guard moves else { return }
            // Another directory is this client's choice, the same one is still that of the client who added the download.
            if request.destination.directory != directory { request.rootDirectory = nil }
            try self.roots?.confine(&request)
        }
    }

    private struct Change: Sendable {
        let id: QueueEntry.ID
        /// Whether it was made. An entry that has left the queue is not changed.
        var isMade = false
        var error: DownloadError?
    }

    /// Changes several entries, all at once so that one transaction stores most of them.
    private func change(_ ids: [QueueEntry.ID], _ options: [String: Submission.OptionValue]) async -> [Change] {
        let changes = await withTaskGroup(of: Change.self) { tasks in
            for id in ids {
                tasks.addTask {
                    var change = Change(id: id)
                    do throws(DownloadError) {
                        change.isMade = try await self.change(id, options)
                    } catch {
                        change.error = error
                    }
                    return change
                }
            }
            return await tasks.reduce(into: [QueueEntry.ID: Change]()) { $0[$1.id] = $1 }
        }
        return ids.compactMap { changes[$0] }
    }

    private static func applies(_ action: Action, to state: QueueEntry.State) -> Bool {
        switch (action, state) {
        case (.pause, .waiting), (.pause, .active), (.resume, .paused), (.toggle, .waiting), (.toggle, .active),
            (.toggle, .paused), (.retry, .failed), (.remove, .paused),
            (.remove, .failed), (.cancel, .waiting), (.cancel, .active), (.cancel, .paused), (.cancel, .failed),
            (.move, _), (.change, .waiting), (.change, .active), (.change, .paused), (.change, .failed):
            true
        // A user who resumes a download wants it to run.
        case (.resume, .failed): true
        case (.pause, _), (.resume, _), (.toggle, _), (.retry, _), (.remove, _), (.cancel, _), (.change, _): false
        }
    }

    private static func refusal(of action: Action, _ entry: QueueEntry) -> DownloadError {
        let hint: String? =
            switch (action, entry.state) {
            case (.remove, .waiting), (.remove, .active): "To stop it: segdl cancel \(entry.id)"
            default: nil
            }
        return DownloadError(
            .usage, "cannot \(action.rawValue) \(entry.id), which is \(entry.state.rawValue)", hint: hint)
    }

    // MARK: Reading

    /// The entry or the row of the history that a text means.
    ///
    /// - Parameter directory: The user's directory, see ``EntrySelector``.
    func record(_ text: String, in directory: String? = nil) async throws(DownloadError) -> EntryRecord {
        if let entry = try await self.selector.entryIfAny(text, in: directory) {
            var record = EntryRecord(entry)
            let segments = try await self.queue.segments(of: entry.id)
            record.segments = segments.isEmpty ? nil : segments
            return record
        }
        var latest: [HistoryEntry]?
        if let row = try await self.selector.row(text, in: &latest, from: directory) { return EntryRecord(row) }
        throw EntrySelector.unknown(text)
    }

    /// The entries of the queue that a text may mean.
    func entries(_ text: String, in directory: String?) async throws(DownloadError) -> [QueueEntry] {
        try await self.selector.index().entries(text, in: directory)
    }

    /// Waits until an entry has one of these states or has left the queue, or the time is over.
    ///
    /// - Returns: The entry then, or its row in the history.
    func wait(for id: QueueEntry.ID, until states: Set<String>, atMost limit: Duration) async throws(DownloadError)
        -> EntryRecord
    {
        let changes = self.queue.changes
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                for await _ in changes {
                    guard let entry = try? await self.queue.entry(id), !states.contains(entry.state.rawValue) else {
                        return
                    }
                }
            }
            tasks.addTask { try? await Task.sleep(for: limit) }
            await tasks.next()
            tasks.cancelAll()
        }
        return try await self.record(id.rawValue)
    }

    /// The state of the service.
    func summary(run: String, eventLast: Int) async throws(DownloadError) -> ServiceRecord {
        var counts = Dictionary(uniqueKeysWithValues: QueueEntry.State.allCases.map { ($0.rawValue, 0) })
        var rate = 0.0
        for entry in try await self.queue.entries() {
            counts[entry.state.rawValue, default: 0] += 1
            if entry.state == .active { rate += entry.progress?.rate ?? 0 }
        }
        return ServiceRecord(
            version: SegmentedDownloadVersion.string, pid: ProcessInfo.processInfo.processIdentifier,
            held: self.policy.held?.rawValue, counts: counts, rate: rate.rounded(), event: "\(run)-\(eventLast)")
    }
}

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
