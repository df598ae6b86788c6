package import SegmentedDownloadCore
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A run of one task of a job: what it has finished, and the records it writes.
///
/// Its file of finished entries is locked until the process ends, which shows other processes of the machine that the
/// run is alive. Other machines may have no such locks; they look at the age of the status.
package final class ShardRun: Sendable {
    private struct State {
        var status: ShardStatus
        var finishedLength = Int64(FinishedEntryCodec.recordLength)
        var failedLength: Int64 = 0
        /// Created with the first failure.
        var failedFile: (any StorageFile)?
        var updates = 0
    }

    package let shard: Shard
    /// The entries that earlier runs finished.
    package let finished: FinishedEntries
    private let job: JobDirectory
    private let run: String
    /// The task's run before this one; nil if there was none.
    private let previousRun: String?
    private let file: any StorageFile
    private let state: Mutex<State>
    private let placingLog: PlacingLog
    /// What earlier runs were about to put into place, of entries that are not finished.
    private let placing: [EntryFingerprint: [ContentSummary]]

    /// Begins a run.
    ///
    /// - Parameters:
    ///   - settings: What the job's runs agree on.
    ///   - machine: The machine's name, the process's number, and a random number that no other run has.
    ///   - waiting: Called with a message if the task's last run on another machine may still be alive. The run begins
    ///     once that run has not reported for some time.
    /// - Throws: ``DownloadError`` with code `exists` if another run of the task is alive, or if the job runs with
    ///   another number of tasks; `usage` if the directory belongs to another job; `file` if it cannot be written.
    package init(
        of shard: Shard, in job: JobDirectory, _ settings: JobSettings,
        machine: (host: String, process: Int32, random: UInt64), clock: any EngineClock,
        waiting: (String) -> Void
    ) async throws(DownloadError) {
        let run = String(machine.random, radix: 16)
        try await job.open(settings, draft: machine.random)
        try await RunLiveness(job: job, host: machine.host, clock: clock).check(shard, waiting: waiting)
        do {
            let path = job.path(of: JobDirectory.Name(shard, run: run, .finished))
            let file = try job.create(path)
            do {
                _ = try file.tryLock()
                try file.writeFully(FinishedEntryCodec.header, at: 0)
                try await job.storage.synchronize(directory: job.path)
            } catch {
                file.close()
                throw error
            }
            self.file = file
        } catch {
            throw DownloadError(wrapping: error)
        }
        (self.shard, self.job, self.run) = (shard, job, run)
        self.previousRun = job.status(of: shard)?.status.run
        let now = Double(clock.secondsSinceEpoch)
        let status = ShardStatus(
            shard, run: run, host: machine.host, process: machine.process, started: now)
        self.state = Mutex(State(status: status))
        try await job.joinFinished(of: shard, run: run)
        self.finished = try job.finished(of: shard)
        self.placing = try job.placing(of: shard, besides: self.finished)
        self.placingLog = PlacingLog(job, path: job.path(of: JobDirectory.Name(shard, run: run, .placing)))
        try await self.write(now: now)
    }

    /// Changes what the run reports.
    package func update(_ change: (inout ShardStatus) -> Void) {
        self.state.withLock { change(&$0.status) }
    }

    /// How often the run reports.
    package var reportInterval: Duration { RunLiveness.reportInterval(of: self.shard) }

    /// After this time without a report, a run on another machine is taken for ended.
    package static func silenceMax(of shard: Shard) -> Duration {
        RunLiveness.reportInterval(of: shard) * RunLiveness.reportsMissedMax
    }

    package var status: ShardStatus { self.state.withLock { $0.status } }

    /// Records that an entry's file is complete and durable.
    package func finish(_ entry: EntryFingerprint) throws(DownloadError) {
        let bytes = FinishedEntryCodec.encode(entry)
        let offset = self.state.withLock { state in
            defer { state.finishedLength += Int64(bytes.count) }
            return state.finishedLength
        }
        do throws(StorageError) {
            try self.file.writeFully(bytes, at: offset)
        } catch {
            throw DownloadError(error.failure)
        }
    }

    /// What is known and recorded of an entry's file before it gets its name.
    package func placingRecord(of entry: EntryFingerprint) -> PlacingRecord {
        PlacingRecord(of: entry, earlier: self.placing[entry] ?? [], in: self.placingLog)
    }

    /// Adds a failed entry to the list of failures.
    ///
    /// - Parameter text: The entry as a list has it, with a comment above it. It ends with a newline.
    package func fail(_ text: String) throws(DownloadError) {
        do throws(StorageError) {
            let file = try self.failedFile()
            let bytes = Array(text.utf8)
            let offset = self.state.withLock { state in
                defer { state.failedLength += Int64(bytes.count) }
                return state.failedLength
            }
            try file.writeFully(bytes, at: offset)
        } catch {
            throw DownloadError(error.failure)
        }
    }

    /// The path of the list of failures; nil if there are none.
    package var failuresPath: String? {
        self.state.withLock { $0.failedFile == nil }
            ? nil : self.job.path(of: JobDirectory.Name(self.shard, run: self.run, .failed))
    }

    private func failedFile() throws(StorageError) -> any StorageFile {
        if let file = self.state.withLock({ $0.failedFile }) { return file }
        let path = self.job.path(of: JobDirectory.Name(self.shard, run: self.run, .failed))
        let file = try self.job.create(path)
        self.state.withLock { $0.failedFile = file }
        return file
    }

    /// Writes the status, unless another run has replaced this one.
    package func report(now: Double) async throws(DownloadError) {
        if self.isCurrent { try await self.write(now: now) }
    }

    /// Whether the status is this run's, or that of the run before, which may have written at the same time.
    ///
    /// A run on a machine that was unreachable for a time is taken for ended, and replaced. Without a status, all records
    /// were removed: they are of another job now, or of none.
    private var isCurrent: Bool {
        guard let found = self.job.status(of: self.shard)?.status.run else { return false }
        return found == self.run || found == self.previousRun
    }

    private func write(now: Double) async throws(DownloadError) {
        let (status, number) = self.state.withLock { state in
            state.status.updated = now
            state.updates += 1
            return (state.status, state.updates)
        }
        let path = self.job.path(of: JobDirectory.Name(self.shard, .json))
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            try await self.job.write(
                Array(try encoder.encode(status)) + [UInt8(ascii: "\n")], to: path,
                draft: "\(path).\(self.run)-\(number)", replacing: true)
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// Writes the status from time to time while `body` runs.
    ///
    /// - Parameter prepare: Called before each report.
    package func reporting<Answer: Sendable>(
        _ clock: any EngineClock, prepare: @escaping @Sendable () -> Void = {}, _ body: () async throws -> Answer
    ) async rethrows -> Answer {
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                while (try? await clock.sleep(until: clock.now + self.reportInterval)) != nil {
                    prepare()
                    // The next report may succeed. What tasks report is for people; no file depends on it.
                    try? await self.report(now: Double(clock.secondsSinceEpoch))
                }
            }
            defer { tasks.cancelAll() }
            return try await body()
        }
    }

    /// Makes the records durable, removes the lists of failures of the task's earlier runs, and reports the end. Once all
    /// entries are finished, also removes the records of what was about to be put into place.
    ///
    /// - Parameter isComplete: Whether all entries of the task were tried. If not, earlier lists of failures are kept.
    package func end(_ state: ShardStatus.State, isComplete: Bool, now: Double) async throws(DownloadError) {
        do {
            try await self.file.synchronize(metadata: false)
            try await self.state.withLock({ $0.failedFile })?.synchronize(metadata: false)
            if isComplete, self.isCurrent {
                // If it is finished, all of the task's entries are recorded, and with one task all of the job's.
                if state == .finished { self.placingLog.close() }
                for name in try self.job.names() {
                    let isDone =
                        switch name.kind {
                        case .failed: name.shard == self.shard && name.run != self.run
                        case .placing: state == .finished && (name.shard == self.shard || self.shard.count == 1)
                        case .finished, .json: false
                        }
                    if isDone { try self.job.storage.remove(self.job.path(of: name)) }
                }
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
        self.update { $0.state = state }
        try await self.report(now: now)
    }

    deinit {
        self.file.close()
        self.state.withLock { $0.failedFile?.close() }
    }
}
