public import SegmentedDownload
public import ServiceLifecycle
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
///
/// In a service group of swift-service-lifecycle, list it before the services that use it. A graceful shutdown pauses its
/// downloads.
public final class DownloadQueue: Service {
    typealias Answer = Result<[QueueEntry.ID], DownloadError>

    /// A command of a user, and who waits for its answer.
    private struct Command: Sendable {
        let event: QueueStateMachine.Event
        let answer: CheckedContinuation<Answer, Never>
    }

    /// What there is while the queue runs.
    struct Running: Sendable {
        /// As it is stored.
        var machine: QueueStateMachine
        let group: DownloadGroup
        let storage: any QueueStorage
    }

    private enum Phase {
        /// Not run yet. Becomes `starting` or `unused`.
        case created
        /// Shut down before it was run.
        case unused
        /// The database and the download group are being opened. Becomes `running` or `over`.
        case starting
        /// Becomes `over`.
        case running(Running)
        /// No command is accepted any more, for this reason.
        case over(DownloadError)

        /// Why no command is accepted; nil if one is, now or later.
        var ending: DownloadError? {
            switch self {
            case .created, .starting, .running: nil
            case .unused: DownloadQueue.isOver
            case .over(let error): error
            }
        }
    }

    private struct State {
        var phase = Phase.created
        var isEnding = false
        /// Whether a wake-up follows after a failed write.
        var isRetrying = false
        var commands: [Command] = []
        /// Reports on the group that are not stored yet, in the order they came.
        var reports: [QueueStateMachine.Event] = []
        /// Callers that wait until the queue runs or is over.
        var waiters: [AsyncStream<Never>.Continuation] = []
        /// Sequences of ``DownloadQueue/changes``.
        var observers = Observers<Void>()
        /// Sequences of ``DownloadQueue/startFailures``.
        var failureObservers = Observers<QueueEntry>()
        var revision = 0
        var repair: QueueRepair?
        /// Why the storage cannot be used any more.
        var damage: DownloadError?
    }

    /// 1 s: how long after a failed write the next one follows; each further one takes twice as long.
    private static let writeDelay: Duration = .seconds(1)
    private static let writeDelayMax: Duration = .seconds(30)

    let service: DownloadService
    private let open: @Sendable () async throws(DownloadError) -> QueueOpening
    let directory: FilePath
    private let limit: Int
    private let isHeld: Bool
    let clock: any EngineClock
    private let state = Mutex(State())
    private let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// Creates a queue, which does nothing until it runs.
    ///
    /// - Parameters:
    ///   - database: The SQLite database. It is created if it is missing. No other user may be able to write to its
    ///     directory.
    ///   - directory: Relative destinations are resolved against it when they are added. It is created if it is missing.
    ///   - isHeld: Whether all downloads wait until ``hold(_:)`` is called with `false`.
    public convenience init(
        _ configuration: DownloadConfiguration = DownloadConfiguration(), database: FilePath,
        directory: FilePath = ".", isHeld: Bool = false
    ) {
        var configuration = configuration
        configuration.history.listsFinished = false
        // Absolute, so that a process in another working directory continues the same files.
        let workingDirectory = FilePath(FileManager.default.currentDirectoryPath)
        let path = workingDirectory.pushing(database)
        let directory = workingDirectory.pushing(directory).lexicallyNormalized()
        self.init(
            DownloadService(configuration, directory: directory), limit: configuration.limits.downloads,
            directory: directory, isHeld: isHeld, clock: SystemClock()
        ) { () async throws(DownloadError) in
            try await DatabaseStorage.open(at: path, directory: directory)
        }
    }

    /// Creates a queue with a given service, storage and clock. The simulator uses it.
    package init(
        _ service: DownloadService, limit: Int, directory: FilePath, isHeld: Bool = false, clock: any EngineClock,
        open: @escaping @Sendable () async throws(DownloadError) -> QueueOpening
    ) {
        self.service = service
        self.limit = limit
        self.directory = directory
        self.isHeld = isHeld
        self.clock = clock
        self.open = open
    }

    // MARK: Running

