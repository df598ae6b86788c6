import SegmentedDownloadCore

/// What a paused download can be taken up from, by another process too: store it, and hand it to
/// ``DownloadGroup/add(resuming:_:)``.
///
/// It names the part file and says how to go on; the bytes and what proves them stay in the files themselves. It holds neither
/// user names and passwords nor fields, which may be secrets too: whoever goes on gives them again. A URL's query is kept, so
/// treat it as you would the URL.
public struct ResumeState: Codable, Hashable, Sendable {
    /// The download's name in the group it comes from.
    public let id: String
    /// Whether the caller chose the name.
    private let isNamed: Bool
    /// Without user name and password.
    public let source: String
    private let mirrors: [String]
    /// Absent in states of before.
    private let foreignSources: [String]?
    /// The destination, as far as it was known.
    public let path: String
    /// Set while the response had not yet named the file.
    private let directory: String?
    private let nameTemplate: String?
    /// As the request had it.
    public let userInfo: [String: String]
    /// As the request had it; not what it was changed to since.
    public let priority: Double
    private let bytesPerSecond: Int64?
    private let segments: Int?
    private let splitLengthMinimum: Int64?
    private let continuation: DownloadRequest.Continuation
    private let onChange: DownloadRequest.ChangePolicy
    private let ifExists: DownloadRequest.ExistingFilePolicy
    private let digests: [String]
    private let retries: Int?
    private let stallTimeout: Duration
    private let headTimeout: Duration
    private let timeLimit: Duration?
    private let lengthMaximum: Int64
    private let lengthExpected: Int64?
    private let createsDirectories: Bool
    private let allocates: Bool
    private let syncPolicy: SyncPolicy?
    /// Bytes of the file that were there.
    public let bytesDone: Int64
    /// Absent if unknown.
    public let bytesTotal: Int64?

    init(_ download: Download) {
        let request = download.request
        self.id = download.id.rawValue
        self.isNamed = request.id != nil
        self.source = request.source.string
        self.mirrors = request.mirrors.map(\.string)
        self.foreignSources = request.foreignSources.map(\.string).sorted()
        self.path = download.path
        switch request.destination {
        case .file, .descriptor: (self.directory, self.nameTemplate) = (nil, nil)
        case .directory(let directory, let template):
            (self.directory, self.nameTemplate) = download.job.hasName ? (nil, nil) : (directory, template?.text)
        }
        self.userInfo = request.userInfo
        self.priority = request.priority
        self.bytesPerSecond = request.bytesPerSecond
        self.segments = if case .exactly(let count) = request.segments { count } else { nil }
        self.splitLengthMinimum = request.splitLengthMinimum
        self.continuation = request.continuation
        self.onChange = request.onChange
        self.ifExists = request.ifExists
        self.digests = request.digests.map(\.description)
        self.retries = request.retries
        self.stallTimeout = request.stallTimeout
        self.headTimeout = request.headTimeout
        self.timeLimit = request.timeLimit
        self.lengthMaximum = request.lengthMaximum
        self.lengthExpected = request.lengthExpected
        self.createsDirectories = request.createsDirectories
        self.allocates = request.allocates
        self.syncPolicy = request.syncPolicy
        self.bytesDone = download.snapshot.bytesDone
        self.bytesTotal = download.snapshot.bytesTotal
    }

    /// The request that goes on with it.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if it was altered into what nobody can fetch.
    public func request() throws(DownloadError) -> DownloadRequest {
        let destination: DownloadRequest.Destination
        if let directory {
            var template: NameTemplate?
            if let text = self.nameTemplate { template = try NameTemplate(text) }
            destination = .directory(directory, name: template)
        } else {
            destination = .file(self.path)
        }
        var request = DownloadRequest(try SourceURL(self.source), to: destination)
        for mirror in self.mirrors { request.mirrors.append(try SourceURL(mirror)) }
        for source in self.foreignSources ?? [] { request.foreignSources.insert(try SourceURL(source)) }
        request.id = self.isNamed ? Download.ID(rawValue: self.id) : nil
        request.userInfo = self.userInfo
        request.priority = self.priority
        request.bytesPerSecond = self.bytesPerSecond
        request.segments = self.segments.map { .exactly($0) } ?? .automatic
        request.splitLengthMinimum = self.splitLengthMinimum
        // That was for the first time: what came of it is to be gone on with.
        request.continuation = self.continuation == .no ? .auto : self.continuation
        request.onChange = self.onChange
        request.ifExists = self.ifExists
        for text in self.digests {
            guard let digest = ExpectedDigest(text) else {
                throw DownloadError(.usage, "\"\(text.printable)\" is no digest")
            }
            request.digests.append(digest)
        }
        request.retries = self.retries
        request.stallTimeout = self.stallTimeout
        request.headTimeout = self.headTimeout
        request.timeLimit = self.timeLimit
        request.lengthMaximum = self.lengthMaximum
        request.lengthExpected = self.lengthExpected
        request.createsDirectories = self.createsDirectories
        request.allocates = self.allocates
        request.syncPolicy = self.syncPolicy ?? .checkpoint
        return request
    }
}

extension DownloadRequest.Continuation: Codable {}
extension DownloadRequest.ChangePolicy: Codable {}
extension DownloadRequest.ExistingFilePolicy: Codable {}

extension DownloadGroup {
    /// Adds what was paused elsewhere or earlier, to go on at its turn. What is on disk decides what is fetched, not what the state
    /// says: where nothing is left the file is begun anew, unless its ``DownloadRequest/continuation`` is `must`.
    ///
    /// - Parameter change: Gives what the state does not keep, such as fields.
    /// - Throws: As ``add(_:)``.
    @discardableResult
    public func add(
        resuming state: ResumeState, _ change: (inout DownloadRequest) -> Void = { _ in }
    ) throws(DownloadError) -> Download {
        var request = try state.request()
        change(&request)
        // Its path is what the group that it comes from had resolved.
        return try self.add(request, restingAt: nil, isResolved: true)
    }
}
