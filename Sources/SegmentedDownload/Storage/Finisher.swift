package import SegmentedDownloadCore

/// Turns a complete part into the destination: verifies, syncs, renames, and then removes the manifest.
///
/// After a crash between any two steps the next run can finish. Before the rename it finds a complete part with its
/// manifest; after it, a finished file with its extended attribute.
package struct Finisher: Sendable {
    package let storage: any Storage
    package let part: PartialFile
    package let resource: RemoteResource
    package let digests: [ExpectedDigest]
    /// Digests to compute and report, without expected values.
    var computedDigests: [ExpectedDigest.Algorithm] = []
    /// The expected digests of the file's pieces.
    var pieceDigests: Metalink.PieceDigests?
    package let replaces: Bool
    /// Numbered names for the destination, from 1 on, to use if its own name is taken; `nil` if only its own name will
    /// do.
    var alternative: (@Sendable (Int) -> DestinationPaths?)?
    /// The existing file to replace. If the destination is no longer this file, it is not replaced.
    var replaceable: StorageStatus?
    /// Where a job's task records the file if it has no ``FinishedRecord``.
    var placing: PlacingRecord?
    /// Whether the file's modification time is set to the server's `Last-Modified`.
    let keepsRemoteTime: Bool
    /// What shows, without a digest, that the file is one version of the resource.
    var evidence = Evidence.validator
    /// The length that the user or a list gave; nil if none was given.
    var lengthExpected: Int64?

    /// The outcome for the finished file.
    package struct Result: Hashable, Sendable {
        package var file: VerifiedFile
        /// The paths of the placed file; `nil` if the bytes went to a descriptor.
        var paths: DestinationPaths?
        /// The status of the placed file.
        var status: StorageStatus?
    }

    /// Verifies the part and moves it into place.
    ///
    /// - Parameter interruption: Once raised, computing digests ends with a failure of code `cancelled`. Nothing is
    ///   lost.
    func finish(length: Int64, unless interruption: Latch) async throws -> Result {
        if let memory = self.part.memory, !self.replaces,
            let result = try await self.place(memory, length: length, unless: interruption)
        {
            return result
        }
        try self.part.store()
        let (claims, crc) = try self.settle(length: length)
        try self.checkIdentity(length: length)
        try await self.checkEarlierBytes(unless: interruption)
        try self.checkHoles(claims, length: length)
        let file = try await self.judged(length: length, crc: crc, unless: interruption)
        if self.keepsRemoteTime, let date = self.resource.validator.lastModified {
            try self.part.file.setModified(date.secondsSinceEpoch)
        }
        let record = try self.leaveRecord(of: file, crc: crc, on: self.part.file, try self.part.file.status(), claims)
        if self.part.syncPolicy != .none { try await self.part.synchronize(metadata: true) }
        if record == nil { await self.recordPlacing(length: length, crc: crc) }
        try self.checkIdentity(length: length)
        let permissions = try self.storage.permissions(
            ofPart: self.part.file, at: self.part.paths.destination, replaces: self.replaces)
        let (paths, status) = try await self.rename()
        self.part.markPlaced()
        self.part.file.release(permissions)
        if let record { self.complete(record) }
        if self.part.syncPolicy != .none { try await self.synchronizeDirectory(of: paths) }
        // The manifest is removed last: a later run that finds it looks for files left to delete.
        try self.storage.removeSetAside(of: self.part.paths)
        try self.part.removeManifest()
        self.part.close()
        return Result(file: file, paths: paths, status: status)
    }

    /// Waits until the last byte was written to the output, and verifies the digests.
    func handOn(length: Int64, unless interruption: Latch) async throws -> Result {
        let (_, crc) = try self.settle(length: length)
        let computed = try await self.part.reader?.finish(length: length, unless: interruption) ?? [:]
        guard self.part.reader?.isSpoiled == false else {
            throw DownloadError(.integrity, "part of what was written to the output belongs to another file")
        }
        let file = try self.judged(
            computed, length: length, crc: crc, pieces: nil, unless: interruption)
        self.part.close()
        return Result(file: file)
    }

    /// Compares the bytes with everything that was stated about them.
    func judged(length: Int64, crc: CRC32, unless interruption: Latch) async throws -> VerifiedFile {
        let computed = try await self.part.reader?.finish(length: length, unless: interruption) ?? [:]
        let file = try self.judged(
            computed, length: length, crc: crc, pieces: self.pieceDigests, unless: interruption)
        try await self.checkContents(length: length, unless: interruption)
        return file
    }

    /// - Parameters:
    ///   - computed: The digests that were computed while the file was fetched. Others are computed from the disk.
    ///   - crc: Combined from the claims' checksums.
    private func judged(
        _ computed: [ExpectedDigest.Algorithm: String], length: Int64, crc: CRC32, pieces: PieceDigests?,
        unless interruption: Latch
    ) throws -> VerifiedFile {
        var content = VerifiedFile.Content(length: length, crc: crc, hexes: computed)
        try content.complete(
            from: self.part.file, for: self.digests, others: self.computedDigests, pieces: pieces, unless: interruption)
        do throws(DownloadError) {
            return try .judged(
                content, for: .init(digests: self.digests, hasPieces: pieces != nil, length: self.lengthExpected),
                by: .received(self.resource, self.evidence))
        } catch {
            // A length that was given says nothing against the bytes.
            if error.remedy == .startOver || error.remedy == .giveOwnDigestOrStartOver { try self.part.reject() }
            throw error
        }
    }

    func settle(length: Int64) throws -> (claims: [Claim], crc: CRC32) {
        let claims = self.part.settledClaims
        guard let crc = claims.combinedCRC(of: length) else {
            throw DownloadError(.internal, "the claims do not cover all \(length) bytes")
        }
        return (claims, crc)
    }

    /// Stores the finished file's record in an extended attribute.
    ///
    /// If the file system has no attributes or no room for a long one, the record is shortened or omitted. A record of
    /// an earlier file of that inode is removed in any case.
    ///
    /// - Returns: The record that the file has; `nil` if it has none.
    func leaveRecord(
        of verified: VerifiedFile, crc: CRC32, on file: any StorageFile, _ status: StorageStatus, _ claims: [Claim]
    ) throws -> FinishedRecord? {
        let length = verified.length
        if !self.resource.endsWithConnection {
            var record = FinishedRecord(
                resource: self.resource, length: length, crc: crc, modified: status.modified,
                pieces: claims.combinedCRCs(of: FinishedRecord.pieceRanges(of: length)) ?? [],
                salt: self.part.header.id)
            // The file was verified against these digests, so they are facts about it. Those of a part are not of the whole file.
            if !self.resource.isPart { record.resource.state(verified.requirements.digests) }
            record.selection = self.part.header.selection
            record.isSynced = self.part.syncPolicy != .none
            if try file.setAttribute(FinishedRecord.attribute, record.encoded) { return record }
            record.pieces = []
            if try file.setAttribute(FinishedRecord.attribute, record.encoded) { return record }
        }
        try file.removeAttribute(FinishedRecord.attribute)
        try self.disarmRecord(of: file, length: length)
        return nil
    }

    /// Adds to the record of the placed file when the file was last changed, so that the next run need not read it.
    ///
    /// It is not synced: after a power cut the earlier record may be there, and the file is read. A failure is not an error
    /// for the same reason.
    private func complete(_ record: FinishedRecord) {
        guard let status = try? self.part.file.status() else { return }
        var completed = record
        completed.changed = status.changed
        // The record of a range of a shared file is in a file of its own, which other tasks may be reading.
        guard completed.proves(status), self.part.file.attribute(FinishedRecord.attribute) == record.encoded else {
            return
        }
        _ = try? self.part.file.setAttribute(FinishedRecord.attribute, completed.encoded)
    }

    /// Records in a job's directory what the file contains that has no ``FinishedRecord``, so that the next run recognizes it
    /// if this one is killed before the entry is recorded as finished.
    ///
    /// A failure is not an error: without the record, such a kill makes the entry fail in the next run.
    func recordPlacing(length: Int64, crc: CRC32) async {
        try? await self.placing?.append(
            ContentSummary(length: length, crc: crc), isDurable: self.part.syncPolicy != .none)
    }

    /// Invalidates a record that could not be removed, by changing the file's modification time. A record counts only
    /// if the file's length and times, or its CRC-32, match; without syncs only the CRC-32 counts.
    private func disarmRecord(of file: any StorageFile, length: Int64) throws {
        guard let stale = file.attribute(FinishedRecord.attribute).flatMap({ FinishedRecord(decoding: $0) }),
            stale.length == length, stale.modified == (try file.status().modified)
        else { return }
        try file.setModified(stale.modified / 1_000_000_000 + 1)
    }

    /// Checks that the bytes of an earlier run are still as they were written. Digests whose states were resumed do not
    /// include them.
    private func checkEarlierBytes(unless interruption: Latch) async throws {
        let damaged = try self.part.damagedClaims(unless: interruption)
        guard let first = damaged.first else { return }
        try await self.part.withdraw(damaged)
        let length = damaged.reduce(0) { $0 + $1.length }
        throw DownloadError(
            .integrity,
            "\(length) bytes of an earlier run, from byte \(first.offset) on, are not on disk as they were written",
            hint: "The same request fetches them again", isTransient: true)
    }

    /// Checks that the part has no holes. If another program truncates the part, later writes extend it again and leave
    /// a hole.
    private func checkHoles(_ claims: [Claim], length: Int64) throws {
        guard try self.part.file.firstHole() < length else { return }
        for claim in claims where try !self.part.file.holds(claim) {
            self.part.distrust()
            throw DownloadError(
                .integrity, "byte \(claim.offset) and the bytes after it are not on disk as they were written",
                hint: "The same request fetches the missing bytes again", isTransient: true)
        }
    }

    /// Renames the part to the destination or a numbered name.
    ///
    /// - Returns: The paths it has now, and its status.
    private func rename() async throws -> (DestinationPaths, StorageStatus) {
        if let replaceable, let found = try self.storage.status(of: self.part.paths.destination),
            !found.isUnchanged(since: replaceable)
        {
            throw DownloadError(
                .exists,
                "\(self.part.paths.destination.printable) changed during the download; the part file is kept",
                remedy: .keepBothOrReplace)
        }
        if self.replaces { try self.storage.checkReplaceable(self.part.paths.destination) }
        let own = try self.part.file.status()
        let paths = try await self.place()
        // In a directory that other users may write to, another file may have had the part's name at that moment.
        var found: StorageStatus? = own
        do throws(StorageError) {
            found = try self.storage.status(of: paths.destination)
        } catch {
            // The file is in place. A failure to examine it is not an error.
        }
        if found?.isSameFile(as: own) == true { return (paths, own) }
        // Some file systems number a file anew when it is renamed.
        guard let found, try self.holdsContent(paths.destination, found, as: own) else {
            throw DownloadError(
                .file, "\(paths.destination.printable) was replaced by another program while it was moved into place")
        }
        return (paths, found)
    }

    /// Whether a file has the part's owner, permissions and bytes.
    private func holdsContent(_ path: String, _ found: StorageStatus, as own: StorageStatus) throws -> Bool {
        guard found.kind == .file, found.ownership == own.ownership, found.length == own.length else { return false }
        let file = try self.storage.open(path, .read)
        defer { file.close() }
        guard try file.status().isUnchanged(since: found) else { return false }
        for claim in self.part.settledClaims where try !file.holds(claim) { return false }
        return true
    }

    private func place() async throws -> DestinationPaths {
        if try await self.tryRename(to: self.part.paths) { return self.part.paths }
        var number = 1
        while let paths = self.alternative?(number) {
            // A name whose part another process is fetching is skipped.
            if try self.storage.status(of: paths.part) == nil, try await self.tryRename(to: paths) { return paths }
            number += 1
        }
        throw self.nameTaken
    }

    /// The failure for a destination that another program has created.
    var nameTaken: DownloadError {
        DownloadError(
            .exists, "\(self.part.paths.destination.printable) now exists; the part file is kept",
            remedy: .keepBothOrReplace)
    }

    /// Renames the part.
    ///
    /// - Returns: Whether it succeeded; `false` if the name is taken.
    private func tryRename(to paths: DestinationPaths) async throws(StorageError) -> Bool {
        do throws(StorageError) {
            try self.storage.rename(
                self.part.file, from: self.part.paths.part, to: paths.destination, replacing: self.replaces)
            return true
        } catch  where error.condition == .exists {
            return false
        } catch  where error.condition == .unsupported {
            return try await self.tryClaim(paths)
        }
    }

    private func tryClaim(_ paths: DestinationPaths) async throws(StorageError) -> Bool {
        do throws(StorageError) {
            try await self.storage.place(
                self.part.paths, claiming: paths, isDurable: self.part.syncPolicy != .none)
            return true
        } catch  where error.condition == .exists {
            return try self.storage.isRenamed(
                self.part.file, from: self.part.paths.part, to: paths.destination, in: error)
        }
    }

    func synchronizeDirectory(of paths: DestinationPaths) async throws {
        do throws(StorageError) {
            try await self.storage.synchronize(directory: paths.directory)
        } catch {
            let failure = error.failure
            throw DownloadError(
                failure.code,
                "\(paths.destination.printable) is complete and in place, but its name may be lost in a crash: "
                    + failure.message,
                hint: "The same request makes the name durable", errno: failure.errno)
        }
    }

    /// Checks that the path still names the part with all its bytes. Another program may have truncated, moved or
    /// deleted it.
    private func checkIdentity(length: Int64) throws {
        let status = try self.part.file.status()
        guard status.linkCount > 0,
            try self.storage.status(of: self.part.paths.part)?.isSameFile(as: status) == true
        else {
            throw DownloadError(
                .file, "\(self.part.paths.part.printable) was deleted or replaced while it was being written")
        }
        guard status.length >= length else {
            self.part.distrust()
            throw DownloadError(
                .integrity,
                "\(self.part.paths.part.printable) was cut to \(status.length) of \(length) bytes by another program",
                hint: "The same request fetches the missing bytes again", isTransient: true)
        }
        if status.length > length {
            try self.part.file.truncate(to: length)
        }
    }

    /// Verifies what responses stated about their bodies that were not read to their end, for which these ranges are read.
    /// That is needed only if no digest has proved all bytes.
    private func checkContents(length: Int64, unless interruption: Latch) async throws {
        guard !self.digests.contains(where: \.isCollisionResistant) else { return }
        for stated in self.part.contentsStated {
            guard let range = stated.range, range.upperBound <= length else { continue }
            let hex = try self.part.file.digest(stated.digest.algorithm, of: range, unless: interruption)
            guard hex != stated.digest.hex else { continue }
            let isOnDisk = self.part.ownsNames
            if isOnDisk {
                try await self.part.withdraw(self.part.settledClaims.filter { $0.range.overlaps(range) })
            }
            throw DownloadError(
                .integrity,
                "the \(stated.digest.algorithm.rawValue) of bytes \(range.lowerBound) to "
                    + "\(range.upperBound - 1) is \(hex), and the server says \(stated.digest.hex) (Content-Digest)",
                hint: "The same request fetches these bytes again", isTransient: isOnDisk)
        }
    }
}
