import SegmentedDownloadCore
public import SystemPackage

/// A partial file of another program that was compared with a server's file, and may become an interrupted download.
///
/// ```swift
/// let adoption = try await client.adoption(of: "file.iso.crdownload", for: request)
/// try await adoption.begin()
/// let result = try await client.download(request)
/// ```
///
/// The comparison covers both ends of every run of bytes and random places, together less than 2 % of them. It detects
/// another file and damage of more than a stretch between two places, which is 64 KiB for partial files of up to 128 MiB
/// and 512 KiB for those of 1 GiB. Shorter damage may stay unnoticed. Give a digest to detect any: if it does not match, the
/// adopted bytes are fetched again.
public struct Adoption: Sendable {
    /// The partial file's path.
    public let path: FilePath
    /// The program whose control file says which bytes are there; nil if there is no such file. Then all bytes that are
    /// no holes count as there.
    public let program: String?
    /// The complete length of the server's file in bytes.
    public let bytesTotal: Int64
    /// The bytes that the other program has written, according to its control file or to the file's length.
    public let bytesFound: Int64
    /// Those of them that are kept. The others are fetched again.
    public let bytesKept: Int64
    /// The bytes that were fetched for the comparison.
    public let bytesCompared: Int64
    /// The number of places that were compared.
    public let placesCompared: Int
    /// The number of those that differ.
    public let placesDiffering: Int

    /// What browsers and other programs append to the name of a file until it is complete.
    private static let suffixes = [".crdownload", ".opdownload", ".partial", ".part", ".aria2", ".st"]

    /// The path of the complete file that a partial file becomes: its own without `.crdownload` and the like.
    public static func destination(of path: FilePath) -> FilePath {
        let text = path.string
        for suffix in Self.suffixes where text.hasSuffix(suffix) {
            let stem = text.dropLast(suffix.count)
            guard !stem.isEmpty, !stem.hasSuffix("/") else { continue }
            return FilePath(String(stem))
        }
        return path
    }

    /// Whether a file may be a part of the server's: it is shorter, or another program's control file is beside it.
    public static func isPartial(_ path: FilePath, of remote: RemoteFile) async -> Bool {
        guard let text = try? path.text, let length = remote.length else { return false }
        return await EngineThreads.aside {
            let storage = POSIXStorage()
            guard let status = try? storage.status(of: text), status.kind == .file else { return false }
            let hasControl = ControlFile.Program.allCases.contains { program in
                (try? storage.status(of: text + program.suffix))?.kind == .file
            }
            return status.length < length || hasControl && status.length == length
        }
    }

    private let part: ForeignPart
    private let resource: RemoteResource
    private let request: DownloadRequest
    private let kept: [Range<Int64>]

    init(
        _ part: ForeignPart, of resource: RemoteResource, length: Int64, for request: DownloadRequest,
        present: [Range<Int64>], kept: [Range<Int64>], places: [AdoptionVerdict.Place]
    ) {
        self.path = FilePath(part.path)
        self.program = part.control?.program.rawValue
        self.bytesTotal = length
        self.bytesFound = present.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
        self.bytesKept = kept.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
        self.bytesCompared = places.reduce(0) { $0 + $1.range.upperBound - $1.range.lowerBound }
        self.placesCompared = places.count
        self.placesDiffering = places.count { !$0.agrees }
        (self.part, self.resource, self.request, self.kept) = (part, resource, request, kept)
    }

    /// Turns the partial file into an interrupted download of the request's destination, in which the bytes that were not
    /// kept are missing.
    ///
    /// The file is renamed, unless it is to be copied. Until then nothing is written to it, and a crash leaves it as it is. The
    /// control file stays; see ``removeControlFile()``.
    ///
    /// - Parameter copying: Whether what is kept is copied, so that the partial file stays as it is even if the download fails
    ///   in the end. The file system then needs room for both. If it is at the destination, the request's
    ///   ``DownloadOptions/ifExists`` must allow the complete file to replace it.
    /// - Throws: ``DownloadError``, leaving the file unchanged: `usage` if the request's destination is not a file, `exists` if the
    ///   destination or an interrupted download of it exists, `file` if the partial file changed since it was compared or is
    ///   in another file system than the destination.
    public func begin(copying: Bool = false) async throws(DownloadError) {
        guard case .file(let destination) = self.request.destination else {
            throw DownloadError(.usage, "an adopted file needs the path of a file as its destination")
        }
        let paths = DestinationPaths(path: try destination.text)
        try await EngineThreads.aside { () async throws(DownloadError) in
            do {
                try await self.begin(paths, id: .random(in: 1 ... .max), copying: copying)
            } catch {
                throw DownloadError(wrapping: error)
            }
        }
    }

