import SegmentedDownloadCore
public import SystemPackage

/// The result of verifying a finished file against its extended attribute, and against a length, digests and piece
/// digests that the caller gives.
///
/// The attribute records what was fetched. The file is read once, from the first byte to the last.
public struct FileCheck: Sendable {
    /// An expected digest and the digest found.
    public struct Digest: Hashable, Sendable {
        public let expected: ExpectedDigest
        public let found: String

        public var matches: Bool { self.expected.hex == self.found }
    }

    /// The file's path.
    public let path: FilePath
    /// The file's length in bytes.
    public let length: Int64
    /// The length that the attribute records, in bytes; `nil` if there is no attribute.
    public let lengthFetched: Int64?
    /// The expected length in bytes: the caller's, otherwise the recorded one.
    public let lengthExpected: Int64?
    public let digests: [Digest]
    /// The pieces that are damaged, in order, including what is missing at the end.
    public let damage: [Range<Int64>]
    /// Whether the caller gave piece digests. The attribute is then ignored.
    public let hasPieceDigests: Bool
    /// The blocks that are intact.
    private let claims: [Claim]
    private let record: FinishedRecord?
    /// The file's status when it was read.
    private let status: StorageStatus
    private let storage: any Storage

    /// Whether length, digests and pieces match the expected values.
    public var isGood: Bool {
        self.damage.isEmpty && self.digests.allSatisfy(\.matches) && (self.lengthExpected ?? self.length) == self.length
    }

    /// Reads and verifies a file.
    ///
    /// - Parameters:
    ///   - path: The file's path.
    ///   - digests: The expected digests of the whole file.
    ///   - length: The expected length in bytes.
    ///   - pieces: The expected digests of the file's pieces.
    /// - Throws: ``DownloadError`` with code `file` if the file cannot be read, `state` if there is nothing to verify
    ///   it against, `cancelled` if the task is cancelled.
    public init(
        of path: FilePath, digests: [ExpectedDigest] = [], length: Int64? = nil, pieces: Metalink.PieceDigests? = nil
    ) async throws(DownloadError) {
        let path = try path.text
        self = try await EngineThreads.aside { () throws(DownloadError) in
            do {
                return try FileCheck(reading: path, digests, length, pieces, POSIXStorage())
            } catch {
                throw DownloadError(wrapping: error)
            }
        }
    }

    private init(
        reading path: String, _ digests: [ExpectedDigest], _ lengthKnown: Int64?, _ pieces: Metalink.PieceDigests?,
        _ storage: any Storage
    ) throws {
        guard try storage.status(of: path) != nil || storage.status(of: DestinationPaths(path: path).part) == nil else {
            throw DownloadError(
                .state, "there is no \(path.printable), but an interrupted download of it", remedy: .resumeInterrupted)
        }
        let file = try storage.open(path, .read)
        defer { file.close() }
        let status = try file.status()
        guard status.kind == .file else { throw DownloadError(.file, "\(path.printable) is not a regular file") }
        let length = status.length
        let record = file.attribute(FinishedRecord.attribute).flatMap { FinishedRecord(decoding: $0) }
        if record != nil, digests.isEmpty, pieces == nil { try storage.checkTrust(finished: status, path) }
        guard record != nil || !digests.isEmpty || pieces != nil else {
            throw DownloadError(
                .state, "\(path.printable) has no checksum to verify: segdl did not fetch it, or it was copied",
                remedy: .giveDigest)
        }
        var running = digests.map { RunningDigest($0.algorithm) }
        var blocks = BlockChecksums()
        let lengthExpected = lengthKnown ?? record?.length
        var check = pieces.map { PieceCheck($0, length: lengthExpected) }
        let interruption = Latch()
        let count = try file.read(length: length, unless: interruption) { bytes in
            if Task.isCancelled { interruption.raise() }
            for index in running.indices { running[index].update(bytes) }
            blocks.update(bytes)
            check?.update(bytes)
        }
        guard count == length, try file.status().isUnchanged(since: status) else {
            throw DownloadError(.file, "\(path.printable) changed while it was being read")
        }
        self.status = status
        self.storage = storage
        let claims = blocks.claims
        self.path = FilePath(path)
        self.length = length
        self.lengthFetched = record?.length
        self.lengthExpected = lengthExpected
        self.hasPieceDigests = pieces != nil
        self.record = record
        self.digests = zip(digests, running).map { Digest(expected: $0, found: $1.hex) }
        self.damage = check?.damage ?? record.map { Self.damage(claims, $0, length: length) } ?? []
        let damage = self.damage
        self.claims = claims.filter { claim in
            claim.range.upperBound <= lengthExpected ?? length && !damage.contains { $0.overlaps(claim.range) }
        }
    }

