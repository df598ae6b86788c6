package import SegmentedDownloadCore
import Synchronization
package import SystemPackage

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
        var updates = 0
        /// Whether the file of an entry was kept that nothing proves to be the remote one.
        var hasUnproven = false
    }

    package let shard: Shard
    /// The entries that earlier runs finished, as ``EntryFile/record(of:_:)`` makes them.
    package let finished: FinishedEntries
    /// The names of their files that do not follow from the requests.
    private let names: EntryNames
    private let job: JobDirectory
    private let run: String
    /// The task's run before this one; nil if there was none.
    private let previousRun: String?
    private let file: any StorageFile
    private let state: Mutex<State>
    private let failedLog: LineLog
    private let nameLog: LineLog
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
        self.failedLog = LineLog(job, path: job.path(of: JobDirectory.Name(shard, run: run, .failed)))
        self.nameLog = LineLog(job, path: job.path(of: JobDirectory.Name(shard, run: run, .names)))
        self.previousRun = job.status(of: shard)?.status.run
        let now = Double(clock.secondsSinceEpoch)
        let status = ShardStatus(
            shard, run: run, host: machine.host, process: machine.process, started: now)
        self.state = Mutex(State(status: status))
        try await job.joinFinished(of: shard, run: run)
        self.finished = try job.finished(of: shard)
        self.names = try job.fileNames(of: shard)
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

    /// The file of an entry that an earlier run has finished, if it is as it was then; otherwise nil. Looks at the file.
    package func finishedFile(_ entry: EntryFingerprint, _ file: EntryFile) -> EntryFile? {
        guard self.finished.count > 0 else { return nil }
        guard let path = file.path else { return self.finished.contains(file.record(of: entry, nil)) ? file : nil }
        let isUnchanged = { (path: String) in
            guard let status = self.status(of: path), file.length ?? status.length == status.length else {
                return false
            }
            return self.finished.contains(file.record(of: entry, status))
        }
        let directory = DestinationPaths(path: path).directory
        let others = self.names[entry].lazy.map { DestinationPaths(directory: directory, name: $0).destination }
        let found = isUnchanged(path) ? path : others.first(where: isUnchanged)
        return found.map { EntryFile(path: $0, length: file.length, statements: file.statements) }
    }

    /// Records that an entry's file is complete and durable, with its present length, times and inode.
    ///
    /// - Parameter result: The complete file. It may have another name than was likely, in the same directory. If it has
    ///   another length now, or is gone, another program has changed it, and nothing is recorded.
    package func finish(
        _ entry: EntryFingerprint, _ file: EntryFile, _ result: DownloadResult
    ) throws(DownloadError) {
        var status: StorageStatus?
        let path = result.path.string
        if file.path != nil {
            guard let found = self.status(of: path), found.length == result.bytes else { return }
            status = found
        }
        var bytes = FinishedEntryCodec.encode(file.record(of: entry, status))
        if self.placingLog.finish(entry) || self.placing[entry] != nil {
            bytes += FinishedEntryCodec.encode(entry.withoutPlacing)
        }
        do throws(StorageError) {
            // First, because without the name the file is not found.
            let name = DestinationPaths(path: path).name
            if let likely = file.path, DestinationPaths(path: likely).name != name, !self.names[entry].contains(name) {
                try self.nameLog.append(EntryNameCodec.encode(name, of: entry))
            }
            let offset = self.state.withLock { [count = Int64(bytes.count)] state in
                defer { state.finishedLength += count }
                return state.finishedLength
            }
            try self.file.writeFully(bytes, at: offset)
        } catch {
            throw error.failure
        }
    }

    /// Notes that the file of an entry was kept although nothing proves that it is the remote one. The entry is not recorded, so
    /// the next run asks for it again.
    package func noteUnproven() { self.state.withLock { $0.hasUnproven = true } }

    /// The status of a regular file; nil if there is none.
    private func status(of path: String) -> StorageStatus? {
        guard let status = try? self.job.storage.status(of: path), status.kind == .file else { return nil }
        return status
    }

    /// What is known and recorded of an entry's file before it gets its name.
    /// Notes that an entry has a path.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if another entry of the task has it.
    package func claim(_ path: FilePath, of entry: EntryFingerprint) throws(DownloadError) {
        try self.placingLog.claim(path, of: entry)
    }

    package func placingRecord(of entry: EntryFingerprint) -> PlacingRecord {
        PlacingRecord(of: entry, earlier: self.placing[entry] ?? [], in: self.placingLog)
    }

    /// Adds a failed entry to the list of failures.
    ///
    /// - Parameter text: The entry as a list has it, with a comment above it. It ends with a newline.
    package func fail(_ text: String) throws(DownloadError) {
        do throws(StorageError) {
            try self.failedLog.append(Array(text.utf8))
        } catch {
            throw error.failure
        }
    }

    /// The path of the list of failures; nil if there are none.
    package var failuresPath: String? { self.failedLog.isEmpty ? nil : self.failedLog.path }

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
            try await self.nameLog.synchronize()
            try await self.failedLog.synchronize()
            if isComplete, self.isCurrent {
                // If it is finished, all of the task's entries are recorded, and with one task all of the job's, unless a file
                // was kept unproven.
                let isRecorded = state == .finished && !self.state.withLock { $0.hasUnproven }
                if isRecorded { self.placingLog.close() }
                for name in try self.job.names() {
                    let isDone =
                        switch name.kind {
                        case .failed: name.shard == self.shard && name.run != self.run
                        case .placing: isRecorded && (name.shard == self.shard || self.shard.count == 1)
                        case .finished, .names, .json: false
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

    deinit { self.file.close() }
}
