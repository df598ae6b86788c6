import SegmentedDownloadCore

/// A part that is in memory, and how it gets a file.
extension PartialFile {
    /// Begins a part in memory, without a system call.
    ///
    /// - Parameters:
    ///   - allocates: Whether space is reserved if the part gets a file.
    ///   - noteUnlocked: Called if it gets a file on a file system that has no locks.
    convenience init(
        _ paths: DestinationPaths, in memory: MemoryFile, storage: any Storage, header: Manifest.Header,
        allocates: Bool, noteUnlocked: @escaping @Sendable () -> Void
    ) {
        self.init(
            paths: paths, file: memory, storage: storage, header: header, claims: [],
            held: Held(file: memory, allocates: allocates, noteUnlocked: noteUnlocked))
    }

    /// What a part needs that is in memory.
    package struct Held: Sendable {
        let file: MemoryFile
        let allocates: Bool
        let noteUnlocked: @Sendable () -> Void
    }

    /// The file in memory; `nil` if the part has one on disk.
    var memory: MemoryFile? { self.held.flatMap { $0.file.isHeld ? $0.file : nil } }

    /// Gives a part that is in memory a file, locked, with the bytes that were written so far. Has no effect on another
    /// part.
    ///
    /// - Throws: ``StorageError`` with condition `exists` if another process has created or locked the part. The bytes
    ///   stay in memory.
    func store() throws(StorageError) {
        guard let held, held.file.isHeld else { return }
        let file = try Self.createFile(self.paths, in: self.storage, noteUnlocked: held.noteUnlocked)
        do throws(StorageError) {
            try self.removeOldManifests()
            try file.begin(length: self.header.completeLength, allocates: held.allocates)
            let status = try file.status()
            self.change { log in
                let header = log.header
                log.header = Manifest.Header(
                    id: header.id, resource: header.resource, completeLength: header.completeLength,
                    device: status.device, inode: status.inode, bootID: self.storage.bootID, sources: header.sources,
                    digests: header.digests, label: header.label)
            }
            try held.file.store(in: file)
        } catch {
            file.close()
            try? self.storage.remove(self.paths.part)
            throw error
        }
    }
}
