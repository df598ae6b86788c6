import SegmentedDownload
import SegmentedDownloadCore

/// The progress of a job, from what its tasks last reported.
struct JobProgress {
    /// A task's progress.
    struct Task {
        enum Condition: String {
            case finished, failed, running, stopped
            /// It was running, and has not reported for several times its interval.
            case silent
            case missing
        }

        var number: Int
        var condition: Condition
        /// Nil if the task has never run.
        var status: ShardStatus?

        var finishedCount: Int64 { self.status.map { $0.skipped + $0.completed } ?? 0 }
    }

    /// 0.5: a running task that has finished less than this part of the median is named as a straggler.
    private static let stragglerFraction = 0.5

    /// All tasks, by number.
    let tasks: [Task]
    private let now: Double

    /// - Parameters:
    ///   - statuses: Of tasks of any count. The count of the latest report is the job's.
    ///   - now: Seconds since 1970.
    init(_ statuses: [ShardStatus], now: Double) {
        let count = statuses.max { $0.updated < $1.updated }?.shards ?? 0
        let known = Dictionary(
            statuses.filter { $0.shards == count }.map { ($0.shard, $0) }, uniquingKeysWith: { first, _ in first })
        self.now = now
        self.tasks = (0..<count).map { index in
            let status = known[index + 1]
            return Task(number: index + 1, condition: Self.condition(status, now: now), status: status)
        }
    }

    private static func condition(_ status: ShardStatus?, now: Double) -> Task.Condition {
        guard let status else { return .missing }
        switch status.state {
        case .finished: return .finished
        case .failed: return .failed
        case .stopped: return .stopped
        case .running:
            let limit = Shard(number: status.shard, of: status.shards).map { ShardRun.silenceMax(of: $0) } ?? .zero
            return now - status.updated > limit.inSeconds ? .silent : .running
        }
    }

    func count(_ condition: Task.Condition) -> Int { self.tasks.count { $0.condition == condition } }

    var finishedCount: Int64 { self.tasks.reduce(0) { $0 + $1.finishedCount } }

    var failedCount: Int64 { self.tasks.reduce(0) { $0 + ($1.status?.failed ?? 0) } }

    var bytesFetched: Int64 { self.tasks.reduce(0) { $0 + ($1.status?.bytesFetched ?? 0) } }

    /// Bytes per second of the running tasks together, since they began.
    var rate: Double {
        self.tasks.filter { $0.condition == .running }.compactMap(\.status).reduce(0) {
            $0 + Double($1.bytesFetched) / max($1.updated - $1.started, 1)
        }
    }

    /// Whether every task has ended and no entry has failed.
    var isComplete: Bool { !self.tasks.isEmpty && self.tasks.allSatisfy { $0.condition == .finished } }

    /// Whether a running task is far behind the others.
    func isStraggler(_ task: Task) -> Bool {
        guard task.condition == .running || task.condition == .silent else { return false }
        let counts = self.tasks.map(\.finishedCount).sorted()
        return Double(task.finishedCount) < Double(counts[counts.count / 2]) * Self.stragglerFraction
    }

    // MARK: Text

    /// Such as `8 tasks: 5 finished, 2 running, 1 not started; 173 files finished, 3 failed, 1.2 GiB received`.
    var text: String {
        let conditions: [(Task.Condition, String)] = [
            (.finished, "finished"), (.failed, "with failures"), (.running, "running"), (.silent, "silent"),
            (.stopped, "stopped"), (.missing, "not started"),
        ]
        let parts = conditions.compactMap { condition, word in
            let count = self.count(condition)
            return count > 0 ? "\(count) \(word)" : nil
        }
        var text = "\(self.tasks.count) \(self.tasks.count == 1 ? "task" : "tasks"): \(parts.joined(separator: ", "))"
        text += "; \(self.finishedCount) files finished"
        if self.failedCount > 0 { text += ", \(self.failedCount) failed" }
        text += ", \(ByteCount(self.bytesFetched)) received"
        if self.rate > 0 { text += ", \(ByteCount(Int64(self.rate)))/s" }
        return text
    }

    /// What is to be said about a task; nil for one that has finished.
    func text(of task: Task) -> String? {
        let name = "task \(task.number)/\(self.tasks.count)"
        guard let status = task.status else { return "\(name): not started" }
        let place = "process \(status.process) on \(status.host.shown)"
        var text: String
        switch task.condition {
        case .finished: return nil
        case .failed: text = "\(name): ended with \(status.failed) failed"
        case .stopped: text = "\(name): stopped"
        case .missing: return "\(name): not started"
        case .running: text = "\(name): running (\(place))"
        case .silent:
            text =
                "\(name): no report for \(Seconds(.seconds(self.now - status.updated))) (\(place)); run it again if it ended"
        }
        text += ", \(task.finishedCount) files finished"
        if status.failed > 0, task.condition != .failed { text += ", \(status.failed) failed" }
        if self.isStraggler(task) { text += "; far behind the others" }
        return text
    }
}

/// The progress of a job as a JSON object.
struct JobRecord: Encodable {
    let v = 1
    let event = "job"
    let job: String
    let tasks: Int
    let tasksFinished: Int
    let tasksFailed: Int
    let tasksRunning: Int
    let tasksSilent: Int
    let tasksStopped: Int
    let tasksMissing: Int
    let filesFinished: Int64
    let filesFailed: Int64
    let bytesFetched: Int64
    let rate: Double
    let isComplete: Bool

    init(_ progress: JobProgress, job: String) {
        self.job = job
        self.tasks = progress.tasks.count
        self.tasksFinished = progress.count(.finished)
        self.tasksFailed = progress.count(.failed)
        self.tasksRunning = progress.count(.running)
        self.tasksSilent = progress.count(.silent)
        self.tasksStopped = progress.count(.stopped)
        self.tasksMissing = progress.count(.missing)
        self.filesFinished = progress.finishedCount
        self.filesFailed = progress.failedCount
        self.bytesFetched = progress.bytesFetched
        self.rate = progress.rate
        self.isComplete = progress.isComplete
    }
}

/// The progress of a task as a JSON object.
struct JobTaskRecord: Encodable {
    let v = 1
    let event = "task"
    let task: Int
    let tasks: Int
    let state: String
    let isStraggler: Bool
    let filesFinished: Int64
    let filesFailed: Int64
    let bytesFetched: Int64
    let host: String?
    let pid: Int32?
    /// Seconds since 1970.
    let updated: Double?

    init(_ task: JobProgress.Task, of progress: JobProgress) {
        (self.task, self.tasks) = (task.number, progress.tasks.count)
        self.state = task.condition.rawValue
        self.isStraggler = progress.isStraggler(task)
        self.filesFinished = task.finishedCount
        self.filesFailed = task.status?.failed ?? 0
        self.bytesFetched = task.status?.bytesFetched ?? 0
        self.host = task.status?.host
        self.pid = task.status?.process
        self.updated = task.status?.updated
    }
}
