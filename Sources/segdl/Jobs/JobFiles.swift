import SegmentedDownload
import SegmentedDownloadCore
import Synchronization
import SystemPackage

/// The files of a task of a job: those of its entries that no run has finished, or whose files are no longer as they were then.
/// Their ends are recorded.
final class JobFiles: FileSource {
    private struct State {
        var entries: JobEntries
        var nextNumber = 0
        /// The entries whose downloads have not ended, by number.
        var unfinished: [Int: Entry] = [:]
        /// Why the list could not be read to its end, or an end not be recorded.
        var failure: DownloadError?
        /// Whether the list was read to its end.
        var isExhausted = false
    }

    /// An entry of the task.
    private struct Entry {
        var candidate: JobEntries.Candidate
        var fingerprint: EntryFingerprint
        /// Nil if there is no request.
        var file: EntryFile?
        /// Whether a file that exists is kept without a proof that it is the remote one.
        var keepsUnproven = false
    }

    /// 1000: each may cost a look at its file, half a millisecond on a network's file system, and a signal waits no longer.
    private static let passedMax = 1000

    private let run: ShardRun
    private let request: @Sendable (JobEntries.Candidate) throws(DownloadError) -> DownloadRequest
    private let state: Mutex<State>

    /// - Parameter request: Makes an entry's request.
    init(
        _ entries: sending JobEntries, of run: ShardRun,
        _ request: @escaping @Sendable (JobEntries.Candidate) throws(DownloadError) -> DownloadRequest
    ) {
        (self.run, self.request) = (run, request)
        self.state = Mutex(State(entries: entries))
    }

    var count: Int? { nil }

    var failure: DownloadError? { self.state.withLock { $0.failure } }

    /// Whether every entry of the task was given.
    var isExhausted: Bool { self.state.withLock { $0.isExhausted } }

    func next() -> FileSourceItem? {
        self.state.withLock { state in
            var (read, skipped): (Int64, Int64) = (0, 0)
            defer {
                self.run.update { [read, skipped] status in
                    status.entriesRead += read
                    status.skipped += skipped
                }
            }
            do throws(DownloadError) {
                for _ in 0..<Self.passedMax {
                    guard let candidate = try state.entries.next() else {
                        state.isExhausted = true
                        return nil
                    }
                    read += 1
                    let fingerprint = candidate.fingerprint
                    // First: the files of other tasks are not looked at.
                    guard self.run.shard.owns(fingerprint) else { continue }
                    var entry = Entry(candidate: candidate, fingerprint: fingerprint)
                    guard let item = self.item(&entry) else {
                        skipped += 1
                        continue
                    }
                    state.unfinished[state.nextNumber] = entry
                    state.nextNumber += 1
                    return item
                }
                return FileSourceItem.none
            } catch {
                state.failure = error
                return nil
            }
        }
    }

    /// An entry's file; nil if it is finished.
    private func item(_ entry: inout Entry) -> FileSourceItem? {
        do throws(DownloadError) {
            var request = try self.request(entry.candidate)
            let file = EntryFile(of: request)
            if let finished = self.run.finishedFile(entry.fingerprint, file) {
                if let path = finished.path { try self.run.claim(FilePath(path), of: entry.fingerprint) }
                return nil
            }
            // A response may name the file of another request.
            if case .file(let path) = request.destination, request.ifExists != .rename {
                try self.run.claim(path, of: entry.fingerprint)
            }
            (entry.file, entry.keepsUnproven) = (file, request.ifExists == .skip)
            request.placing = self.run.placingRecord(of: entry.fingerprint)
            return .request(request)
        } catch {
            return .refused(path: entry.candidate.name, error)
        }
    }

    func note(_ outcome: TransferSummary.Outcome, number: Int) {
        guard let entry = self.state.withLock({ $0.unfinished.removeValue(forKey: number) }) else { return }
        do throws(DownloadError) {
            switch outcome {
            case .completed(let result):
                if let error = self.conflict(of: entry, result) { return try self.fail(entry, error) }
                if entry.keepsUnproven, result.wasAlreadyComplete, result.verifiedBy == .none {
                    self.run.noteUnproven()
                } else if let file = entry.file {
                    try self.run.finish(entry.fingerprint, file, result)
                }
                self.run.update { status in
                    status.completed += 1
                    status.bytesFetched += result.bytesFetched
                }
            case .failed(let error): try self.fail(entry, error)
            case .paused: break
            }
        } catch {
            // The entry is fetched again by the next run.
            self.state.withLock { $0.failure = $0.failure ?? error }
        }
    }

    private func fail(_ entry: Entry, _ error: DownloadError) throws(DownloadError) {
        try self.run.fail("# \(error.code.rawValue): \(error.message)\n\(entry.candidate.text)")
        self.run.update { $0.failed += 1 }
    }

    /// Why the file of an entry is not its own: it was there already, and is another entry's.
    private func conflict(of entry: Entry, _ result: DownloadResult) -> DownloadError? {
        guard entry.file?.path != nil else { return nil }
        do throws(DownloadError) {
            try self.run.claim(result.path, of: entry.fingerprint)
            return nil
        } catch {
            return error
        }
    }
}
