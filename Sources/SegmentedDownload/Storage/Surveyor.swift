package import SegmentedDownloadCore

/// Examines a destination and the part and manifest beside it. It changes nothing, but takes the part's lock.
package struct Surveyor: Sendable {
    package let storage: any Storage
    package let digests: [ExpectedDigest]
    /// The request's sources, among which the manifest's reference source is looked up.
    package let sources: [SourceURL]
    /// The digests of the pieces of a finished file, which count beside the others.
    var pieceDigests: PieceDigests?
    /// What the request selects the representation with, besides its URL.
    var selection: RequestSelection.Values = [:]
    /// What earlier runs of a job were about to put into place. It counts if there are no digests.
    var placing: PlacingRecord?
    /// Once raised, reading files ends with a failure of code `cancelled`.
    var interruption = Latch()

    package init(storage: any Storage, digests: [ExpectedDigest] = [], sources: [SourceURL] = []) {
        self.storage = storage
        self.digests = digests
        self.sources = sources
    }

    /// The result of a survey, with the locked part if there is one.
    package struct Finding: Sendable {
        package var survey: Survey
        package var part: PartialFile?
        /// A remark for the user.
        package var note: String?
        /// Whether the part is not locked, because the file system has no locks.
        package var isUnlocked = false
        /// Whether there was nothing to find, so that nothing has to be removed before a file gets the name. If
        /// ``isAssumed``, that is not known of a part on disk.
        var isClear = false
        /// Whether the manifests were not looked for, because the directory had none.
        var isAssumed = false
    }

    /// Whether the destination, its part, both manifests and a part that was set aside are all missing, as before most
    /// downloads. Parts are set aside in the first free slot, and the first slot is emptied last.
    func isClear(_ paths: DestinationPaths) throws(StorageError) -> Bool {
        for path in [paths.destination, paths.part, paths.manifest, paths.manifestDraft]
        where try self.storage.status(of: path) != nil { return false }
        do throws(StorageError) {
            return try self.storage.status(of: paths.setAside(slot: 1).manifest) == nil
        } catch  where error.condition == .nameTooLong {
            // A file with such a name cannot have been set aside.
            return true
        }
    }

    /// Examines a destination.
    ///
    /// - Throws: ``DownloadError`` if the destination cannot be used, ``StorageError`` if a system call fails.
    package func survey(_ paths: DestinationPaths, policy: DownloadOptions.ExistingFilePolicy) throws -> Finding {
        try self.storage.checkWritable(directory: paths.directory)
        let found = try self.storage.status(of: paths.destination)
        if let found, policy != .overwrite {
            return Finding(survey: .existing(try self.existing(found, paths, policy)), part: nil, note: nil)
        }
        // A link is replaced. A directory, a device, a FIFO and a socket are not.
        if let found, found.kind != .file, found.kind != .link { throw Self.noFile(found, paths) }
        return try self.part(paths)
    }

    private static func noFile(_ status: StorageStatus, _ paths: DestinationPaths) -> DownloadError {
        let what = status.kind == .directory ? "is a directory" : "is not a regular file"
        return DownloadError(.exists, "\(paths.destination.printable) \(what)", remedy: .nameFile)
    }

    // MARK: A finished file

    private func existing(
        _ status: StorageStatus, _ paths: DestinationPaths, _ policy: DownloadOptions.ExistingFilePolicy
    ) throws -> ExistingFile {
        guard status.kind == .file else { throw Self.noFile(status, paths) }
        let file = try self.storage.open(paths.destination, .read)
        defer { file.close() }
        var content = VerifiedFile.Content(length: status.length)
        try content.complete(
            from: file, for: self.digests, pieces: self.pieceDigests, unless: self.interruption)
        var isRecorded = false
        if self.digests.isEmpty, pieceDigests == nil, let placing,
            self.storage.ownership(ofFinished: status, paths.destination).objection(user: self.storage.user) == nil
        {
            isRecorded = try placing.describes(file, status, unless: self.interruption)
        }
        let isCompared = isRecorded || !self.digests.isEmpty || pieceDigests != nil
        var record = file.attribute(FinishedRecord.attribute).flatMap { FinishedRecord(decoding: $0) }
        // Otherwise the record proves nothing, and the file need not be read for it.
        let isEvidence = !isCompared && (policy == .verify || policy == .update || policy == .newer)
        if let known = record,
            try isEvidence
                ? !known.describes(file, status, unless: self.interruption) : !known.fits(status)
        {
            record = nil
        }
        // A file that another user may have written proves nothing. If its digest matches, its owner does not matter.
        if record != nil, isEvidence {
            try self.storage.checkTrust(finished: file.status(), paths.destination)
        }
        var existing = ExistingFile(
            content, for: .init(digests: self.digests, hasPieces: self.pieceDigests != nil), record: record?.resource,
            modified: HTTPDate(secondsSinceEpoch: status.modified.flooredSeconds))
        existing.isRecorded = isRecorded
        existing.otherRequest = record?.contradiction(by: self.selection)
        return existing
    }

    // MARK: A part file

    private func part(_ paths: DestinationPaths) throws -> Finding {
        guard let status = try self.storage.status(of: paths.part) else {
            // A manifest without a part is useless. A file with its name that is not a manifest belongs to the user.
            guard try self.storage.isManifest(paths.manifest) != false else {
                throw DownloadError(
                    .exists, "\(paths.manifest.printable) has the manifest's name but is not a manifest",
                    remedy: .moveAwayOrChooseName)
            }
            try self.checkManifest(paths)
            return Finding(survey: .nothing, part: nil, note: nil)
        }
        guard status.kind == .file, status.linkCount == 1 else {
            throw DownloadError(
                .exists, "\(paths.part.printable) is not a part file of segdl", remedy: .moveAwayOrChooseName)
        }
        // Checked before opening, which would fail with a less helpful error for a file of another user.
        try self.storage.checkTrust(status, paths.part)
        let file = try self.storage.open(paths.part, .update)
        do {
            try self.storage.checkTrust(file.status(), paths.part)
            let lock = try file.tryLock()
            guard lock != .busy else {
                let holder = self.storage.lockHolder(of: status).map { "process \($0)" } ?? "another process"
                throw DownloadError(.exists, "\(holder) is fetching \(paths.destination.printable) already")
            }
            // The process that held the lock may have finished meanwhile; then the name is free or belongs to another
            // file.
            guard try self.storage.status(of: paths.part)?.isSameFile(as: file.status()) == true else {
                throw DownloadError(.exists, "another process has just finished \(paths.destination.printable)")
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
            note = "the part file has no manifest; starting over"
        } catch let damage as ManifestCodec.Damage {
            switch damage {
            case .versionUnknown(let version): throw Self.laterVersion(version, paths)
            case .notAManifest, .headerDamaged: note = "the manifest is damaged; starting over"
            }
        }
        return Finding(survey: .nothing, part: PartialFile(paths, file: file, storage: self.storage), note: note)
    }

    /// Throws if a manifest without a part must not be replaced: it is another user's, or of a later version.
    private func checkManifest(_ paths: DestinationPaths) throws {
        do {
            _ = try self.manifest(paths)
        } catch ManifestCodec.Damage.versionUnknown(let version) {
            throw Self.laterVersion(version, paths)
        } catch is ManifestCodec.Damage {
            // A damaged manifest is replaced.
        }
    }

    /// The failure for a manifest that a later version of segdl wrote. It is neither read nor replaced.
    static func laterVersion(_ version: UInt16, _ paths: DestinationPaths) -> DownloadError {
        DownloadError(
            .state,
            "the manifest \(paths.manifest.printable) has version \(version); this version reads up to "
                + "\(ManifestCodec.version). Nothing was changed",
            hint:
                "Resume with the version that wrote it, or delete \(paths.manifest.printable) and \(paths.part.printable)"
        )
    }

    private func manifest(_ paths: DestinationPaths) throws -> Manifest? {
        guard let status = try self.storage.status(of: paths.manifest) else { return nil }
        guard status.kind == .file else {
            throw DownloadError(.exists, "\(paths.manifest.printable) is not a manifest of segdl", hint: "Move it away")
        }
        try self.storage.checkTrust(status, paths.manifest)
        let file = try self.storage.open(paths.manifest, .read)
        defer { file.close() }
        try self.storage.checkTrust(file.status(), paths.manifest)
        return try ManifestCodec.decode(try file.contents(limit: Self.manifestLengthMaximum))
    }

    /// 1 GiB: the log of a file of 32 TiB.
    static let manifestLengthMaximum = 1 << 30

    /// The request's source that the manifest's resource came from; `nil` if the request does not have it.
    private func reference(of header: Manifest.Header) -> SourceID? {
        guard let reference = header.recordedSources.reference else { return nil }
        let text = RecordedSource.resourceText(of: reference)
        return self.sources.firstIndex { $0.resourceText == text }.map { SourceID($0) }
    }

    /// Determines which claims of a part are valid.
    ///
    /// Durable claims are accepted unread if the part is the recorded file and is unchanged since a clean pause; they are
    /// read while the rest is fetched, see ``ReadBack``. All other claims are read back and checked now, which takes about
    /// a second for some gigabytes in the page cache.
    private func resumable(_ file: any StorageFile, _ manifest: Manifest, _ paths: DestinationPaths) throws -> Finding {
        let status = try file.status()
        let header = manifest.header
        let isSameFile =
            status.identity == header.partIdentity && status.length == header.completeLength
            && self.storage.bootID == header.bootID && manifest.pausedModified == status.modified
        let pending = Set(manifest.pending)
        let claims = try (manifest.durable + manifest.pending).settled().filter { claim in
            if isSameFile, !pending.contains(claim) { return true }
            if self.interruption.isRaised { throw DownloadError(.cancelled, "examining the part was interrupted") }
            return try file.holds(claim)
        }
        let durable = claims.filter { !pending.contains($0) }.joined()
        let unsynced = claims.filter { pending.contains($0) }.joined()
        let claimed = (manifest.durable + manifest.pending).reduce(0) { $0 + $1.length }
        let kept = claims.reduce(0) { $0 + $1.length }
        let note =
            kept < claimed ? "\(claimed - kept) bytes on disk fail their checksum; they are fetched again" : nil
        let missing = claims.missing(of: header.completeLength)
        // Bytes that were lost may come again with other content, so states beyond the first gap are dropped.
        let frontier = missing.first?.lowerBound ?? header.completeLength
        let states = manifest.digestStates.filter { $0.offset <= frontier }
        var (resource, contents) = (header.resource, manifest.contents)
        // If no byte was kept, the next response may be of another version, and what was stated is not about its bytes.
        if kept == 0 { (resource.digests, contents) = ([], []) }
        var saved = SavedPartial(
            resource: resource, completeLength: header.completeLength,
            missing: missing, reference: self.reference(of: header),
            marked: claims.marked)
        saved.isRejected = manifest.isRejected
        let part = PartialFile(
            paths: paths, file: file, storage: self.storage, header: header,
            claims: durable + unsynced, durableCount: durable.count, digestStates: states,
            contents: contents, isRejected: manifest.isRejected, unread: isSameFile ? durable : [])
        return Finding(survey: .partial(saved), part: part, note: note)
    }
}

extension Int64 {
    /// Nanoseconds since 1970 in whole seconds, rounded down also before 1970.
    fileprivate var flooredSeconds: Int64 {
        let (seconds, rest) = self.quotientAndRemainder(dividingBy: 1_000_000_000)
        return rest < 0 ? seconds - 1 : seconds
    }
}

extension StorageFile {
    /// Whether the bytes on disk have the claim's CRC-32.
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
    /// Whether a path names a manifest: a file that begins with a manifest's mark, or an empty one left by a crash.
    /// `nil` if nothing exists.
    ///
    /// The result `nil` lets callers skip `unlink`, which would wait for the directory's lock.
    func isManifest(_ path: String) throws(StorageError) -> Bool? {
        guard let status = try self.status(of: path) else { return nil }
        guard status.kind == .file else { return false }
        let file = try self.open(path, .read)
        defer { file.close() }
        return ManifestCodec.isBegun(try file.contents(limit: 64))
    }

    /// Whether a manifest or a draft of it exists for a destination.
    func hasManifest(_ paths: DestinationPaths) throws(StorageError) -> Bool {
        for path in [paths.manifestDraft, paths.manifest] where try self.isManifest(path) == true { return true }
        return false
    }

    /// Removes a destination's manifest and its draft. Other files with these names stay.
    func removeManifests(_ paths: DestinationPaths) throws(StorageError) {
        for path in [paths.manifestDraft, paths.manifest] where try self.isManifest(path) == true {
            try self.remove(path)
        }
    }

    /// Removes a manifest if it exists.
    ///
    /// - Throws: ``StorageError`` with condition `exists` if the file is not a manifest.
    func removeManifest(_ path: String) throws(StorageError) {
        guard let isOurs = try self.isManifest(path) else { return }
        guard isOurs else {
            throw StorageError(
                call: "unlink", path: path, errno: 0, condition: .exists, text: "it is not a manifest of segdl")
        }
        try self.remove(path)
    }
}
