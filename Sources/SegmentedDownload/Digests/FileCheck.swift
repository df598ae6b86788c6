import SegmentedDownloadCore

/// A finished file, read from its first byte to its last and held against what is known of it: what was fetched, as the file itself
/// says in its extended attribute, and what the caller knows, such as digests of it or of its pieces.
public struct FileCheck: Sendable {
    /// A digest as it should be, and as it is.
    public struct Digest: Hashable, Sendable {
        public let expected: ExpectedDigest
        public let found: String

        public var isRight: Bool { self.expected.hex == self.found }
    }

    public let path: String
    /// Bytes it has.
    public let length: Int64
    /// Bytes it had when it was fetched; absent where it does not say.
    public let lengthFetched: Int64?
    /// Bytes that it should have: as the caller knows, else as many as were fetched.
    public let lengthExpected: Int64?
    public let digests: [Digest]
    /// The pieces that are not as they should be, in order, and what is missing at the end.
    public let damage: [Range<Int64>]
    /// Whether the caller knows the pieces, and not only the file itself: then what was fetched counts for nothing.
    public let knowsPieces: Bool
    /// What is right, block by block.
    private let claims: [Claim]
    private let record: FinishedRecord?
    /// The file as it was when it was read.
    private let status: StorageStatus

    /// Whether all that is known of it is so.
    public var isGood: Bool {
        self.damage.isEmpty && self.digests.allSatisfy(\.isRight) && (self.lengthExpected ?? self.length) == self.length
    }

