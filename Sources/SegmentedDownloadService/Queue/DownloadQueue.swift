public import SegmentedDownload
import Synchronization
public import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A queue of downloads that is kept in a database, and a ``DownloadService`` that runs them.
///
/// The database stores what is wanted and in which order. What has been fetched is in the manifest beside each file. Both
/// survive a killed process and a power cut: create a queue with the same database again, and its downloads continue.
///
/// ```swift
/// let queue = DownloadQueue(database: "/var/lib/files/queue.sqlite", directory: "/srv/files")
/// async let running: Void = queue.run()
/// let ids = try await queue.add([DownloadRequest(SourceURL("https://example.org/file.iso"))])
/// ```
public final class DownloadQueue: Sendable {
    /// A command of a user, and its answer.
    struct Command: Sendable {
        let event: QueueStateMachine.Event
        let answer: CheckedContinuation<DownloadError?, Never>
    }

    private struct State {
        var commands: [Command] = []
        /// Reports of the group that are not stored yet, in the order they came.
        var reports: [QueueStateMachine.Event] = []
        /// The machine as it is stored; nil before the queue runs.
        var machine: QueueStateMachine?
        var group: DownloadGroup?
        var database: QueueDatabase?
        var isEnding = false
        /// Why no command is accepted any more; nil before the queue is over.
        var over: DownloadError?
        /// Callers that wait until the queue runs or is over.
        var waiters: [AsyncStream<Never>.Continuation] = []
        /// Sequences of ``DownloadQueue/changes``, by number.
        var observers: [Int: AsyncStream<Void>.Continuation] = [:]
        var observerNext = 0
    }

    private let service: DownloadService
    private let database: FilePath
    let directory: FilePath
    private let limit: Int
    private let state = Mutex(State())
    private let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// Creates a queue, which does nothing until it runs.
    ///
    /// - Parameters:
    ///   - database: The SQLite database. It is created if it is missing, and only its owner can read it.
    ///   - directory: Relative destinations are resolved against it when they are added. It is created if it is missing.
    public init(
        _ configuration: DownloadConfiguration = DownloadConfiguration(), database: FilePath, directory: FilePath = "."
    ) {
        var configuration = configuration
        configuration.history.listsFinished = false
        self.limit = configuration.limits.downloads
        self.service = DownloadService(configuration, directory: directory)
        self.database = database
        self.directory = directory
    }

    // MARK: Running

    /// Runs the queue until ``shutdown()``, then pauses its downloads, so that everything fetched is durable. They continue
    /// when a queue with this database runs again. May be called once.
    ///
    /// - Throws: ``DownloadError`` as ``DownloadService/run()``, and with code `state` or `file` if the database is
    ///   damaged, was written by a later version, or cannot be opened.
    public func run() async throws(DownloadError) {
        do throws(DownloadError) {
            try await self.serve()
        } catch {
            self.end(with: error)
            throw error
        }
        self.end(with: DownloadError(.cancelled, "the queue has ended"))
    }

    private func serve() async throws(DownloadError) {
        let database = try await EngineThreads.aside { () throws(DownloadError) in try QueueDatabase(at: self.database)
        }
        let records = try await EngineThreads.aside { () throws(DownloadError) in try database.records() }
        let result = await withTaskGroup(of: Result<Void, DownloadError>.self) { tasks in
            tasks.addTask {
                do throws(DownloadError) {
                    return .success(try await self.service.run())
                } catch {
                    return .failure(error)
                }
            }
            guard let group = try? await self.service.downloads() else { return await tasks.next() ?? .success(()) }
            let events = group.events
            tasks.addTask {
                for await event in events { self.handle(event) }
                return .success(())
            }
            await self.work(QueueStateMachine(records, limit: self.limit), database, group)
            self.service.shutdown()
            var result = Result<Void, DownloadError>.success(())
            for await one in tasks { if case .failure = one { result = one } }
            // What completed while the downloads were being paused.
            await self.store(database)
            return result
        }
        do throws(DownloadError) {
            try await EngineThreads.aside { () throws(DownloadError) in try database.close() }
            try result.get()
        } catch {
            try result.get()
            throw error
        }
    }

