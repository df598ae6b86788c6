package import SegmentedDownloadCore
import Synchronization

/// How a part is begun, and how one of an earlier run is resumed.
extension PartialFile {
    /// 8 MiB: longer files get their manifest at once, others with their first checkpoint. For a shorter file a crash
    /// costs less than a directory sync.
    package static let immediateManifestLength: Int64 = 8 << 20

    /// A part of which nothing is known yet.
    convenience init(_ paths: DestinationPaths, file: any StorageFile, storage: any Storage) {
        let header = Manifest.Header(
            id: 0, resource: RemoteResource(completeLength: nil), completeLength: 0, device: 0, inode: 0, bootID: "",
            sources: [], digests: [])
        self.init(paths: paths, file: file, storage: storage, header: header, claims: [])
    }

    /// Creates and locks a part that does not exist.
    ///
    /// - Parameter noteUnlocked: Called if the file system has no locks.
    /// - Throws: ``DownloadError`` with code `exists` if another process has created or locked it.
    static func create(
        _ paths: DestinationPaths, in storage: any Storage, noteUnlocked: () -> Void
    ) throws -> PartialFile {
        do throws(StorageError) {
            let file = try Self.createFile(paths, in: storage, noteUnlocked: noteUnlocked)
            return PartialFile(paths, file: file, storage: storage)
        } catch {
            guard error.condition == .exists else { throw error }
            throw DownloadError(.exists, "another process is already fetching \(paths.destination.printable)")
        }
    }

    /// Creates and locks the file of a part that does not exist.
    ///
    /// - Throws: ``StorageError`` with condition `exists` if another process has created or locked it.
    static func createFile(
        _ paths: DestinationPaths, in storage: any Storage, noteUnlocked: () -> Void
    ) throws(StorageError) -> any StorageFile {
        let file = try storage.open(paths.part, .create)
        do throws(StorageError) {
            switch try file.tryLock() {
            case .taken: break
            case .busy:
                throw StorageError(
                    call: "flock", path: paths.part, errno: 0, condition: .exists,
                    text: "another process is already fetching the file")
            case .unsupported: noteUnlocked()
            }
            try file.protect()
            return file
        } catch {
            // If another process has locked it, it is that one's.
            if error.condition != .exists { try? storage.remove(paths.part) }
            file.close()
            throw error
        }
    }

    /// Sets what the user stated. It is written by the next call of ``begin(_:id:sources:digests:allocates:)`` or
    /// ``adopt(id:resource:limit:sources:digests:)``.
    func describe(_ statements: UserStatements) {
        self.change { log in
            log.header.label = statements.label
            log.header.pieces = statements.pieces
            log.header.selection = statements.selection
        }
    }

    /// Starts over in this part file and discards its content.
    ///
    /// - Parameter hasSetAside: Whether another part was set aside for this one. If so, the manifest is written at once
    ///   even for a short file, so that a run after a crash finds it and deletes the other part.
    package func begin(
        _ resource: RemoteResource, id: UInt64, sources: [String], digests: [String], allocates: Bool,
        hasSetAside: Bool = false
    ) async throws(StorageError) {
        self.readBack?.close()
        self.change {
            $0.clear(isRecorded: resource.completeLength ?? 0 > 0 && self.storage.keepsFiles)
        }
        // The manifest is removed first: bytes without claims are harmless, claims without bytes are not. A damaged
        // manifest beside a part is removed too.
        if try self.storage.status(of: self.paths.manifest) != nil { try self.storage.remove(self.paths.manifest) }
        try self.storage.removeManifest(self.paths.manifestDraft)
        try self.file.begin(length: resource.completeLength ?? 0, allocates: allocates)
        let status = try self.file.status()
        self.change { log in
            log.header = log.header.identified(by: status, bootID: self.storage.bootID)
            log.header.id = id
            log.header.resource = resource
            log.header.completeLength = resource.completeLength ?? 0
            log.header.sources = sources
            log.header.digests = digests
        }
        if let length = resource.completeLength, length > (hasSetAside ? 0 : Self.immediateManifestLength),
            self.storage.keepsFiles
        {
            try await self.writeManifest(durableCount: 0)
        }
    }

    /// Resumes the part.
    ///
    /// - Parameters:
    ///   - limit: The offset from which claims are withdrawn; `nil` to keep all.
    ///   - keepsRecord: Whether the manifest keeps its resource and sources.
    package func adopt(
        id: UInt64, resource: RemoteResource, limit: Int64?, sources: [String], digests: [String],
        keepsRecord: Bool = false
    ) async throws(StorageError) {
        let length = self.header.completeLength
        if try self.file.status().length != length {
            try self.file.truncate(to: length)
        }
        let status = try self.file.status()
        let count = self.change { log in
            if let limit {
                self.reader?.withdraw([limit..<Int64.max])
                log.keep(upTo: limit)
            }
            log.retireMarks()
            log.header = log.header.identified(by: status, bootID: self.storage.bootID)
            log.header.id = id
            // What the user states now holds for the part wherever its bytes come from.
            log.header.digests += digests.filter { !log.header.digests.contains($0) }
            if keepsRecord {
                log.header.resource.state(resource.digests)
            } else {
                log.header.resource = resource
                log.header.sources = sources
                log.header.digests = digests
            }
            return log.claims.count
        }
        guard self.syncPolicy == .checkpoint else {
            return try await self.writeManifest(durableCount: self.log.withLock { $0.durableCount })
        }
        // Some of these claims were read back only from the page cache. If writing or syncing them fails, the manifest
        // stays as it is.
        try self.rewriteUnsynced()
        do throws(StorageError) {
            try await self.synchronize(metadata: false)
        } catch {
            // The remaining claims were durable before.
            try? await self.writeManifest(durableCount: .max)
            throw error
        }
        try await self.writeManifest(durableCount: count)
    }

    /// Records bytes that another program left in the file, before the file becomes the part. Only its data is synced, and
    /// nothing is written to it.
    func record() async throws(StorageError) {
        try await self.synchronize(metadata: false)
        try await self.writeManifest(durableCount: .max)
    }

    /// Writes the claims again that are not known to be durable.
    ///
    /// An earlier sync may have failed in a process that could not record it. The kernel then regards the pages as
    /// clean although they never reached the disk, and syncs them only if they are written again.
    private func rewriteUnsynced() throws(StorageError) {
        for claim in self.log.withLock({ $0.claims[$0.durableCount...] }) { try self.file.rewrite(claim) }
    }
}

/// What the user stated about a file, which its manifest stores.
struct UserStatements: Hashable, Sendable {
    var label: Manifest.Label
    var pieces: PieceDigests?
    var selection: RequestSelection?
}