    /// Throws if there is an interrupted download of the destination.
    private func checkPart(_ paths: DestinationPaths) throws {
        let storage = self.part.storage
        guard try storage.status(of: paths.part) == nil else { throw Self.isInterrupted(paths) }
        guard try storage.isManifest(paths.manifest) != false else {
            throw DownloadError(
                .exists, "\(paths.manifest.printable) has the manifest's name but is not a manifest",
                remedy: .moveAwayOrChooseName)
        }
    }

    /// Throws if a file of the destination is in the way. That of a browser, which reserves the name with an empty file,
    /// is not.
    private func checkDestination(_ paths: DestinationPaths) throws {
        let storage = self.part.storage
        guard let found = try storage.status(of: paths.destination), !found.isSameFile(as: self.part.status) else {
            return
        }
        guard found.kind == .file, found.length == 0, found.ownership.owner == storage.user else {
            throw DownloadError(
                .exists, "\(paths.destination.printable) exists already", remedy: .moveAwayOrChooseName)
        }
    }

    private func begin(_ paths: DestinationPaths, id: UInt64, copying: Bool) async throws {
        let storage = self.part.storage
        defer { self.part.file.close() }
        try storage.checkWritable(directory: paths.directory)
        guard !copying else { return try await self.copy(to: paths, id: id) }
        try self.checkPart(paths)
        try self.checkDestination(paths)
        let directory = try storage.target(of: paths.directory)
        guard directory?.device == self.part.status.device else {
            throw DownloadError(
                .file, "\(self.part.path.printable) is in another file system than \(paths.destination.printable)",
                hint: "Move it to the directory of the destination first")
        }
        let claims = try self.part.claims(to: self.kept, unless: Latch())
        let part = PartialFile(
            paths: paths, file: self.part.file, storage: storage, header: self.header(id: id, of: self.part.status),
            claims: claims)
        defer { part.close() }
        try part.checkSpace(for: self.bytesTotal)
        try self.part.file.protect()
        try self.part.checkUnchanged()
        // The manifest is written before the rename: without it, the part would be fetched again as a whole.
        try await part.record()
        try self.part.checkUnchanged()
        try storage.renameExclusively(self.part.path, to: paths.part)
        try await storage.synchronize(directory: paths.directory)
        if try storage.status(of: paths.destination)?.length == 0 { try storage.remove(paths.destination) }
    }

    private static func isInterrupted(_ paths: DestinationPaths) -> DownloadError {
        DownloadError(
            .exists, "there is an interrupted download of \(paths.destination.printable) already",
            remedy: .resumeInterrupted)
    }

    /// Creates the part with a copy of what is kept. The partial file is only read.
    private func copy(to paths: DestinationPaths, id: UInt64) async throws {
        let storage = self.part.storage
        try self.checkDestination(paths)
        let finding = try Surveyor(storage: storage).survey(paths, policy: .overwrite)
        guard finding.survey == .nothing else {
            finding.part?.close()
            throw Self.isInterrupted(paths)
        }
        // A run that was killed while it copied leaves a part without a manifest.
        let file = try finding.part?.file ?? PartialFile.createFile(paths, in: storage) {}
        do {
            try file.truncate(to: 0)
            try PartialFile(paths, file: file, storage: storage).checkSpace(for: self.bytesTotal)
            let claims = try self.part.claims(to: self.kept, copyingTo: file, unless: Latch())
            try self.part.checkUnchanged()
            let part = PartialFile(
                paths: paths, file: file, storage: storage, header: self.header(id: id, of: try file.status()),
                claims: claims)
            defer { part.close() }
            try await part.record()
            try await storage.synchronize(directory: paths.directory)
        } catch {
            try? storage.remove(paths.part)
            try? storage.removeManifests(paths)
            file.close()
            throw error
        }
    }

    private func header(id: UInt64, of status: StorageStatus) -> Manifest.Header {
        Manifest.Header(
            id: id, resource: self.resource, completeLength: self.bytesTotal, device: status.device,
            inode: status.inode, bootID: self.part.storage.bootID,
            sources: self.request.recordedSources(reference: .first),
            digests: self.request.digests.map(\.description), label: self.request.label(inheriting: nil))
    }

    /// Removes the other program's control file, if there is one. To be called when the download is complete: a control
    /// file beside a complete file would have the other program fetch it again.
    public func removeControlFile() async throws(DownloadError) {
        try await Self.removeControlFile(of: self.path, in: self.part.storage)
    }

    /// The same for a partial file that an earlier process began to adopt. A file that is not a control file stays.
    public static func removeControlFile(of path: FilePath) async throws(DownloadError) {
        try await Self.removeControlFile(of: path, in: POSIXStorage())
    }

    private static func removeControlFile(
        of path: FilePath, in storage: any Storage
    ) async throws(DownloadError) {
        let path = try path.text
        try await EngineThreads.aside { () throws(DownloadError) in
            do {
                if let control = try ForeignPart.control(of: path, in: storage).path { try storage.remove(control) }
            } catch {
                throw DownloadError(wrapping: error)
            }
        }
    }
}