    /// Ends the queue: its downloads are paused, and ``run()`` returns. May be called at any time from any task.
    public func shutdown() {
        self.state.withLock { state in
            state.isEnding = true
            state.reports.append(.end)
        }
        self.wake.yield()
        // If it has not begun to run, it never does.
        if self.state.withLock({ $0.group == nil }) { self.service.shutdown() }
    }

    /// Handles commands and reports until the queue is shut down.
    private func work(_ first: QueueStateMachine, _ database: QueueDatabase, _ group: DownloadGroup) async {
        var machine = first
        let begin = machine.begin()
        let waiters = self.state.withLock { state in
            state.machine = machine
            state.group = group
            state.database = database
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.finish() }
        await withDiscardingTaskGroup { tasks in
            self.perform(begin, in: group, &tasks)
            for await _ in self.wakes {
                let actions = await self.store(database)
                self.perform(actions, in: group, &tasks)
                if self.state.withLock({ $0.isEnding }) { break }
            }
            tasks.cancelAll()
        }
    }

    /// Applies what has come since the last time, once it is durable.
    ///
    /// - Returns: What to do with the group.
    @discardableResult
    private func store(_ database: QueueDatabase) async -> [QueueStateMachine.Action] {
        let (commands, reports, old) = self.state.withLock { state in
            defer { (state.commands, state.reports) = ([], []) }
            return (state.commands, state.reports, state.machine)
        }
        guard var machine = old, !commands.isEmpty || !reports.isEmpty else { return [] }
        let actions = (reports + commands.map(\.event)).flatMap { machine.handle($0) }
        let changes = actions.compactMap { action in
            if case .store(let change) = action { change } else { nil }
        }
        do throws(DownloadError) {
            if !changes.isEmpty { try await database.apply(changes) }
        } catch {
            // The commands fail. The reports are handled again with the next wake-up.
            self.state.withLock { $0.reports.insert(contentsOf: reports, at: 0) }
            for command in commands { command.answer.resume(returning: error) }
            return []
        }
        self.state.withLock { $0.machine = machine }
        for command in commands { command.answer.resume(returning: nil) }
        self.announce()
        return actions
    }

    // MARK: The group

    private func perform(
        _ actions: [QueueStateMachine.Action], in group: DownloadGroup, _ tasks: inout DiscardingTaskGroup
    ) {
        for action in actions {
            switch action {
            case .store: continue
            case .start(let id): self.start(id, in: group) { request throws(DownloadError) in try group.add(request) }
            case .load(let id):
                self.start(id, in: group) { request throws(DownloadError) in try group.add(paused: request) }
            case .pause(let id):
                tasks.addTask { await group.download(id: id.download)?.pause() }
            case .cancel(let id, let keepingPartial):
                tasks.addTask { await group.download(id: id.download)?.cancel(keepingPartial: keepingPartial) }
            case .remove(let id):
                guard let download = group.download(id: id.download) else {
                    self.report(.removed(id))
                    continue
                }
                tasks.addTask { await group.remove(download) }
            }
        }
    }

    private func start(
        _ id: QueueEntry.ID, in group: DownloadGroup,
        _ add: (DownloadRequest) throws(DownloadError) -> Download
    ) {
        do throws(DownloadError) {
            guard let record = self.state.withLock({ $0.machine?.entries[id]?.record }) else { return }
            let download = try add(record.downloadRequest())
            guard download.id == id.download else {
                throw DownloadError(.exists, "entry \(download.id) of the queue fetches the same file")
            }
        } catch {
            self.report(.rested(id, .failed(error)))
        }
    }