    /// The ranges in which the file differs from what was fetched; the whole file if the attribute has no piece
    /// checksums.
    private static func damage(_ claims: [Claim], _ record: FinishedRecord, length: Int64) -> [Range<Int64>] {
        guard record.length > 0 else { return [] }
        guard !record.pieces.isEmpty else {
            let isSame = length == record.length && claims.combinedCRC(of: length) == record.crc
            return isSame ? [] : [0..<record.length]
        }
        let found = FinishedRecord.pieceRanges(of: record.length).enumerated().filter { number, range in
            let own = claims.filter { range.contains($0.offset) }
            return range.upperBound > length || own.combinedCRCs(of: [range]) != [record.pieces[number]]
        }
        return found.map(\.element).merged()
    }

    // MARK: Repairing

    /// Whether the damage was located, so that only the damaged pieces need to be fetched again.
    public var canRepair: Bool {
        // The piece digests are not stored in the manifest, so a digest of the whole file must verify the result.
        if self.hasPieceDigests { return self.lengthExpected != nil && !self.digests.isEmpty }
        return self.record?.pieces.isEmpty == false && self.record?.length == self.lengthExpected
    }

    /// Turns the file into an interrupted download in which the damaged pieces are missing.
    ///
    /// A request for one of the sources then fetches these pieces. The result is verified against the caller's digests,
    /// or against the CRC-32 of what was fetched if the caller gave no piece digests, and gets its final name again.
    /// Changes made to the file since it was fetched count as damage.
    ///
    /// - Parameters:
    ///   - sources: The URLs to fetch the pieces from.
    ///   - remote: The result of ``DownloadClient/probe(_:)`` for the first source.
    /// - Throws: ``DownloadError``, leaving the file unchanged: `state` if the damage is not located, `integrity` if
    ///   nothing that was fetched is damaged, `changed` if the source has another version of the file, `exists` if there is
    ///   an interrupted download of the file or the file has several hard links, `file` if it cannot be written or
    ///   changed since it was read.
    public func beginRepair(from sources: [SourceURL], as remote: RemoteFile) async throws(DownloadError) {
        try await self.beginRepair(from: sources, as: remote, id: .random(in: 1 ... .max))
    }

    /// How a source's file is certainly another one than that which was fetched, as a clause for a message; nil if it may be
    /// the same.
    package func difference(from remote: RemoteFile) -> String? {
        guard !self.hasPieceDigests, let recorded = self.record?.resource, let current = remote.resource else {
            return nil
        }
        return recorded.verdict(on: current).contradiction
    }

