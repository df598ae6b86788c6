import NIOPosix

/// Threads for what blocks: the disk's calls must not hold up the few threads that run tasks, the engine's loop among them.
package struct EngineThreads: Sendable {
    enum Work {
        /// Fetches: their writes follow each other. Two threads that write one file wait for its inode's lock.
        case fetching
        /// Syncs, surveys and digests, which may take seconds.
        case stepping
        /// Reading along: digests, and handing bytes on to somebody who may take his time.
        case reading
    }

    private let fetching: (any TaskExecutor)?
    private let stepping: (any TaskExecutor)?
    private let reading: (any TaskExecutor)?

    /// Every task runs where its parent does: for doors that never block.
    package static let inherited = EngineThreads(fetching: nil, stepping: nil, reading: nil)

    private func executor(for work: Work) -> (any TaskExecutor)? {
        switch work {
        case .fetching: self.fetching
        case .stepping: self.stepping
        case .reading: self.reading
        }
    }

    /// Runs `body` on the threads for its kind of work.
    func run(_ work: Work, _ body: @Sendable () async -> Void) async {
        await withTaskExecutorPreference(self.executor(for: work), operation: body)
    }

    /// Adds a child that runs on the threads for its kind of work.
    func run(
        _ work: Work, in group: inout DiscardingTaskGroup, _ body: sending @escaping @isolated(any) () async -> Void
    ) {
        // Not the same as a preference for nil, which is one for the system's pool.
        guard let executor = self.executor(for: work) else {
            group.addTask(operation: body)
            return
        }
        group.addTask(executorPreference: executor, operation: body)
    }

    /// 4: as many files as can be surveyed or synced at once; more would only queue at the disk.
    private static let steppingCount = 4

    /// 4: digests are computed in pieces of a millisecond and take turns; one that hands bytes on has a thread for itself.
    private static let readingCount = 4

    /// Hands threads to `body` and ends them when it returns.
    static func withThreads<Answer: Sendable>(
        _ body: (EngineThreads) async throws -> Answer
    ) async throws -> Answer {
        let fetching = PoolExecutor(threads: 1)
        let stepping = PoolExecutor(threads: Self.steppingCount)
        let reading = PoolExecutor(threads: Self.readingCount)
        let result: Result<Answer, any Error>
        do {
            result = .success(try await body(EngineThreads(fetching: fetching, stepping: stepping, reading: reading)))
        } catch {
            result = .failure(error)
        }
        await fetching.end()
        await stepping.end()
        await reading.end()
        return try result.get()
    }
}

/// Runs tasks on a pool of threads of its own.
private final class PoolExecutor: TaskExecutor {
    private let pool: NIOThreadPool
    private let isStarted = Latch()

    init(threads: Int) {
        self.pool = NIOThreadPool(numberOfThreads: threads)
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // Only with the first job: most downloads have no use for some of them.
        if self.isStarted.raise() { self.pool.start() }
        self.pool.submit { _ in job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    func end() async {
        // It fails only for pools that cannot end.
        try? await self.pool.shutdownGracefully()
    }
}