    /// Reads a file.
    ///
    /// - Parameters:
    ///   - digests: Those that it should have.
    ///   - length: How many bytes it should have.
    ///   - pieces: Those that its pieces should have.
    /// - Throws: ``DownloadError``: `file` if it cannot be read, `state` if there is nothing to hold it against.
    public init(
        of path: String, digests: [ExpectedDigest] = [], length: Int64? = nil, pieces: Metalink.PieceDigests? = nil
    ) throws(DownloadError) {
        do {
            try self.init(reading: path, digests, length, pieces)
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    private init(
        reading path: String, _ digests: [ExpectedDigest], _ lengthKnown: Int64?, _ pieces: Metalink.PieceDigests?
    ) throws {
        let file = try POSIXStorage().open(path, .read)
        defer { file.close() }
        let status = try file.status()
        guard status.kind == .file else { throw Failure(.file, "\(path.printable) is no regular file") }
        let length = status.length
        let record = file.attribute(FinishedRecord.attribute).flatMap { FinishedRecord(decoding: $0) }
        if record != nil, digests.isEmpty, pieces == nil { try POSIXStorage().checkTrust(status, path) }
        guard record != nil || !digests.isEmpty || pieces != nil else {
            throw Failure(
                .state, "\(path.printable) does not say what it should be: segdl has not fetched it, or it was copied",
                hint: "Give its digest with --checksum")
        }
        var running = digests.map { RunningDigest($0.algorithm) }
        var blocks = BlockChecksums()
        let lengthExpected = lengthKnown ?? record?.length
        var check = pieces.map { PieceCheck($0, length: lengthExpected) }
        let count = try file.read(length: length) { bytes in
            for index in running.indices { running[index].update(bytes) }
            blocks.update(bytes)
            check?.update(bytes)
        }
        guard count == length, try file.status().isSame(as: status) else {
            throw Failure(.file, "\(path.printable) was changed while it was being read")
        }
        self.status = status
        let claims = blocks.claims
        self.path = path
        self.length = length
        self.lengthFetched = record?.length
        self.lengthExpected = lengthExpected
        self.knowsPieces = pieces != nil
        self.record = record
        self.digests = zip(digests, running).map { Digest(expected: $0, found: $1.hex) }
        self.damage = check?.damage ?? record.map { Self.damage(claims, $0, length: length) } ?? []
        let damage = self.damage
        self.claims = claims.filter { claim in
            claim.range.upperBound <= lengthExpected ?? length && !damage.contains { $0.overlaps(claim.range) }
        }
    }

    /// Where a file differs from what was fetched. Without CRCs of its pieces it does so as a whole.
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

    /// Whether damage was found where it is, so that only that need be fetched again.
    public var canRepair: Bool {
        // What comes is held to a digest: those of the pieces are not known any more once the download goes on.
        if self.knowsPieces { return self.lengthExpected != nil && !self.digests.isEmpty }
        return self.record?.pieces.isEmpty == false && self.record?.length == self.lengthExpected
    }

    /// Makes an interrupted download of it, in which what is damaged is missing: a request for one of the sources that goes on with it
    /// makes it whole, and is held to the CRC-32 of what was fetched, or to the digests that the caller knows if he knows the pieces
    /// too. The file has its final name again once it is right.
    ///
    /// What was written into the file since it was fetched counts as damage.
    ///
    /// - Parameter remote: what the first of the sources has, as ``DownloadClient/probe(_:)`` found it.
    /// - Throws: ``DownloadError``, the file being as it was: `state` if it is not known where the damage is, `integrity` if nothing is
    ///   damaged that was fetched, `changed` if the source has a file of another length, `exists` if there is an interrupted download
    ///   of it already, or it has other names, `file` if it cannot be written or was changed since it was read.
    public func beginRepair(from sources: [SourceURL], as remote: RemoteFile) async throws(DownloadError) {
        guard let length = self.lengthExpected, self.canRepair else {
            throw DownloadError(
                .state, "it is not known where \(self.path.printable) is damaged, or not what it should be as a whole",
                hint: "Fetch it anew with --if-exists overwrite")
        }
        guard !self.damage.isEmpty || self.length != length else {
            throw DownloadError(
                .integrity, "\(self.path.printable) is what was fetched, and has another digest than it should",
                hint: "Fetch it anew with --if-exists overwrite, or from another server")
        }
        guard remote.length == length else {
            let has = remote.length.map { "\($0) bytes" } ?? "a file of unknown length"
            throw DownloadError(
                .changed,
                "\(remote.source) has \(has), and \(self.knowsPieces ? "it should have" : "what was fetched had") \(length)",
                hint: "Fetch it anew with --if-exists overwrite")
        }
        do {
            // What is right in the file is of the resource that it was fetched from, which the source need not be.
            let resource = self.knowsPieces ? remote.resource : self.record?.resource ?? remote.resource
            try await self.beginRepair(length, sources, resource, POSIXStorage())
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    private func beginRepair(
        _ length: Int64, _ sources: [SourceURL], _ resource: RemoteResource, _ storage: POSIXStorage
    ) async throws {
        let paths = DestinationPaths(path: self.path)
        guard try storage.status(of: paths.part) == nil, try storage.status(of: paths.manifest) == nil else {
            throw Failure(
                .exists, "there is an interrupted download of \(self.path.printable) already",
                hint: "Go on with it: segdl resume \(self.path.printable)")
        }
        let file = try storage.open(self.path, .update)
        guard try file.tryLock() != .busy else {
            file.close()
            throw Failure(.exists, "another process has \(self.path.printable)")
        }
        let header = Manifest.Header(
            id: 0, resource: resource, completeLength: length, device: 0, inode: 0, bootID: "", sources: [],
            digests: [])
        let part = PartialFile(
            paths: paths, file: file, storage: storage, header: header, claims: self.claims,
            durableCount: self.claims.count)
        defer { part.close() }
        let status = try file.status()
        guard status.isSame(as: self.status), try storage.status(of: self.path)?.isSame(as: status) == true else {
            throw Failure(.file, "\(self.path.printable) was changed since it was read")
        }
        guard status.linkCount == 1 else {
            throw Failure(
                .exists, "\(self.path.printable) has other names, which would be repaired too, or not",
                hint: "Make a copy of it, and repair that: cp --preserve=xattr")
        }
        try part.protect()
        // The manifest first: beside a finished file it is cleared away, and a part without one would be fetched whole.
        let fetched = self.knowsPieces ? nil : self.record.map { "crc32=\($0.crc.hex)" }
        try await part.adopt(
            id: .random(in: 1 ... .max), resource: resource, limit: nil, sources: sources.map(\.string),
            digests: (fetched.map { [$0] } ?? []) + self.digests.map(\.expected.description).filter { $0 != fetched })
        try storage.rename(paths.destination, to: paths.part, replacing: false)
        try await storage.synchronize(directory: paths.directory)
    }
}

/// The CRC-32 of each block of bytes that come in order.
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

    /// All blocks, the last one perhaps shorter.
    var claims: [Claim] {
        var closed = self
        closed.close()
        return closed.finished
    }
}