    private func handle(_ event: DownloadGroup.Event) {
        defer { self.announce() }
        switch event {
        case .added, .allCompleted: return
        case .removed(let download):
            guard let id = QueueEntry.ID(rawValue: download.id.rawValue) else { return }
            self.report(.removed(id))
        case .download(let download, let event):
            guard let id = QueueEntry.ID(rawValue: download.id.rawValue) else { return }
            switch event {
            case .progress, .segment, .retrying, .checkpoint, .note, .state: return
            case .started: self.report(.named(id, RecordedRequest(started: download)))
            case .paused: self.report(.rested(id, .paused))
            case .failed(let error, _): self.report(.rested(id, .failed(error)))
            case .completed, .cancelled:
                guard let row = HistoryEntry(event, of: download, at: Self.now) else { return }
                self.report(.rested(id, event == .cancelled ? .cancelled(row) : .completed(row)))
            }
        }
    }

    private func report(_ event: QueueStateMachine.Event) {
        self.state.withLock { $0.reports.append(event) }
        self.wake.yield()
    }

    // MARK: Watching

    /// An element for each change of the queue or of one of its downloads, so that an observer can look at
    /// ``entries()`` again. Changes that come while the observer is busy are one element. The first element comes at once;
    /// the sequence ends with the queue.
    public var changes: AsyncStream<Void> {
        let (changes, observer) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        observer.yield()
        let number = self.state.withLock { state -> Int? in
            guard state.over == nil else { return nil }
            state.observerNext += 1
            state.observers[state.observerNext] = observer
            return state.observerNext
        }
        guard let number else {
            observer.finish()
            return changes
        }
        observer.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.observers.removeValue(forKey: number) }
        }
        return changes
    }

    private func announce() {
        for observer in self.state.withLock({ $0.observers.values.map(\.self) }) { observer.yield() }
    }

    // MARK: Commands

    /// Sends a command, and waits until its effect is durable.
    func command(_ event: QueueStateMachine.Event) async throws(DownloadError) {
        try await self.waitUntilRunning()
        let error = await withCheckedContinuation { answer in
            let over = self.state.withLock { state in
                if state.over == nil { state.commands.append(Command(event: event, answer: answer)) }
                return state.over
            }
            if let over { answer.resume(returning: over) } else { self.wake.yield() }
        }
        if let error { throw error }
    }

    /// The machine as it is stored, the group and the database. Waits until the queue runs.
    func stored() async throws(DownloadError) -> (
        machine: QueueStateMachine, group: DownloadGroup, database: QueueDatabase
    ) {
        try await self.waitUntilRunning()
        let state = self.state.withLock { ($0.machine, $0.group, $0.database, $0.over) }
        if let over = state.3 { throw over }
        guard let machine = state.0, let group = state.1, let database = state.2 else {
            throw DownloadError(.internal, "the queue runs without a group")
        }
        return (machine, group, database)
    }

    private func waitUntilRunning() async throws(DownloadError) {
        let (begun, waiter) = AsyncStream.makeStream(of: Never.self)
        self.state.withLock { state in
            if state.group == nil, state.over == nil { state.waiters.append(waiter) } else { waiter.finish() }
        }
        for await _ in begun {}
        guard !Task.isCancelled else { throw DownloadError(.cancelled, "the wait for the queue was cancelled") }
    }

    private func end(with error: DownloadError) {
        let (commands, waiters, observers) = self.state.withLock { state in
            state.over = error
            defer { (state.commands, state.waiters, state.observers) = ([], [], [:]) }
            return (state.commands, state.waiters, state.observers.values)
        }
        for observer in observers { observer.finish() }
        for command in commands { command.answer.resume(returning: error) }
        for waiter in waiters { waiter.finish() }
    }

    /// In seconds since 1970.
    static var now: Int64 { Int64(Date().timeIntervalSince1970) }
}

extension RecordedRequest {
    /// The request of a download that has begun: its file has a name, and it is not begun anew after a restart.
    ///
    /// If a kill comes between placing the file and recording its end, the download must recognise the file as its own.
    init(started download: Download) {
        var request = download.request
        request.options = request.options.resuming
        if [.rename, .fail].contains(request.options.ifExists) { request.options.ifExists = .verify }
        self.init(request, path: download.path.string, hasName: true)
    }
}
