import NIOCore
import NIOPosix
import Synchronization

/// Runs tasks on its own threads.
///
/// A thread is started when it is first needed. One suffices as long as jobs are short, see
/// ``init(threads:sparesThreads:)``.
final class PoolExecutor: TaskExecutor {
    /// A pool of one thread: a pool starts all of its threads at once. A shared pool is one lane for all of its threads.
    private final class Lane: Sendable {
        let pool: NIOThreadPool
        private let isStarted: Mutex<Bool>

        init(_ pool: NIOThreadPool, isStarted: Bool) {
            self.pool = pool
            self.isStarted = Mutex(isStarted)
        }

        /// Starts the thread unless it was started, or must not be any more.
        func start() {
            self.isStarted.withLock { isStarted in
                if !isStarted { self.pool.start() }
                isStarted = true
            }
        }

        /// Waits for a start in another thread, and prevents a later one: a pool must not end while it starts.
        ///
        /// - Returns: Whether the thread was started.
        func close() -> Bool {
            self.isStarted.withLock { isStarted in
                defer { isStarted = true }
                return isStarted
            }
        }

        var hasThread: Bool { self.isStarted.withLock { $0 } }
    }

    private struct State {
        var jobs: CircularBuffer<UnownedJob> = CircularBuffer()
        /// The lanes that have no worker. The most recently used lane is last; its thread may still be awake.
        var idle: [Int] = []
        /// The threads that run jobs, or were woken for it.
        var workers = 0
        /// When the running jobs began.
        var begun: [NIODeadline] = []
        /// A moving average of the time that jobs take. Initially they count as long.
        var time = PoolExecutor.timeShort * 2
    }

    /// 100 µs: several times what waking a thread costs.
    private static let timeShort: TimeAmount = .microseconds(100)

    /// Short jobs get another thread for each eight that wait.
    private static let jobsOfThread = 8

    /// The weight of the latest job in the average is 1/8.
    private static let jobsRemembered: Int64 = 8

    private let lanes: [Lane]
    private let sparesThreads: Bool
    private let isShared: Bool
    private let state: Mutex<State>

    /// - Parameters:
    ///   - threads: The number of threads.
    ///   - sparesThreads: Whether only one thread is used while jobs are short. Waking a thread costs about as much as
    ///     a storage step of a short file in the page cache, and a thread that is still awake takes the next job at no
    ///     cost. A job that waits for a disk or a network is not short, and while one runs, all threads are used. The
    ///     owner calls ``unblock()`` several times a second.
    init(threads: Int, sparesThreads: Bool = false) {
        self.lanes = (0..<threads).map { _ in Lane(NIOThreadPool(numberOfThreads: 1), isStarted: false) }
        self.sparesThreads = sparesThreads
        self.isShared = false
        self.state = Mutex(State(idle: Array((0..<threads).reversed())))
    }

    /// - Parameter pool: A pool that has been started.
    init(running pool: NIOThreadPool) {
        self.lanes = [Lane(pool, isStarted: true)]
        self.sparesThreads = false
        self.isShared = true
        self.state = Mutex(State())
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.startWorker { $0.jobs.append(job) }
    }

    /// Gives threads to jobs that came just after one that turned out to be long.
    func unblock() {
        while self.startWorker(after: { _ in }) {}
    }

    /// Starts a worker after a change, if one is needed.
    ///
    /// - Returns: Whether one was started.
    @discardableResult
    private func startWorker(after change: (inout State) -> Void) -> Bool {
        let index: Int? = self.state.withLock { state in
            change(&state)
            guard state.workers < min(self.workersMax(state), state.begun.count + state.jobs.count) else { return nil }
            state.workers += 1
            return self.isShared ? 0 : state.idle.removeLast()
        }
        guard let index else { return false }
        let lane = self.lanes[index]
        lane.start()
        lane.pool.submit { state in
            if case .active = state { return self.work(in: index) }
            // The pool has ended, and the present thread may be one that must not block.
            NIOThreadPool.singleton.submit { _ in self.work(in: index) }
        }
        return true
    }

    /// The number of threads that were started.
    var startedCount: Int { self.lanes.count { $0.hasThread } }

    /// A shared pool has no limit of its own.
    private var threads: Int { self.isShared ? .max : self.lanes.count }

    private func workersMax(_ state: State) -> Int {
        guard self.sparesThreads, state.time < Self.timeShort else { return self.threads }
        let now = NIODeadline.now()
        guard state.begun.allSatisfy({ now - $0 < Self.timeShort * 2 }) else { return self.threads }
        return min(1 + state.jobs.count / Self.jobsOfThread, self.threads)
    }

    /// Runs jobs until none is left.
    private func work(in lane: Int) {
        while let (job, beganAt) = self.nextJob(in: lane) {
            job.runSynchronously(on: self.asUnownedTaskExecutor())
            self.note(endOf: beganAt)
        }
    }

    private func nextJob(in lane: Int) -> (UnownedJob, beganAt: NIODeadline)? {
        self.state.withLock { state in
            guard let job = state.jobs.popFirst() else {
                state.workers -= 1
                if !self.isShared { state.idle.append(lane) }
                return nil
            }
            let now = NIODeadline.now()
            state.begun.append(now)
            return (job, now)
        }
    }

    private func note(endOf beganAt: NIODeadline) {
        let time = NIODeadline.now() - beganAt
        self.state.withLock { state in
            if let index = state.begun.firstIndex(of: beganAt) { state.begun.remove(at: index) }
            let change = (time.nanoseconds - state.time.nanoseconds) / Self.jobsRemembered
            state.time = .nanoseconds(state.time.nanoseconds + change)
        }
        // Jobs wait that came before this one was known to be long.
        if time >= Self.timeShort * 2 { self.unblock() }
    }

    func end() async {
        // All are closed first: a job that is left over must not start one while the others end.
        let started = self.lanes.filter { $0.close() }
        // Throws only for pools that cannot be shut down, which these can.
        for lane in started { try? await lane.pool.shutdownGracefully() }
    }
}
