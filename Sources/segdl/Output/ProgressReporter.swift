import SegmentedDownload

/// A file of a run.
struct TransferFile: Hashable, Sendable {
    /// The download's id within the run; nil if there is no download.
    var id: Download.ID?
    /// The destination, as far as it is known.
    var path: String

    /// The URL after known redirects, without secrets; nil if there is no request.
    var url: String?
    /// The download's state; nil if there is no download.
    var state: DownloadState?
    /// The values of `--user-info`.
    var userInfo: [String: String] = [:]

    init(_ download: Download) {
        self.id = download.id
        self.path = download.path.string
        self.url = download.request.source.description
        self.state = download.state
        self.userInfo = download.request.userInfo
    }

    /// A file without a download.
    init(id: Download.ID? = nil, path: String) {
        self.id = id
        self.path = path
    }

    /// A file whose request the group refused.
    init(refused request: DownloadRequest) {
        switch request.destination {
        case .file, .stream, .descriptor: self.init(id: request.id, path: request.destination.text)
        case .directory: self.init(id: request.id, path: request.source.description)
        }
        self.url = request.source.description
        self.userInfo = request.userInfo
    }

    /// The file's name, safe to print.
    var name: String { self.path.lastPathComponent.shown }
}

/// Returns the segments of a download at this moment.
typealias SegmentSource = @Sendable () async -> [SegmentStatus]

/// Reports the events of a run's files. Called from many tasks.
protocol ProgressReporter: Sendable {
    /// Called when a download is added to the group.
    ///
    /// - Parameter segments: Returns its segments.
    func begin(_ file: TransferFile, segments: @escaping SegmentSource)
    func report(_ event: DownloadEvent, of file: TransferFile)
    /// Whether the reporter needs an event to be delivered. Those that start or end a file always are, and it may get
    /// others that another reporter needs.
    func wants(_ event: DownloadEvent) -> Bool
    /// Whether ``tick()`` must be called ten times a second.
    var isTicking: Bool { get }
    func tick() async
    /// Called when the terminal was resized.
    func redraw()
    /// Called once, after all events.
    func finish(_ summary: TransferSummary)
}

extension ProgressReporter {
    var isTicking: Bool { false }
    func begin(_ file: TransferFile, segments: @escaping SegmentSource) {}
    func wants(_ event: DownloadEvent) -> Bool { true }
    func tick() async {}
    func redraw() {}
    func finish(_ summary: TransferSummary) {}
}
