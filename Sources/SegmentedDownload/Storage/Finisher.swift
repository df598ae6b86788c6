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
    package let replaces: Bool

    /// What was found out about the finished file.
    package struct Result: Hashable, Sendable {
        package var length: Int64
        package var crc: CRC32
    }

    /// - Parameter interruption: once raised, computing digests ends with a `cancelled` failure, nothing lost.
    func finish(length: Int64, unless interruption: Latch) async throws -> Result {
        let claims = self.part.settledClaims
        guard let crc = claims.combinedCRC(of: length) else {
            throw Failure(.internal, "\(length) bytes were to be written, but the claims do not cover them")
        }
        try self.checkIdentity(length: length)
        try self.checkHoles(claims, length: length)
        try self.checkDigests(length: length, crc: crc, unless: interruption)
        if !self.resource.endsWithConnection {
            let record = FinishedRecord(
                resource: self.resource, length: length, crc: crc, modified: try self.part.file.status().modified)
            // Not every file system has attributes; then the file just cannot vouch for itself later.
            _ = try self.part.file.setAttribute(FinishedRecord.attribute, record.encoded)
        }
        try await self.part.synchronize(metadata: true)
        try self.checkIdentity(length: length)
        try self.rename()
        self.part.markPlaced()
        try await self.synchronizeDirectory()
        try self.part.removeManifest()
        self.part.close()
        return Result(length: length, crc: crc)
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

    private func rename() throws {
        do throws(StorageError) {
            try self.storage.rename(self.part.paths.part, to: self.part.paths.destination, replacing: self.replaces)
        } catch {
            guard error.condition == .exists else { throw error }
            throw Failure(
                .exists, "\(self.part.paths.destination.printable) has come to exist; the part file stays as it is",
                hint: "Keep both with --if-exists rename, or replace it with --if-exists overwrite")
        }
    }

    private func synchronizeDirectory() async throws {
        do throws(StorageError) {
            try await self.storage.synchronize(directory: self.part.paths.directory)
        } catch {
            let failure = error.failure
            throw Failure(
                failure.code,
                "\(self.part.paths.destination.printable) is whole and in place, but its name may not outlive a crash: "
                    + failure.message,
                hint: "Run the same command again, which makes sure of it", errno: failure.errno)
        }
    }

    /// The path must still name the file we wrote, at its length: others may have cut, moved or deleted it.
    private func checkIdentity(length: Int64) throws {
        let status = try self.part.file.status()
        guard status.linkCount > 0, let named = try self.storage.status(of: self.part.paths.part),
            named.device == status.device, named.inode == status.inode
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

    private func checkDigests(length: Int64, crc: CRC32, unless interruption: Latch) throws {
        // Where only the CRC-32 is wanted, nothing is read again: it was combined from the blocks'.
        if self.digests.allSatisfy({ $0.algorithm == .crc32 }) {
            for digest in self.digests { try self.check(digest, crc.hex) }
            return
        }
        let hexes = try self.part.file.digests(self.digests.map(\.algorithm), length: length, unless: interruption)
        for (digest, hex) in zip(self.digests, hexes) { try self.check(digest, hex) }
    }

    private func check(_ digest: ExpectedDigest, _ hex: String) throws {
        guard digest.hex == hex else {
            throw Failure(
                .integrity, "the file's \(digest.algorithm.rawValue) is \(hex), not \(digest.hex)",
                hint: "Start anew with --continue no")
        }
    }
}
