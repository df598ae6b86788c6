import NIOPosix
import SegmentedDownloadCore

/// The threads of an engine: that of its connections, and pools for blocking work, so that disk calls block neither it
/// nor the threads of the global executor.
package struct EngineThreads: Sendable {
    enum Work {
        /// The engine's loop. On the thread of the connections if they have one, so that no other has to be woken.
        case deciding
        /// The first request of each download, until a body has to be written to a file. On the same thread; if the
        /// connections have none, on that of the fetches.
        case asking
        /// Fetches of one download. One thread, because two threads that write to one file wait for its inode lock.
        case fetching(DownloadID)
        /// Syncs, surveys and digests, each of which may take seconds.
        case stepping
        /// In-order readers: digests, and output to a descriptor whose reader may be slow.
        case reading
    }

    private var deciding: (any TaskExecutor)?
    private var fetching: [PoolExecutor] = []
    private var stepping: PoolExecutor?
    private var reading: PoolExecutor?

    /// Runs every task on its parent's executor. For simulated effects, which never block.
    package static let inherited = EngineThreads()

    /// The same threads, with that of a transport's connections; `nil` if the transport has none of its own.
    func deciding(on executor: (any TaskExecutor)?) -> EngineThreads {
        var threads = self
        threads.deciding = executor
        return threads
    }

    private func executor(for work: Work) -> (any TaskExecutor)? {
        switch work {
        case .deciding: self.deciding
        case .asking: self.deciding ?? self.fetching.first
        case .fetching(let id): self.fetching.isEmpty ? nil : self.fetching[id.rawValue % self.fetching.count]
        case .stepping: self.stepping
        case .reading: self.reading
        }
    }

    /// Gives threads to steps that wait behind a long one. To be called several times a second.
    func unblock() { self.stepping?.unblock() }

    /// Runs `body` on the threads for a kind of work, and returns its answer.
    func run<Answer: Sendable, BodyError: Error>(
        _ work: Work, _ body: @escaping @Sendable () async throws(BodyError) -> Answer
    ) async throws(BodyError) -> Answer {
        guard let executor = self.executor(for: work) else { return try await body() }
        // A child task, because `withTaskExecutorPreference` does not move a function that runs where its caller runs.
        let result = await withTaskGroup(of: Result<Answer, BodyError>.self) { tasks in
            tasks.addTask(executorPreference: executor) {
                do throws(BodyError) {
                    return .success(try await body())
                } catch {
                    return .failure(error)
                }
            }
            guard let result = await tasks.next() else { preconditionFailure("a child task has a result") }
            return result
        }
        return try result.get()
    }

    /// Threads of the process, which last as long as it does.
    private static let ofProcess = PoolExecutor(running: .singleton)

    /// Runs blocking work of a call that belongs to no download, such as reading a whole file. It waits for no work of
    /// a client, and no client has to exist.
    package static func aside<Answer: Sendable, BodyError: Error>(
        _ body: @escaping @Sendable () async throws(BodyError) -> Answer
    ) async throws(BodyError) -> Answer {
        let threads = EngineThreads(stepping: Self.ofProcess)
        return try await threads.run(.stepping, body)
    }

    /// A thread for one user, who ends it.
    package static func serial() -> SerialThread { SerialThread() }

    /// A thread that runs one piece of blocking work at a time.
    package struct SerialThread: Sendable {
        private let executor = PoolExecutor(threads: 1)

        fileprivate init() {}

        /// Runs `body` on the thread.
        package func aside<Answer: Sendable, BodyError: Error>(
            _ body: @escaping @Sendable () async throws(BodyError) -> Answer
        ) async throws(BodyError) -> Answer {
            try await EngineThreads(stepping: self.executor).run(.stepping, body)
        }

        /// Ends the thread once its work is done. Nothing may be run on it any more.
        package func end() async { await self.executor.end() }
    }

    /// Adds a child task that runs on the threads for a kind of work.
    func run(
        _ work: Work, in group: inout DiscardingTaskGroup, _ body: sending @escaping @isolated(any) () async -> Void
    ) {
        // A preference for `nil` would select the global executor instead of inheriting the parent's.
        guard let executor = self.executor(for: work) else {
            group.addTask(operation: body)
            return
        }
        group.addTask(executorPreference: executor, operation: body)
    }

    /// The same for a group with results.
    func run(_ work: Work, in group: inout TaskGroup<Void>, _ body: sending @escaping @isolated(any) () async -> Void) {
        guard let executor = self.executor(for: work) else {
            group.addTask(operation: body)
            return
        }
        group.addTask(executorPreference: executor, operation: body)
    }

    /// 4: at most so many files are surveyed or synced at the same time. More would only queue at the disk.
    private static let steppingCount = 4

    /// 4: digests are computed in pieces of a millisecond and alternate. Output to a descriptor may occupy a thread.
    private static let readingCount = 4

    /// Runs `body` with threads, and ends them when it returns.
    ///
    /// - Parameters:
    ///   - fetchingCount: The number of threads that the fetches of different downloads share.
    ///   - endsWithProcess: Whether the threads end with the process instead of when `body` returns.
    static func withThreads<Answer: Sendable>(
        fetchingCount: Int = 1, endsWithProcess: Bool = false, _ body: (EngineThreads) async throws -> Answer
    ) async throws -> Answer {
        let fetching = (0..<fetchingCount).map { _ in PoolExecutor(threads: 1) }
        let stepping = PoolExecutor(threads: Self.steppingCount, sparesThreads: true)
        let reading = PoolExecutor(threads: Self.readingCount)
        let result: Result<Answer, any Error>
        do {
            result = .success(try await body(EngineThreads(fetching: fetching, stepping: stepping, reading: reading)))
        } catch {
            result = .failure(error)
        }
        let executors = fetching + [stepping, reading]
        if endsWithProcess {
            ProcessLifetime.keep(executors)
        } else {
            for executor in executors { await executor.end() }
        }
        return try result.get()
    }
}
