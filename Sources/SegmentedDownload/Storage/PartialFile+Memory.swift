import SegmentedDownloadCore
import Synchronization

/// A part that is in memory, and how it gets a file.
extension PartialFile {
    /// A part that begins in memory.
    package struct InMemory: Sendable {
        let file: MemoryFile
        /// Whether space is reserved if the part gets a file.
        let allocates: Bool
        /// Whether the directory is created if it is gone by then.
        let createsDirectory: Bool
        /// Called if the part gets a file on a file system that has no locks.
        let noteUnlocked: @Sendable () -> Void
    }

    /// Begins a part in memory, without a system call.
    convenience init(
        _ paths: DestinationPaths, in memory: InMemory, storage: any Storage, header: Manifest.Header
    ) {
        self.init(paths: paths, file: memory.file, storage: storage, header: header, claims: [], inMemory: memory)
    }

    /// The file in memory; `nil` if the part has one on disk.
    var memory: MemoryFile? { self.inMemory.flatMap { $0.file.isInMemory ? $0.file : nil } }

    /// Whether files with the names of part and manifest are this part's. They are not if it is in memory, or was until
    /// it was put into place.
    var ownsNames: Bool { self.inMemory == nil || self.state.withLock { $0.isStored } }

    /// The claimed bytes that a later run finds. None of a part that was closed in memory.
    var lengthKept: Int64 { self.ownsNames ? self.claimedLength : 0 }

    /// Gives a part that is in memory a file, locked, with the bytes that were written so far. Has no effect on another
    /// part.
    ///
    /// - Throws: ``StorageError`` with condition `exists` if another process has created or locked the part, or if a file
    ///   that is not a manifest has the manifest's name. The bytes stay in memory.
    func store() throws(StorageError) {
        guard let inMemory, inMemory.file.isInMemory else { return }
        if inMemory.createsDirectory { try self.storage.makeDirectory(self.paths.directory) }
        let file = try Self.createFile(self.paths, in: self.storage, noteUnlocked: inMemory.noteUnlocked)
        do throws(StorageError) {
            // Only now is it certain that a manifest is not that of another process's part. After a crash before this, it
            // is one of another inode, whose claims count only if the part's bytes have their checksums.
            try self.storage.removeManifest(self.paths.manifest)
            try self.storage.removeManifest(self.paths.manifestDraft)
            try file.begin(length: self.header.completeLength, allocates: inMemory.allocates)
            let status = try file.status()
            self.change { $0.header = $0.header.identified(by: status, bootID: self.storage.bootID) }
            self.state.withLock { $0.isStored = true }
            try inMemory.file.store(in: file)
        } catch {
            self.state.withLock { $0.isStored = false }
            // Removed while it is locked: afterwards it may be another process's.
            try? self.storage.remove(self.paths.part)
            file.close()
            throw error
        }
    }
}

extension Manifest.Header {
    /// The header with another part's identity.
    func identified(by status: StorageStatus, bootID: String) -> Manifest.Header {
        var header = self
        header.device = status.device
        header.inode = status.inode
        header.bootID = bootID
        return header
    }
}
