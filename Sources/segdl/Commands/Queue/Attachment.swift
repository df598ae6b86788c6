import SegmentedDownload
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The display of downloads that the background service runs.
final class Attachment: Sendable {
    private let client: ServiceClient
    private let records: [EntryRecord]
    private let reporters: [any ProgressReporter]
    private let summary: Mutex<TransferSummary>
    private let output: LineSink

    init(output: OutputOptions, client: ServiceClient, errors: LineSink, records: [EntryRecord]) {
        let start = ContinuousClock.now
        let elapsed: @Sendable () -> Duration = { ContinuousClock.now - start }
        let terminal = Terminal(assuming: STDERR_FILENO)
        self.client = client
        self.records = records
        self.output = LineSink(descriptor: STDOUT_FILENO)
        self.reporters = output.reporters(
            filesCount: records.count, output: self.output,
            console: Console(errors) { terminal.size.columns }, elapsed: elapsed)
        self.summary = Mutex(TransferSummary(filesCount: records.count))
    }

    /// Shows the downloads until all of them are at rest.
    ///
    /// - Parameter event: The service's latest event before the records were read.
    func run(after event: String) async throws -> ExitCode {
        var open: [String: Int] = [:]
        for (number, record) in self.records.enumerated() {
            guard record.isAtRest else {
                open[record.id] = number
                self.begin(record)
                continue
            }
            self.note(try await self.final(record), number)
        }
        let ids = Array(open.keys)
        guard !ids.isEmpty else { return self.exitCode }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                while (try? await Task.sleep(for: .milliseconds(100))) != nil {
                    for reporter in self.reporters where reporter.isTicking { await reporter.tick() }
                }
            }
            defer { tasks.cancelAll() }
            try await self.follow(ids, &open, after: event)
        }
        return self.exitCode
    }

    /// Reports events until all entries are at rest. After a lost event or connection, it asks how they are.
    private func follow(_ ids: [String], _ open: inout [String: Int], after event: String) async throws {
        var last = event
        var begun: Set<String> = []
        var paths = Dictionary(uniqueKeysWithValues: self.records.map { ($0.id, TransferFile($0).path) })
        while !open.isEmpty {
            for record in try await self.records(of: open.keys.sorted()) {
                guard record.isAtRest, let number = open[record.id] else { continue }
                let id = record.id
                open[id] = nil
                self.note(try await self.final(record), number)
            }
            guard !open.isEmpty else { return }
            var left = open
            try await self.client.events(of: ids, after: last) { event in
                if let id = event.id { last = id }
                // An entry that waits has no event when it is paused or cancelled. Of many, the list is read once a second.
                if event.name == "lost" { return true }
                if event.name == "queue", !left.keys.allSatisfy(begun.contains) {
                    if left.count > 16 { try await Task.sleep(for: .seconds(1)) }
                    return true
                }
                guard event.name != "queue", let record = EventRecord(line: event.data), let id = record.id,
                    let number = left[id], let known = DownloadEvent(record)
                else { return false }
                begun.insert(id)
                var file = TransferFile(record)
                if record.path == nil { file.path = paths[id] ?? file.path }
                paths[id] = file.path
                for reporter in self.reporters { reporter.report(known, of: file) }
                guard let outcome = TransferSummary.Outcome(known) else { return false }
                self.summary.withLock { $0.note(outcome, of: file, number: number) }
                left[id] = nil
                return left.isEmpty
            }
            open = left
        }
    }

    /// The entries with these IDs, and the rows of those that have left the queue.
    private func records(of ids: [String]) async throws -> [EntryRecord] {
        guard ids.count > 1 else {
            return [try await self.client.get("/downloads/\(ids.first ?? "")")]
        }
        var entries: [String: EntryRecord] = [:]
        try await self.client.entries { for record in $0 { entries[record.id] = record } }
        var records: [EntryRecord] = []
        for id in ids {
            if let entry = entries[id] {
                records.append(entry)
            } else {
                records.append(try await self.client.get("/downloads/\(id)"))
            }
        }
        return records
    }

    private func begin(_ record: EntryRecord) {
        let client = self.client
        for reporter in self.reporters {
            reporter.begin(TransferFile(record)) {
                let now: EntryRecord? = try? await client.get("/downloads/\(record.id)")
                return now?.segments ?? []
            }
        }
    }

    /// The event that brought an entry to rest, as far as it is known.
    private func final(_ record: EntryRecord) async throws -> (DownloadEvent, TransferFile) {
        var progress = DownloadProgress()
        progress.bytesDone = record.bytesDone ?? 0
        progress.bytesTotal = record.bytesTotal
        let file = TransferFile(record)
        switch record.state {
        case "completed": return (.completed(DownloadResult(record)), file)
        case "paused": return (.paused(progress), file)
        case "cancelled": return (.cancelled, file)
        default:
            let error =
                record.error.map { DownloadError($0) } ?? DownloadError(.internal, "it failed for an unknown reason")
            return (.failed(error, progress), file)
        }
    }

    private func note(_ ending: (event: DownloadEvent, file: TransferFile), _ number: Int) {
        for reporter in self.reporters { reporter.report(ending.event, of: ending.file) }
        if let outcome = TransferSummary.Outcome(ending.event) {
            self.summary.withLock { $0.note(outcome, of: ending.file, number: number) }
        }
    }

    private var exitCode: ExitCode {
        let summary = self.summary.withLock { $0 }
        return summary.pausedCount > 0 && summary.failed.isEmpty ? .interrupt : summary.exitCode
    }

    func redraw() { for reporter in self.reporters { reporter.redraw() } }

    /// Removes the display, and writes what is left to write.
    func end() {
        let summary = self.summary.withLock { $0 }
        for reporter in self.reporters { reporter.finish(summary) }
        self.output.drain()
    }
}
