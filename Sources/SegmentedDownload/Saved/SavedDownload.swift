public import SegmentedDownloadCore
public import SystemPackage

/// An interrupted download, as the manifest beside its destination describes it. <doc:PauseAndResume> compares it with
/// ``ResumeState``.
public struct SavedDownload: Hashable, Sendable {
    /// The destination's path.
    public let path: FilePath
    /// The URL, without credentials. Its query may be secret: print ``sourceDescription`` instead.
    public let source: String
    /// The source without its query, safe to show.
    public let sourceDescription: String
    /// The other sources' URLs, without credentials.
    public let mirrors: [String]
    /// Sources that a list from a server named.
    package let foreignSources: [String]
    /// The file's length.
    public let bytesTotal: Int64
    /// Bytes that the manifest claims. Those that were not synced are checked when the download is resumed.
    public private(set) var bytesDone: Int64
    /// Those of them that are durable.
    public private(set) var bytesDurable: Int64
    /// The parts of the file that the manifest claims, in order.
    package let ranges: [Range<Int64>]
    /// The validator, safe to show; nil if the origin sent none.
    public let validator: String?
    /// The caller's name for the download; nil if it had none.
    public let id: Download.ID?
    /// ``DownloadRequest/userInfo``.
    public let userInfo: [String: String]
    /// How the file was fetched, its digests included.
    public let options: DownloadOptions
    /// Whether the manifest stores options besides digests and priority. Those of earlier versions do not.
    package let hasOptions: Bool
    /// What selected the representation in the run that began it and must be given again, such as `accept-language`; no values.
    public let fieldsNeeded: [String]

    /// Reads the manifest of a destination.
    ///
    /// - Parameter path: The destination's path, or that of its part or manifest.
    /// - Throws: ``DownloadError`` with code `state` if there is no manifest or it is damaged, `file` if it cannot be read.
    public init(at path: FilePath) async throws(DownloadError) {
        try await self.init(at: path, storage: POSIXStorage())
    }

    init(at path: FilePath, storage: any Storage) async throws(DownloadError) {
        let path = try path.text
        self = try await EngineThreads.aside { () throws(DownloadError) in
            try SavedDownload(reading: path, storage: storage)
        }
    }

    /// Reads the manifest of a destination. Blocks the thread.
    package init(reading path: String, storage: any Storage = POSIXStorage()) throws(DownloadError) {
        let destination = Self.destination(of: path)
        let paths = DestinationPaths(path: destination)
        do {
            guard let status = try storage.status(of: paths.manifest), status.kind == .file else {
                throw DownloadError(
                    .state, "there is no manifest \(paths.manifest.printable)",
                    hint: "Give the path of the file, its part or its manifest")
            }
            try storage.checkTrust(status, paths.manifest)
            let file = try storage.open(paths.manifest, .read)
            defer { file.close() }
            try storage.checkTrust(file.status(), paths.manifest)
            self.init(path: destination, try ManifestCodec.decode(try file.contents(limit: 1 << 30)))
            // A crash after the part was renamed may leave the manifest alone.
            if try storage.status(of: paths.part) == nil { (self.bytesDone, self.bytesDurable) = (0, 0) }
        } catch let error as DownloadError {
            throw error
        } catch let error as StorageError {
            throw error.failure
        } catch ManifestCodec.Damage.versionUnknown(let version) {
            throw Surveyor.laterVersion(version, paths)
        } catch {
            throw DownloadError(
                .state, "the manifest \(paths.manifest.printable) is damaged",
                hint: "Fetch the URL again with the same destination")
        }
    }

    private init(path: String, _ manifest: Manifest) {
        self.path = FilePath(path)
        let recorded = manifest.header.recordedSources
        self.source = recorded.first?.url ?? ""
        self.mirrors = recorded.dropFirst().map(\.url)
        self.foreignSources = recorded.filter(\.isForeign).map(\.url)
        self.sourceDescription = (try? SourceURL(self.source).description) ?? SourceURL.withoutSecrets(self.source)
        self.bytesTotal = manifest.header.completeLength
        let claims = (manifest.durable + manifest.pending).settled()
        self.ranges = claims.map(\.range).sorted { $0.lowerBound < $1.lowerBound }
        self.bytesDone = claims.reduce(0) { $0 + $1.length }
        self.bytesDurable = min(manifest.durable.settled().reduce(0) { $0 + $1.length }, self.bytesDone)
        let validator = manifest.header.resource.validator
        self.validator = validator == Validator.none ? nil : "\(validator)"
        self.id = manifest.header.label.id.map { Download.ID(rawValue: $0) }
        self.userInfo = manifest.header.label.userInfo
        self.options = DownloadOptions(manifest)
        self.hasOptions = manifest.header.label.options != nil || manifest.header.label.part != nil
        self.fieldsNeeded = manifest.header.selection?.names ?? []
    }

    /// The destinations in a directory that have a manifest, sorted by name.
    ///
    /// - Throws: ``DownloadError`` with code `file` if the directory cannot be read.
    public static func paths(in directory: FilePath) async throws(DownloadError) -> [FilePath] {
        try await Self.paths(in: directory, storage: POSIXStorage())
    }

    static func paths(in directory: FilePath, storage: any Storage) async throws(DownloadError) -> [FilePath] {
        try await EngineThreads.aside { () throws(DownloadError) in
            try SavedDownload.paths(reading: directory, storage: storage)
        }
    }

    /// The same. Blocks the thread.
    package static func paths(
        reading directory: FilePath, storage: any Storage = POSIXStorage()
    ) throws(DownloadError) -> [FilePath] {
        let directory = try directory.text
        do throws(StorageError) {
            let names = try storage.names(in: directory.isEmpty ? "." : directory)
            return names.filter { $0.hasSuffix(DestinationPaths.manifestSuffix) && $0.utf8.count > 6 }.sorted().map {
                let name = String($0.dropLast(DestinationPaths.manifestSuffix.count))
                return FilePath(DestinationPaths(directory: directory, name: name).destination)
            }
        } catch {
            throw error.failure
        }
    }

    private static func destination(of path: String) -> String {
        for suffix in [DestinationPaths.partSuffix, DestinationPaths.manifestSuffix] where path.hasSuffix(suffix) {
            return String(path.dropLast(suffix.count))
        }
        return path
    }
}
