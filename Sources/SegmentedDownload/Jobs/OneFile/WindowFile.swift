import SegmentedDownloadCore
import Synchronization

/// A window of a shared file, as if it were a file.
///
/// Bytes are in the shared file. Lock, name, link count and identity are those of the task's own file. The finished file's
/// record is the own file's content, because not every shared file system has extended attributes. No call changes a byte
/// of the shared file outside the window, nor its length. Bytes that do not fill a page are written when they are claimed, or
/// the file is synced or closed (``PageFragments``).
final class WindowFile: StorageFile {
    private let window: FileWindow
    private let own: any StorageFile
    private let shared: any StorageFile
    /// Where the shared file has its name; nil if nothing is to be written.
    private let storage: (any Storage)?
    private let fragments: Mutex<PageFragments>

    init(_ window: FileWindow, own: any StorageFile, shared: any StorageFile, in storage: (any Storage)? = nil) {
        (self.window, self.own, self.shared, self.storage) = (window, own, shared, storage)
        self.fragments = Mutex(
            PageFragments(pageLength: SystemCalls.pageLength, completeLength: window.completeLength))
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        guard offset >= 0, offset <= self.window.length - Int64(bytes.count) else { throw self.outside("pwrite") }
        // A task that was stopped may go on after others have completed the file. It is the user's then.
        guard let found = try self.storage?.status(of: self.window.data), self.window.isData(found) else {
            throw StorageError(
                call: "pwrite", path: self.window.data, errno: 0, condition: .other,
                text: "the file was completed by other tasks, or their records were removed")
        }
        let start = self.window.range.lowerBound + offset
        let parts = self.fragments.withLock { $0.parts(of: start..<start + Int64(bytes.count)) }
        func slice(_ range: Range<Int64>) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: bytes[Int(range.lowerBound - start)..<Int(range.upperBound - start)])
        }
        if !parts.pages.isEmpty {
            try self.shared.writeFully(slice(parts.pages), at: parts.pages.lowerBound)
            self.fragments.withLock { $0.drop(parts.pages) }
        }
        for part in [parts.head, parts.tail] where !part.isEmpty {
            guard let page = self.fragments.withLock({ $0.take(slice(part), at: part.lowerBound) }) else { continue }
            try self.shared.writeFully(page.bytes, at: page.offset)
            self.fragments.withLock { $0.drop([page]) }
        }
        return bytes.count
    }

    /// Writes all bytes that do not fill a page.
    private func writeFragments() throws(StorageError) { try self.writeHeldBack(in: 0..<self.window.length) }

    func writeHeldBack(in range: Range<Int64>) throws(StorageError) {
        let runs = self.fragments.withLock { $0.runs(in: self.shifted(range)) }
        guard let storage, !runs.isEmpty else { return }
        let through = try self.window.openData(in: storage, .through)
        defer { through.close() }
        for run in runs { try through.writeFully(run.bytes, at: run.offset) }
        self.fragments.withLock { $0.drop(runs) }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        let rest = self.window.length - offset
        guard offset >= 0, rest > 0 else { return 0 }
        let start = self.window.range.lowerBound + offset
        let count = try self.shared.read(
            into: UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: rest))), at: start)
        // Used before the call returns.
        nonisolated(unsafe) let read = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(count))
        self.fragments.withLock { $0.overlay(read, at: start) }
        return count
    }

    /// Empties the own file for length 0, and otherwise has no effect. Bytes that remain in the window have no claims.
    func truncate(to length: Int64) throws(StorageError) {
        guard length <= self.window.length else { throw self.outside("ftruncate") }
        if length == 0 { try self.own.truncate(to: 0) }
    }

    func allocate(_ range: Range<Int64>) throws(StorageError) -> Bool {
        guard range.upperBound <= self.window.length else { throw self.outside("fallocate") }
        return try self.shared.allocate(self.shifted(range))
    }

    func firstHole(from offset: Int64) throws(StorageError) -> Int64 {
        let start = self.window.range.lowerBound
        return min(try self.shared.firstHole(from: start + offset) - start, self.window.length)
    }

    func data() throws(StorageError) -> [Range<Int64>] {
        let start = self.window.range.lowerBound
        return try self.shared.data().map { $0.clamped(to: self.window.range) }.filter { !$0.isEmpty }.map {
            $0.lowerBound - start..<$0.upperBound - start
        }
    }

    /// Makes the data durable before the record of it.
    func synchronize(metadata: Bool) async throws(StorageError) {
        try self.writeFragments()
        try await self.shared.synchronize(metadata: false)
        if metadata { try await self.own.synchronize(metadata: true) }
    }

    func status() throws(StorageError) -> StorageStatus {
        self.window.status(own: try self.own.status(), data: try self.shared.status())
    }

    func tryLock() throws(StorageError) -> StorageLock { try self.own.tryLock() }

    /// Nil: no download finds its own record in the part.
    func attribute(_ name: String) -> [UInt8]? { nil }

    func setAttribute(_ name: String, _ value: [UInt8]) throws(StorageError) -> Bool {
        guard name == FinishedRecord.attribute else { return false }
        // Before the record, also without a sync: others may complete the file as soon as they find it.
        try self.writeFragments()
        try self.own.truncate(to: 0)
        try self.own.writeFully(FileWindow.record(value, of: self.window.plan), at: 0)
        return true
    }

    func removeAttribute(_ name: String) throws(StorageError) {
        if name == FinishedRecord.attribute { try self.own.truncate(to: 0) }
    }

    func setPermissions(_ permissions: UInt32) throws(StorageError) { try self.own.setPermissions(permissions) }

    /// No effect: the time of the shared file is set when it is complete.
    func setModified(_ seconds: Int64) {}

    func close() {
        // What fails here has no claim that is durable.
        try? self.writeFragments()
        self.own.close()
        self.shared.close()
    }

    private func shifted(_ range: Range<Int64>) -> Range<Int64> {
        self.window.range.lowerBound + range.lowerBound..<self.window.range.lowerBound + range.upperBound
    }

    private func outside(_ call: String) -> StorageError {
        StorageError(
            call: call, path: self.window.data, errno: 0, condition: .other, text: "the bytes are another task's")
    }
}

extension FileWindow {
    /// The status of the window. The modification time is the shared file's, so that a part is trusted without reading
    /// it only if no task has written since.
    func status(own: StorageStatus, data: StorageStatus) -> StorageStatus {
        StorageStatus(
            kind: own.kind,
            length: min(max(data.length - self.range.lowerBound, 0), self.length),
            device: own.device, inode: own.inode, linkCount: min(own.linkCount, data.linkCount),
            allocated: min(data.allocated, self.length), modified: data.modified, changed: data.changed,
            ownership: own.ownership)
    }
}
