package import SegmentedDownloadCore

/// Looks at a destination and at what an earlier run left beside it. Changes nothing, but takes the part's lock.
package struct Surveyor: Sendable {
    package let storage: any Storage
    package let digests: [ExpectedDigest]
    /// The request's sources, to find the one again that a manifest's validators are from.
    package let sources: [SourceURL]

    package init(storage: any Storage, digests: [ExpectedDigest] = [], sources: [SourceURL] = []) {
        self.storage = storage
        self.digests = digests
        self.sources = sources
    }

    /// What was found, with the locked part if there is one.
    package struct Finding: Sendable {
        package var survey: Survey
        package var part: PartialFile?
        /// What the user should know of it.
        package var note: String?
        /// Whether the part could not be locked, because its file system has no locks.
        package var isUnlocked = false
    }

    /// - Throws: ``Failure`` where the destination cannot be used, ``StorageError`` where the disk fails.
    package func survey(_ paths: DestinationPaths, policy: DownloadOptions.ExistingFilePolicy) throws -> Finding {
        try self.storage.checkWritable(directory: paths.directory)
        let found = try self.storage.status(of: paths.destination)
        if let found, policy != .overwrite {
            return Finding(survey: .existing(try self.existing(found, paths, policy)), part: nil, note: nil)
        }
        if found?.kind == .directory {
            throw Failure(.exists, "\(paths.destination.printable) is a directory", hint: "Name a file with -o")
        }
        return try self.part(paths)
    }

    // MARK: A finished file

    private func existing(
        _ status: StorageStatus, _ paths: DestinationPaths, _ policy: DownloadOptions.ExistingFilePolicy
    ) throws -> ExistingFile {
        guard status.kind == .file else {
            let what = status.kind == .directory ? "is a directory" : "is not a regular file"
            throw Failure(.exists, "\(paths.destination.printable) \(what)", hint: "Name a file with -o")
        }
        let file = try self.storage.open(paths.destination, .read)
        defer { file.close() }
        var agrees: Bool?
        if !self.digests.isEmpty {
            let hexes = try file.digests(self.digests.map(\.algorithm), length: status.length)
            agrees = hexes == self.digests.map(\.hex)
        }
        var record = file.attribute(FinishedRecord.attribute).flatMap { FinishedRecord(decoding: $0) }
        if let known = record, try known.length != status.length || !self.isUnchanged(file, status, known) {
            record = nil
        }
        // What others may have written proves nothing; a digest proves the bytes, whoever wrote them.
        if record != nil, agrees == nil, policy == .verify {
            try self.storage.checkTrust(file.status(), paths.destination)
        }
        return ExistingFile(length: status.length, record: record?.resource, agreesWithDigests: agrees)
    }

    private func isUnchanged(
        _ file: any StorageFile, _ status: StorageStatus, _ record: FinishedRecord
    ) throws -> Bool {
        if status.modified == record.modified { return true }
        return try file.digests([.crc32], length: status.length) == [record.crc.hex]
    }

    // MARK: A part file

    private func part(_ paths: DestinationPaths) throws -> Finding {
        guard let status = try self.storage.status(of: paths.part) else {
            // A manifest without a part is of no use; a file of that name that is no manifest is somebody's.
            guard try self.storage.isManifest(paths.manifest) != false else {
                throw Failure(
                    .exists, "\(paths.manifest.printable) stands where the manifest would be, and is none",
                    hint: "Move it away, or choose another name with -o")
            }
            try self.checkManifest(paths)
            return Finding(survey: .nothing, part: nil, note: nil)
        }
        guard status.kind == .file, status.linkCount == 1 else {
            throw Failure(
                .exists, "\(paths.part.printable) is not a part file of ours", hint: "Move it away, or choose -o")
        }
        // Before it is opened: that takes permissions which a file of another user may not grant.
        try self.storage.checkTrust(status, paths.part)
        let file = try self.storage.open(paths.part, .update)
        do {
            try self.storage.checkTrust(file.status(), paths.part)
            let lock = try file.tryLock()
            guard lock != .busy else {
                let holder = self.storage.lockHolder(of: status).map { "process \($0)" } ?? "another process"
                throw Failure(.exists, "\(holder) is fetching \(paths.destination.printable) already")
            }
            // Whoever held the lock may have finished in between: then this name is another file's, or nobody's.
            guard try self.storage.status(of: paths.part)?.isSameFile(as: status) == true else {
                throw Failure(.exists, "another process has just finished \(paths.destination.printable)")
            }
            var finding = try self.part(file, paths)
            finding.isUnlocked = lock == .unsupported
            return finding
        } catch {
            file.close()
            throw error
        }
    }

    private func part(_ file: any StorageFile, _ paths: DestinationPaths) throws -> Finding {
        var note: String?
        do {
            if let manifest = try self.manifest(paths) {
                return try self.resumable(file, manifest, paths)
            }
            note = "a part file without a manifest is begun anew"
        } catch let damage as ManifestCodec.Damage {
            switch damage {
            case .versionUnknown(let version): throw Self.laterVersion(version, paths)
            case .notAManifest, .headerDamaged: note = "the manifest is damaged; begun anew"
            }
        }
        return Finding(survey: .nothing, part: self.emptyPart(file, paths), note: note)
    }

    /// Fails for a manifest without a part that must stay as it is: another user's, or one of a later version.
    private func checkManifest(_ paths: DestinationPaths) throws {
        do {
            _ = try self.manifest(paths)
        } catch ManifestCodec.Damage.versionUnknown(let version) {
            throw Self.laterVersion(version, paths)
        } catch is ManifestCodec.Damage {
            // It is replaced.
        }
    }

    /// A manifest of a later version of segdl is neither read nor replaced.
    static func laterVersion(_ version: UInt16, _ paths: DestinationPaths) -> Failure {
        Failure(
            .state,
            "\(paths.manifest.printable) has version \(version), and this segdl reads up to \(ManifestCodec.version). "
                + "Nothing was changed",
            hint: "Resume with the newer segdl, or delete \(paths.manifest.printable) and \(paths.part.printable)")
    }

    private func manifest(_ paths: DestinationPaths) throws -> Manifest? {
        guard let status = try self.storage.status(of: paths.manifest) else { return nil }
        guard status.kind == .file else {
            throw Failure(.exists, "\(paths.manifest.printable) is not a manifest of ours", hint: "Move it away")
        }
        try self.storage.checkTrust(status, paths.manifest)
        let file = try self.storage.open(paths.manifest, .read)
        defer { file.close() }
        try self.storage.checkTrust(file.status(), paths.manifest)
        return try ManifestCodec.decode(try file.contents(limit: Self.manifestLengthMaximum))
    }

    /// 1 GiB: the log of a file of 32 TiB.
    static let manifestLengthMaximum = 1 << 30

    private func emptyPart(_ file: any StorageFile, _ paths: DestinationPaths) -> PartialFile {
        let header = Manifest.Header(
            id: 0, resource: RemoteResource(completeLength: nil), completeLength: 0, device: 0, inode: 0, bootID: "",
            sources: [], digests: [])
        return PartialFile(paths: paths, file: file, storage: self.storage, header: header, claims: [])
    }

    /// Which of the request's sources the resource was learnt from, if it is one of them.
    private func reference(of header: Manifest.Header) -> SourceID? {
        guard let reference = header.recordedSources.reference else { return nil }
        let text = RecordedSource.resourceText(of: reference)
        return self.sources.firstIndex { $0.resourceText == text }.map { SourceID($0) }
    }

    /// Believes durable claims if the part is the file they were made of and was left alone since a clean pause; reads
    /// everything else back. That costs a second for some gigabytes, and is what finds a disk or a person at fault.
    private func resumable(_ file: any StorageFile, _ manifest: Manifest, _ paths: DestinationPaths) throws -> Finding {
        let status = try file.status()
        let header = manifest.header
        let isSameFile =
            status.identity == header.partIdentity && status.length == header.completeLength
            && self.storage.bootID == header.bootID && manifest.pausedModified == status.modified
        let pending = Set(manifest.pending)
        let claims = try (manifest.durable + manifest.pending).settled().filter { claim in
            if isSameFile, !pending.contains(claim) { return true }
            return try file.holds(claim)
        }
        let durable = claims.filter { !pending.contains($0) }.joined()
        let unsynced = claims.filter { pending.contains($0) }.joined()
        let claimed = (manifest.durable + manifest.pending).reduce(0) { $0 + $1.length }
        let kept = claims.reduce(0) { $0 + $1.length }
        let note =
            kept < claimed ? "\(claimed - kept) bytes on disk were not what was written; they are fetched again" : nil
        let missing = claims.missing(of: header.completeLength)
        // What was lost may come again as other bytes, and no state is of those.
        let frontier = missing.first?.lowerBound ?? header.completeLength
        let states = manifest.digestStates.filter { $0.offset <= frontier }
        var saved = SavedPartial(
            resource: header.resource, completeLength: header.completeLength,
            missing: missing, reference: self.reference(of: header),
            marked: claims.marked)
        saved.isRejected = manifest.isRejected
        let part = PartialFile(
            paths: paths, file: file, storage: self.storage, header: header,
            claims: durable + unsynced, durableCount: durable.count, digestStates: states,
            isRejected: manifest.isRejected)
        return Finding(survey: .partial(saved), part: part, note: note)
    }
}