    /// - Parameter id: A random number above zero, the new manifest's id.
    func beginRepair(
        from sources: [SourceURL], as remote: RemoteFile, id: UInt64
    ) async throws(DownloadError) {
        let name = self.path.string.printable
        guard let length = self.lengthExpected, self.canRepair else {
            throw DownloadError(
                .state, "cannot repair \(name): the damaged pieces or the file's digest are unknown",
                remedy: .fetchAgain)
        }
        guard !self.damage.isEmpty || self.length != length else {
            throw DownloadError(
                .integrity,
                "\(name) equals what was downloaded, but not the given digest: the download was wrong",
                remedy: .fetchAgainOrElsewhere)
        }
        guard remote.length == length else {
            let has = remote.length.map { "\($0) bytes" } ?? "a file of unknown length"
            throw DownloadError(
                .changed,
                "\(remote.source) has \(has); the \(self.hasPieceDigests ? "expected" : "recorded") length is \(length) bytes",
                remedy: .fetchAgain)
        }
        // The intact bytes belong to the resource that the attribute records, which may differ from the given source.
        guard let resource = self.hasPieceDigests ? remote.resource : self.record?.resource ?? remote.resource else {
            throw DownloadError(.usage, "the description of \(remote.source) was stored; probe it again")
        }
        if let difference = self.difference(from: remote) {
            throw DownloadError(
                .changed, "\(remote.source) has another version than \(name): \(difference)", remedy: .fetchAgain)
        }
        try await EngineThreads.aside { () async throws(DownloadError) in
            do {
                try await self.beginRepair(length, sources, resource, id: id)
            } catch {
                throw DownloadError(wrapping: error)
            }
        }
    }

    private func beginRepair(
        _ length: Int64, _ sources: [SourceURL], _ resource: RemoteResource, id: UInt64
    ) async throws {
        let storage = self.storage
        let path = self.path.string
        let paths = DestinationPaths(path: path)
        guard try storage.status(of: paths.part) == nil, try storage.status(of: paths.manifest) == nil else {
            throw DownloadError(
                .exists, "there is an interrupted download of \(path.printable) already",
                remedy: .resumeInterrupted)
        }
        let file = try storage.open(path, .update)
        guard try file.tryLock() != .busy else {
            file.close()
            throw DownloadError(.exists, "another process is using \(path.printable)")
        }
        let header = Manifest.Header(
            id: 0, resource: resource, completeLength: length, device: 0, inode: 0, bootID: "", sources: [],
            digests: [])
        let part = PartialFile(
            paths: paths, file: file, storage: storage, header: header, claims: self.claims,
            durableCount: self.claims.count)
        defer { part.close() }
        let status = try file.status()
        guard status.isUnchanged(since: self.status),
            try storage.status(of: path)?.isUnchanged(since: status) == true
        else {
            throw DownloadError(.file, "\(path.printable) changed since it was read")
        }
        guard status.linkCount == 1 else {
            throw DownloadError(
                .exists, "\(path.printable) has several hard links, which the repair would also change",
                hint: "Repair a copy of it, made with cp --preserve=xattr")
        }
        try file.protect()
        // The manifest is written before the rename. Beside a finished file it would be removed; a part without it
        // would be fetched again as a whole.
        let fetched = self.hasPieceDigests ? nil : self.record.map { "crc32=\($0.crc.hex)" }
        try await part.adopt(
            id: id, resource: resource, limit: nil, sources: sources.map(\.string),
            digests: (fetched.map { [$0] } ?? []) + self.digests.map(\.expected.description).filter { $0 != fetched })
        try storage.renameExclusively(paths.destination, to: paths.part)
        try await storage.synchronize(directory: paths.directory)
    }
}

/// Computes the CRC-32 of each block of bytes that arrive in order.
private struct BlockChecksums {
    private(set) var finished: [Claim] = []
    private var crc = CRC32()
    private var start: Int64 = 0
    private var offset: Int64 = 0

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = min(Int64(rest.count), BlockLayout.blockEnd(after: self.offset) - self.offset)
            self.crc.update(UnsafeRawBufferPointer(rebasing: rest.prefix(Int(count))))
            rest = rest.dropFirst(Int(count))
            self.offset += count
            if self.offset == BlockLayout.blockEnd(after: self.start) { self.close() }
        }
    }

    private mutating func close() {
        guard self.offset > self.start else { return }
        self.finished.append(Claim(offset: self.start, length: self.offset - self.start, crc: self.crc))
        self.start = self.offset
        self.crc = CRC32()
    }

    /// The claims for all blocks; the last block may be shorter.
    var claims: [Claim] {
        var closed = self
        closed.close()
        return closed.finished
    }
}