    /// Runs the queue until ``shutdown()``, then pauses its downloads, so that everything fetched is durable. They continue
    /// when a queue with this database runs again. If the task is cancelled, it ends at once, as if the process had been
    /// killed.
    ///
    /// - Throws: ``DownloadError`` as ``DownloadService/run()``; with code `exists` if another process runs the queue,
    ///   `state` if the database was written by a later version or proves to be damaged while the queue runs, `file` if it
    ///   cannot be opened. A database that is damaged when the queue begins to run is replaced: see ``repair``.
    public func run() async throws(DownloadError) {
        let before = self.state.withLock { state in
            defer { if case .created = state.phase { state.phase = .starting } }
            return state.phase
        }
        switch before {
        case .created: break
        case .unused: return
        case .starting, .running, .over: throw DownloadError(.usage, "a queue runs only once")
        }
        let result = await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await self.serve()
            } onGracefulShutdown: {
                self.shutdown()
            }
        } onCancel: {
            self.shutdown()
        }
        do {
            try result.get()
        } catch {
            self.end(with: error)
            throw error
        }
        self.end(with: Self.isOver)
    }

    private static let isOver = DownloadError(.cancelled, "the queue has ended")

    private func serve() async -> Result<Void, DownloadError> {
        let opening: QueueOpening
        do throws(DownloadError) {
            opening = try await self.open()
        } catch {
            return .failure(error)
        }
        self.state.withLock { $0.repair = opening.repair }
        let storage = opening.storage
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
            await self.work(
                Running(
                    machine: QueueStateMachine(opening.records, limit: self.limit, isHeld: self.isHeld), group: group,
                    storage: storage))
            self.service.shutdown()
            var result = Result<Void, DownloadError>.success(())
            for await one in tasks { if case .failure = one { result = one } }
            // What completed while the downloads were being paused.
            let last = await self.store(storage)
            if let damage = self.state.withLock({ $0.damage }) {
                result = .failure(damage)
            } else if last == nil, case .success = result {
                result = .failure(
                    DownloadError(
                        .file, "the last changes of the queue could not be written",
                        hint: "Downloads that have just completed are found complete when the queue runs again"))
            }
            return result
        }
        // First, because callers must not read a database that is being closed.
        self.end(with: Self.isOver)
        do throws(DownloadError) {
            try await storage.close()
        } catch {
            return result.flatMap { .failure(error) }
        }
        return result
    }

    /// Ends the queue: its downloads are paused, and ``run()`` returns. May be called at any time from any task. A queue that
    /// has not begun to run never does.
    ///
    /// Commands that come before ``run()`` returns are stored and answered last.
    public func shutdown() {
        let isUnused = self.state.withLock { state in
            state.isEnding = true
            // Before the reports of downloads that it ends.
            state.reports.insert(.end, at: 0)
            guard case .created = state.phase else { return false }
            state.phase = .unused
            return true
        }
        if isUnused { self.release(Self.isOver) }
        self.wake.yield()
        // Before the queue runs, nothing else ends the service.
        if self.state.withLock({ if case .running = $0.phase { false } else { true } }) { self.service.shutdown() }
    }

    /// Handles commands and reports until the queue is shut down.
    private func work(_ running: Running) async {
        let waiters = self.state.withLock { state in
            state.phase = .running(running)
            if !state.isEnding { state.reports.insert(.begin, at: 0) }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.finish() }
        self.wake.yield()
        await withDiscardingTaskGroup { tasks in
            var delay = Self.writeDelay
            for await _ in self.wakes {
                if let actions = await self.store(running.storage) {
                    delay = Self.writeDelay
                    self.perform(actions, in: running.group, &tasks)
                } else if self.state.withLock({ state in
                    defer { state.isRetrying = true }
                    return !state.isRetrying
                }) {
                    let pause = delay
                    delay = min(delay * 2, Self.writeDelayMax)
                    tasks.addTask {
                        try? await self.clock.sleep(until: self.clock.now + pause)
                        self.state.withLock { $0.isRetrying = false }
                        self.wake.yield()
                    }
                }
                if self.state.withLock({ $0.isEnding || $0.damage != nil }) { break }
            }
            tasks.cancelAll()
        }
    }

    /// Applies what has come since the last time, once it is durable.
    ///
    /// - Returns: What to do with the group; nil if it could not be stored. Then commands have failed, and reports are
    ///   handled with the next call.
    private func store(_ storage: any QueueStorage) async -> [QueueStateMachine.Action]? {
        let (commands, reports, phase) = self.state.withLock { state in
            defer { (state.commands, state.reports) = ([], []) }
            return (state.commands, state.reports, state.phase)
        }
        guard case .running(var running) = phase, !commands.isEmpty || !reports.isEmpty else { return [] }
        let time = self.clock.secondsSinceEpoch
        var actions = reports.flatMap { running.machine.handle($0, at: time) }
        let answers = commands.map { command in
            let own = running.machine.handle(command.event, at: time)
            actions += own
            let changed = Set(own.compactMap { $0.change?.id })
            return command.event.subjects.filter { changed.contains($0) }
        }
        let changes = actions.compactMap(\.change)
        do {
            if !changes.isEmpty { try await storage.apply(changes) }
        } catch {
            self.state.withLock { state in
                state.reports.insert(contentsOf: reports, at: 0)
                if error.code == .state { state.damage = error }
            }
            for command in commands { command.answer.resume(returning: .failure(error)) }
            return nil
        }
        self.state.withLock { state in
            state.phase = .running(running)
            state.revision += 1
        }
        for (command, ids) in zip(commands, answers) { command.answer.resume(returning: .success(ids)) }
        for case .startFailed(let id, _) in reports {
            guard let entry = QueueEntry(id, in: running), entry.state == .failed else { continue }
            for observer in self.state.withLock({ $0.failureObservers.all }) { observer.yield(entry) }
        }
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
            case .start(let id):
                self.add(id) { (request) throws(DownloadError) in
                    try group.add(request)
                } failed: { error in
                    // The group ended first.
                    error.code == .cancelled ? .ended(id, .paused(nil)) : .startFailed(id, error)
                }
            case .load(let id):
                self.add(id) { (request) throws(DownloadError) in
                    let download = try group.add(paused: request)
                    if download.id == id.download { download.claimUnrecordedPart() }
                    return download
                } failed: { error in
                    error.code == .cancelled ? .ended(id, .paused(nil)) : .cancelFailed(id, error)
                }
            case .pause(let id):
                tasks.addTask { await group.download(id: id.download)?.pause() }
            case .update(let id):
                guard let download = group.download(id: id.download), let options = self.options(of: id) else {
                    continue
                }
                download.update(priority: options.priority)
                download.update(segments: options.segments)
                download.update(bytesPerSecond: options.bytesPerSecond)
            case .cancel(let id, let keepingPartial):
                tasks.addTask {
                    guard let download = group.download(id: id.download) else { return }
                    await download.cancel(keepingPartial: keepingPartial)
                    if case .failed(let error, _)? = download.outcome { self.report(.cancelFailed(id, error)) }
                }
            case .remove(let id):
                guard let download = group.download(id: id.download) else {
                    self.report(.removed(id))
                    continue
                }
                tasks.addTask { await group.remove(download) }
            }
        }
    }

    private func options(of id: QueueEntry.ID) -> DownloadOptions? {
        guard case .running(let running) = self.state.withLock({ $0.phase }) else { return nil }
        return running.machine.entries[id]?.record.request.request.options
    }

    /// Adds an entry to the group, or reports why it is not in it.
    private func add(
        _ id: QueueEntry.ID, _ add: (DownloadRequest) throws(DownloadError) -> Download,
        failed: (DownloadError) -> QueueStateMachine.Event
    ) {
        guard case .running(let running) = self.state.withLock({ $0.phase }), let entry = running.machine.entries[id]
        else { return }
        do throws(DownloadError) {
            let download = try add(entry.record.request.complete(id: id))
            guard download.id != id.download else { return }
            guard let other = QueueEntry.ID(rawValue: download.id.rawValue) else {
                throw DownloadError(.exists, "the download \(download.id) fetches the same file")
            }
            self.report(.blocked(id, by: other))
        } catch {
            self.report(failed(error))
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
            case .started: self.report(.begun(id, at: download.path))
            case .paused(let progress): self.report(.ended(id, .paused(progress)))
            case .failed(let error, let progress): self.report(.ended(id, .failed(error, progress)))
            case .completed, .cancelled:
                guard let row = HistoryEntry(event, of: download, at: self.clock.secondsSinceEpoch) else { return }
                self.report(.ended(id, event == .cancelled ? .cancelled(row) : .completed(row)))
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
        self.register(observer, in: \.observers)
        return changes
    }

    /// The entries that fail before their download has begun, from now on: ``events()`` has nothing of them. It ends with
    /// the queue. The latest 1024 wait for an observer that is busy.
    public var startFailures: AsyncStream<QueueEntry> {
        let (failures, observer) = AsyncStream.makeStream(of: QueueEntry.self, bufferingPolicy: .bufferingNewest(1024))
        self.register(observer, in: \.failureObservers)
        return failures
    }

    /// Adds a reader, or ends its sequence if the queue is over.
    private func register<Element: Sendable>(
        _ observer: AsyncStream<Element>.Continuation,
        in observers: any WritableKeyPath<State, Observers<Element>> & Sendable
    ) {
        let number = self.state.withLock { state in
            state.phase.ending == nil ? state[keyPath: observers].add(observer) : nil
        }
        guard let number else { return observer.finish() }
        observer.onTermination = { [weak self] _ in
            self?.state.withLock { $0[keyPath: observers].remove(number) }
        }
    }

    /// What was done when the queue began to run, if its database was damaged: it was set aside, and replaced by one that
    /// has what could be read. Nil before the queue runs.
    public var repair: QueueRepair? { self.state.withLock { $0.repair } }

    /// A number that grows whenever the queue's entries or their states change. The progress of a download does not count.
    public var revision: Int { self.state.withLock { $0.revision } }

    private func announce() {
        for observer in self.state.withLock({ $0.observers.all }) { observer.yield() }
    }

    // MARK: Commands

    /// Sends a command, and waits until its effect is durable.
    ///
    /// - Returns: The entries that it changed.
    func command(_ event: QueueStateMachine.Event) async throws(DownloadError) -> [QueueEntry.ID] {
        _ = try await self.running()
        let answer = await withCheckedContinuation { (answer: CheckedContinuation<Answer, Never>) in
            let over = self.state.withLock { state -> DownloadError? in
                if let error = state.phase.ending { return error }
                state.commands.append(Command(event: event, answer: answer))
                return nil
            }
            if let over { answer.resume(returning: .failure(over)) } else { self.wake.yield() }
        }
        return try answer.get()
    }

    /// What there is while the queue runs. Waits until it does.
    func running() async throws(DownloadError) -> Running {
        let (begun, waiter) = AsyncStream.makeStream(of: Never.self)
        self.state.withLock { state in
            switch state.phase {
            case .created, .starting: state.waiters.append(waiter)
            case .running, .unused, .over: waiter.finish()
            }
        }
        for await _ in begun {}
        switch self.state.withLock({ $0.phase }) {
        case .running(let running): return running
        case .unused: throw Self.isOver
        case .over(let error): throw error
        case .created, .starting: throw DownloadError(.cancelled, "the wait for the queue was cancelled")
        }
    }

    private func end(with error: DownloadError) {
        self.state.withLock { $0.phase = .over(error) }
        self.release(error)
    }

    /// Ends all waits, because the queue does not run any more.
    private func release(_ error: DownloadError) {
        let (commands, waiters, observers, failures) = self.state.withLock { state in
            defer { (state.commands, state.waiters) = ([], []) }
            return (
                state.commands, state.waiters, state.observers.removeAll(), state.failureObservers.removeAll()
            )
        }
        for observer in observers { observer.finish() }
        for observer in failures { observer.finish() }
        for command in commands { command.answer.resume(returning: .failure(error)) }
        for waiter in waiters { waiter.finish() }
    }
}

extension QueueStateMachine.Action {
    /// What is to be stored; nil for other actions.
    fileprivate var change: QueueChange? { if case .store(let change) = self { change } else { nil } }
}
