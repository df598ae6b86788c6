public import SegmentedDownloadCore
public import SystemPackage

/// A paused download, from which it can be resumed, also by another process: store it, and pass it to
/// ``DownloadGroup/add(resuming:_:)``. <doc:PauseAndResume> compares it with ``SavedDownload``.
///
/// It names the part file and holds the options. The bytes and their proofs stay in the files. It holds neither credentials nor
/// fields, which may be secret: pass them again. A URL's query is stored, so treat the state as you would treat the URL. The state
/// of a stream (``Download/isStream``) cannot be resumed.
public struct ResumeState: Codable, Hashable, Sendable {
    /// The download's name in its group.
    public let id: String
    /// Whether the caller chose the name.
    private let isNamed: Bool
    private let recorded: RecordedRequest
    /// Bytes of the file on disk.
    public let bytesDone: Int64
    /// The complete length in bytes; nil if unknown.
    public let bytesTotal: Int64?

    init(_ download: Download) {
        self.id = download.id.rawValue
        self.isNamed = download.request.id != nil
        self.recorded = RecordedRequest(download)
        self.bytesDone = download.snapshot.bytesDone
        self.bytesTotal = download.snapshot.bytesTotal
    }

    /// The URL, without credentials. Its query may be secret: do not print it.
    public var source: String { self.recorded.source }

    /// The destination, as far as it was known. If it is relative, which it is only if the group's directory is, it begins in
    /// the process's working directory.
    public var path: FilePath { FilePath(self.recorded.path) }

    /// ``DownloadRequest/userInfo``.
    public var userInfo: [String: String] { self.recorded.userInfo }

    /// The request's options. Changes that ``Download/update(priority:)`` and the like made are not included.
    public var options: DownloadOptions { self.recorded.options }

    /// The request that resumes it. Its destination is resolved already: another group must not resolve it again.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the state was altered so that it cannot be fetched.
    package func request() throws(DownloadError) -> DownloadRequest {
        var request = try self.recorded.request()
        request.id = self.isNamed ? Download.ID(rawValue: self.id) : nil
        request.options = request.options.resuming
        // Without bytes, a part at its destination may be of another download.
        request.resumesPart = self.bytesDone > 0
        return request
    }

    private enum CodingKeys: CodingKey {
        case id, isNamed, bytesDone, bytesTotal
    }

    /// The request's properties stand beside the state's own keys, as in earlier versions.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.id = try values.decode(String.self, forKey: .id)
        self.isNamed = try values.decode(Bool.self, forKey: .isNamed)
        self.bytesDone = try values.decode(Int64.self, forKey: .bytesDone)
        self.bytesTotal = try values.decodeIfPresent(Int64.self, forKey: .bytesTotal)
        self.recorded = try RecordedRequest(from: decoder)
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(self.id, forKey: .id)
        try values.encode(self.isNamed, forKey: .isNamed)
        try values.encode(self.bytesDone, forKey: .bytesDone)
        try values.encodeIfPresent(self.bytesTotal, forKey: .bytesTotal)
        try self.recorded.encode(to: encoder)
    }
}

extension DownloadOptions {
    /// The options of a download that is resumed: it was asked to start over once, not each time.
    package var resuming: DownloadOptions {
        var options = self
        if options.continuation == .no { options.continuation = .auto }
        return options
    }
}

extension DownloadGroup {
    /// Adds a download that was paused elsewhere or earlier. The files on disk decide which bytes are fetched, not the state: if
    /// nothing is left, the file is fetched from the start, unless ``DownloadOptions/continuation`` is `must`.
    ///
    /// - Parameter change: Sets what the state does not store, such as fields.
    /// - Throws: As ``add(_:)``.
    @discardableResult
    public func add(
        resuming state: ResumeState, _ change: (inout DownloadRequest) -> Void = { _ in }
    ) throws(DownloadError) -> Download {
        var request = try state.request()
        change(&request)
        // The path is already resolved against the directory of its first group.
        return try self.add(request, restingAt: nil, isResolved: true)
    }
}
