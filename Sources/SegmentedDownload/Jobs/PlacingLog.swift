import SegmentedDownloadCore
import Synchronization
import SystemPackage

/// The record of the files that a run puts into place without a ``FinishedRecord``, because the file system has no extended
/// attributes or the body ended with its connection. It is written before a file gets its name.
///
/// If the task is killed before the entry is recorded as finished, the next run finds a file at the destination. It is the
/// entry's if it has the length and the CRC-32 that were recorded. The record's file is created with the first entry.
final class PlacingLog: Sendable {
    private struct State {
        var file: (any StorageFile)?
        var length: Int64 = 0
        /// The entries whose files were recorded and are not finished.
        var entries: Set<EntryFingerprint> = []
        /// The paths of the task's entries so far, also of those that are finished.
        var paths = EntryPaths()
    }

    private let job: JobDirectory
    private let path: String
    private let state = Mutex(State())
    private let syncs = SharedSync()

    init(_ job: JobDirectory, path: String) { (self.job, self.path) = (job, path) }

    deinit { self.close() }

    /// Closes the record's file, before it is removed.
    func close() {
        let file = self.state.withLock { state in
            state.length = 0
            return state.file.take()
        }
        file?.close()
    }

    /// Notes that an entry has a path.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if another entry of the task has it.
    func claim(_ path: FilePath, of entry: EntryFingerprint) throws(DownloadError) {
        try self.state.withLock { (state) throws(DownloadError) in try state.paths.claim(path, of: entry) }
    }

    /// Notes that an entry is finished.
    ///
    /// - Returns: Whether its file was recorded.
    func finish(_ entry: EntryFingerprint) -> Bool { self.state.withLock { $0.entries.remove(entry) } != nil }

    /// Records what an entry's file is about to contain.
    ///
    /// - Parameter isDurable: Whether the record is synced. Entries that are recorded at the same time share a sync.
    func append(_ content: ContentSummary, of entry: EntryFingerprint, isDurable: Bool) async throws(StorageError) {
        let bytes = PlacingCodec.encode(content, of: entry)
        let result = self.state.withLock { state -> Result<(file: any StorageFile, isNew: Bool), StorageError> in
            do throws(StorageError) {
                let isNew = state.file == nil
                let file: any StorageFile = if let open = state.file { open } else { try self.job.create(self.path) }
                state.file = file
                try file.writeFully(bytes, at: state.length)
                state.length += Int64(bytes.count)
                state.entries.insert(entry)
                return .success((file, isNew))
            } catch {
                return .failure(error)
            }
        }
        let (file, isNew) = try result.get()
        guard isDurable else { return }
        try await self.syncs.run(self.path) { () async throws(StorageError) in
            try await file.synchronize(metadata: false)
        }
        if isNew { try await self.job.storage.synchronize(directory: self.job.path) }
    }
}

/// What a job's task knows and records of an entry's file that has no ``FinishedRecord``.
package struct PlacingRecord: Hashable, Sendable {
    private let entry: EntryFingerprint
    /// What earlier runs were about to put into place for this entry.
    private let earlier: [ContentSummary]
    private let log: PlacingLog

    init(of entry: EntryFingerprint, earlier: [ContentSummary], in log: PlacingLog) {
        (self.entry, self.earlier, self.log) = (entry, earlier, log)
    }

    /// Whether a file has the content that an earlier run was about to put into place. It is read if the length fits.
    ///
    /// - Parameter interruption: Once raised, reading ends with a failure of code `cancelled`.
    func describes(
        _ file: any StorageFile, _ status: StorageStatus, unless interruption: Latch
    ) throws -> Bool {
        let candidates = self.earlier.filter { $0.length == status.length }
        guard !candidates.isEmpty else { return false }
        let hexes = try file.digests([.crc32], length: status.length, unless: interruption)
        return candidates.contains { [$0.crc.hex] == hexes }
    }

    /// Notes that the entry's file will have a path, before a file there is replaced.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if another entry of the task has it.
    func claim(_ path: String) throws(DownloadError) { try self.log.claim(FilePath(path), of: self.entry) }

    /// Records what the file is about to contain, before it gets its name.
    func append(_ content: ContentSummary, isDurable: Bool) async throws(StorageError) {
        try await self.log.append(content, of: self.entry, isDurable: isDurable)
    }

    package static func == (left: PlacingRecord, right: PlacingRecord) -> Bool {
        left.entry == right.entry && left.earlier == right.earlier && left.log === right.log
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(self.entry) }
}