extension StorageFile {
    /// Whether the claimed bytes are on disk, by their CRC-32.
    func holds(_ claim: Claim) throws(StorageError) -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(claim.length), alignment: 4096)
        defer { buffer.deallocate() }
        guard try self.readFully(into: buffer, at: claim.offset) == buffer.count else { return false }
        var crc = CRC32()
        crc.update(UnsafeRawBufferPointer(buffer))
        return crc == claim.crc
    }
}

extension Storage {
    /// Whether what a path names may be a manifest of ours: begun by its mark, or emptied by a crash. Absent if it names
    /// nothing; to remove that would be no error, but would wait for the directory's lock.
    func isManifest(_ path: String) throws(StorageError) -> Bool? {
        guard let status = try self.status(of: path) else { return nil }
        guard status.kind == .file else { return false }
        let file = try self.open(path, .read)
        defer { file.close() }
        return ManifestCodec.isBegun(try file.contents(limit: 64))
    }

    /// Whether something is left of a destination's manifest, drafted or in place.
    func hasManifest(_ paths: DestinationPaths) throws(StorageError) -> Bool {
        for path in [paths.manifestDraft, paths.manifest] where try self.isManifest(path) == true { return true }
        return false
    }

    /// Removes what is left of a destination's manifest, drafted or in place; leaves a file of that name that is none.
    func removeManifests(_ paths: DestinationPaths) throws(StorageError) {
        for path in [paths.manifestDraft, paths.manifest] where try self.isManifest(path) == true {
            try self.remove(path)
        }
    }

    /// Removes a manifest, or nothing; never a file that is none.
    func removeManifest(_ path: String) throws(StorageError) {
        guard let isOurs = try self.isManifest(path) else { return }
        guard isOurs else {
            throw StorageError(
                call: "unlink", path: path, errno: 0, condition: .exists, text: "it is no manifest of ours")
        }
        try self.remove(path)
    }
}
