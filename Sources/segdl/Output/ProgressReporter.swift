import SegmentedDownload

/// One of the files that a run is about.
struct TransferFile: Hashable, Sendable {
    /// The download's name within the run, absent if it never became a download.
    var id: Download.ID?
    /// The destination, as far as it is known.
    var path: String

    /// Where it comes from, after redirects as far as they are known, without secrets; absent if it never became a download.
    var url: String?
    /// Where it stands, absent if it never became a download.
    var state: DownloadState?
    /// What the caller wants to find again.
    var userInfo: [String: String] = [:]

    init(_ download: Download) {
        self.id = download.id
        self.path = download.path
        self.url = download.request.source.description
        self.state = download.state
        self.userInfo = download.request.userInfo
    }

    /// One that never became a download.
    init(id: Download.ID? = nil, path: String) {
        self.id = id
        self.path = path
    }

    /// One that the group did not take.
    init(refused request: DownloadRequest) {
        switch request.destination {
        case .file(let path): self.init(id: request.id, path: path)
        case .directory: self.init(id: request.id, path: request.source.description)
        case .descriptor: self.init(id: request.id, path: "-")
        }
        self.url = request.source.description
        self.userInfo = request.userInfo
    }

    /// The file's name, safe to show.
    var name: String { self.path.lastPathComponent.shown }
}

/// Tells someone how the files of a run are doing. Called from many tasks.
protocol ProgressReporter: Sendable {
    /// This one is fetched once its turn has come.
    func begin(_ download: Download)
    func report(_ event: DownloadEvent, of file: TransferFile)
    /// Whether ``tick()`` is to be called, ten times a second.
    var isTicking: Bool { get }
    /// Time has passed.
    func tick() async
    /// The terminal changed.
    func redraw()
    /// Nothing follows.
    func finish(_ summary: TransferSummary)
}

extension ProgressReporter {
    var isTicking: Bool { false }
    func begin(_ download: Download) {}
    func tick() async {}
    func redraw() {}
    func finish(_ summary: TransferSummary) {}
}
