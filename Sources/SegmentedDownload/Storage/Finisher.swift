package import SegmentedDownloadCore

/// Turns a part file whose bytes are all there into the destination: verifies, syncs, renames, and only then forgets.
///
/// A crash between any two steps leaves something the next run ends well: before the rename a complete part with its
/// manifest, after it a finished file that knows itself by its attribute.
package struct Finisher: Sendable {
    package let storage: any Storage
    package let part: PartialFile
    package let resource: RemoteResource
    package let digests: [ExpectedDigest]
    /// Digests that are wanted whatever they are.
    var computedDigests: [ExpectedDigest.Algorithm] = []
    package let replaces: Bool
    /// Further names for the destination, by number from 1, where its own may be taken; absent if only its own will do.
    var alternative: (@Sendable (Int) -> DestinationPaths?)?
    /// What the destination must still be for it to be replaced, if that matters.
    var replaceable: StorageStatus?
    /// Whether the file gets the date that the server says.
    let keepsRemoteTime: Bool

    /// What was found out about the finished file.
    package struct Result: Hashable, Sendable {
        package var length: Int64
        package var crc: CRC32
        /// Where it was placed; absent if its bytes were handed on.
        var paths: DestinationPaths?
        /// What was placed there.
        var file: StorageStatus?
        /// The digests that were expected or wanted.
        var hexes: [ExpectedDigest.Algorithm: String] = [:]

        /// Those that were not expected, in an order of their own.
        func computed(besides expected: [ExpectedDigest]) -> [ExpectedDigest] {
            ExpectedDigest.Algorithm.allCases.compactMap { algorithm in
                guard algorithm != .crc32, !expected.contains(where: { $0.algorithm == algorithm }) else { return nil }
                return self.hexes[algorithm].flatMap { ExpectedDigest(algorithm, hex: $0) }
            }
        }
    }

    /// - Parameter interruption: once raised, computing digests ends with a `cancelled` failure, nothing lost.
    func finish(length: Int64, unless interruption: Latch) async throws -> Result {
        let (claims, crc) = try self.settle(length: length)
        try self.checkIdentity(length: length)
        try self.checkHoles(claims, length: length)
        let computed = try await self.part.reader?.finish(length: length, unless: interruption) ?? [:]
        let hexes = try self.checkDigests(computed, length: length, crc: crc, unless: interruption)
        if self.keepsRemoteTime, let date = self.resource.validator.lastModified {
            try self.part.file.setModified(date.secondsSinceEpoch)
        }
        try self.leaveRecord(claims, length: length, crc: crc)
        if self.part.syncPolicy != .none { try await self.part.synchronize(metadata: true) }
        try self.checkIdentity(length: length)
        let (paths, file) = try await self.rename()
        self.part.markPlaced()
        if self.part.syncPolicy != .none { try await self.synchronizeDirectory(of: paths) }
        // The manifest goes last: by it the next run sees that something was left to delete.
        try self.storage.removeSetAside(of: self.part.paths)
        try self.part.removeManifest()
        self.part.close()
        return Result(length: length, crc: crc, paths: paths, file: file, hexes: hexes)
    }

    /// Waits until the last byte was handed on, and verifies what was.
    func handOn(length: Int64, unless interruption: Latch) async throws -> Result {
        let (_, crc) = try self.settle(length: length)
        let computed = try await self.part.reader?.finish(length: length, unless: interruption) ?? [:]
        guard self.part.reader?.isSpoiled == false else {
            throw Failure(.integrity, "what was handed on turned out to be of another file than the rest")
        }
        let hexes = try self.checkDigests(computed, length: length, crc: crc, unless: interruption)
        self.part.close()
        return Result(length: length, crc: crc, hexes: hexes)
    }

    private func settle(length: Int64) throws -> (claims: [Claim], crc: CRC32) {
        let claims = self.part.settledClaims
        guard let crc = claims.combinedCRC(of: length) else {
            throw Failure(.internal, "\(length) bytes were to be written, but the claims do not cover them")
        }
        return (claims, crc)
    }

    /// Has the file say what it is. Not every file system has attributes, or room for long ones: then it can vouch for less of itself
    /// later, but never says what an earlier file of that inode was.
    private func leaveRecord(_ claims: [Claim], length: Int64, crc: CRC32) throws {
        let file = self.part.file
        if !self.resource.endsWithConnection {
            var record = FinishedRecord(
                resource: self.resource, length: length, crc: crc, modified: try file.status().modified,
                pieces: claims.combinedCRCs(of: FinishedRecord.pieceRanges(of: length)) ?? [],
                salt: self.part.header.id)
            if try file.setAttribute(FinishedRecord.attribute, record.encoded) { return }
            record.pieces = []
            if try file.setAttribute(FinishedRecord.attribute, record.encoded) { return }
        }
        try file.removeAttribute(FinishedRecord.attribute)
        try self.disarmRecord(length: length)
    }

    /// Makes sure that an attribute which could not be removed is not taken for this file's: a record counts only for a file of its
    /// length, last changed when it says, or with its CRC-32.
    private func disarmRecord(length: Int64) throws {
        let file = self.part.file
        guard let stale = file.attribute(FinishedRecord.attribute).flatMap({ FinishedRecord(decoding: $0) }),
            stale.length == length, stale.modified == (try file.status().modified)
        else { return }
        try file.setModified(stale.modified / 1_000_000_000 + 1)
    }

    /// A file somebody cut grows again under later writes, with zeros where its bytes were: those show as holes.
    private func checkHoles(_ claims: [Claim], length: Int64) throws {
        guard try self.part.file.firstHole() < length else { return }
        for claim in claims where try !self.part.file.holds(claim) {
            self.part.distrust()
            throw Failure(
                .integrity, "byte \(claim.offset) and those behind it are not on disk as they were written",
                hint: "Run the same command again: what is missing is fetched anew", isTransient: true)
        }
    }

    /// Gives the part its name; returns which.
    private func rename() async throws -> (DestinationPaths, StorageStatus) {
        if let replaceable, let found = try self.storage.status(of: self.part.paths.destination),
            !found.isSame(as: replaceable)
        {
            throw Failure(
                .exists,
                "\(self.part.paths.destination.printable) was changed while the file was fetched; the part stays as it is",
                hint: "Keep both with --if-exists rename, or replace it with --if-exists overwrite")
        }
        let own = try self.part.file.status()
        let paths = try await self.place()
        // In a directory that others may write to, the part's name may have been another file's for a moment.
        var found: StorageStatus? = own
        do throws(StorageError) {
            found = try self.storage.status(of: paths.destination)
        } catch {
            // The file is in place: that it cannot be looked at is no failure.
        }
        guard found?.isSameFile(as: own) == true else {
            throw Failure(
                .file, "\(paths.destination.printable) was replaced by another program while it was put in place")
        }
        return (paths, own)
    }

    private func place() async throws -> DestinationPaths {
        if try await self.tryRename(to: self.part.paths) { return self.part.paths }
        var number = 1
        while let paths = self.alternative?(number) {
            // A name that another process fetches for is left to it.
            if try self.storage.status(of: paths.part) == nil, try await self.tryRename(to: paths) { return paths }
            number += 1
        }
        throw Failure(
            .exists, "\(self.part.paths.destination.printable) has come to exist; the part file stays as it is",
            hint: "Keep both with --if-exists rename, or replace it with --if-exists overwrite")
    }

    /// Whether the part has that name now; not if something else has it.
    private func tryRename(to paths: DestinationPaths) async throws(StorageError) -> Bool {
        do throws(StorageError) {
            try self.storage.rename(self.part.paths.part, to: paths.destination, replacing: self.replaces)
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
            return false
        }
    }

    private func synchronizeDirectory(of paths: DestinationPaths) async throws {
        do throws(StorageError) {
            try await self.storage.synchronize(directory: paths.directory)
        } catch {
            let failure = error.failure
            throw Failure(
                failure.code,
                "\(paths.destination.printable) is whole and in place, but its name may not outlive a crash: "
                    + failure.message,
                hint: "Run the same command again, which makes sure of it", errno: failure.errno)
        }
    }

    /// The path must still name the file we wrote, at its length: others may have cut, moved or deleted it.
    private func checkIdentity(length: Int64) throws {
        let status = try self.part.file.status()
        guard status.linkCount > 0,
            try self.storage.status(of: self.part.paths.part)?.isSameFile(as: status) == true
        else {
            throw Failure(.file, "\(self.part.paths.part.printable) was deleted or replaced while it was being written")
        }
        guard status.length >= length else {
            self.part.distrust()
            throw Failure(
                .integrity,
                "\(self.part.paths.part.printable) was cut to \(status.length) of \(length) bytes by somebody",
                hint: "Run the same command again: what is missing is fetched anew", isTransient: true)
        }
        if status.length > length {
            try self.part.file.truncate(to: length)
        }
    }

    /// - Parameter computed: those that were computed while the file was fetched.
    private func checkDigests(
        _ computed: [ExpectedDigest.Algorithm: String], length: Int64, crc: CRC32, unless interruption: Latch
    ) throws -> [ExpectedDigest.Algorithm: String] {
        var hexes = computed
        // Nothing is read for the CRC-32: it was combined from the blocks'.
        hexes[.crc32] = crc.hex
        let others = (self.digests.map(\.algorithm) + self.computedDigests).filter { hexes[$0] == nil }
        if !others.isEmpty {
            let read = try self.part.file.digests(others, length: length, unless: interruption)
            hexes.merge(zip(others, read)) { first, _ in first }
        }
        for digest in self.digests { try self.check(digest, hexes[digest.algorithm] ?? "") }
        return hexes
    }

    private func check(_ digest: ExpectedDigest, _ hex: String) throws {
        guard digest.hex == hex else {
            try self.part.reject()
            throw Failure(
                .integrity, "the file's \(digest.algorithm.rawValue) is \(hex), not \(digest.hex)",
                hint: "Start anew with --continue no")
        }
    }
}
