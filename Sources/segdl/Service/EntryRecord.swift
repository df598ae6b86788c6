import SegmentedDownload
import SegmentedDownloadService

/// An entry of the queue or of its history, as the service's API writes it. Unknown values are absent.
struct EntryRecord: Codable, Hashable, Sendable {
    /// Why an entry failed.
    struct Failure: Codable, Hashable, Sendable {
        var code: String
        var exit: Int32
        var message: String
        var hint: String?
        var status: Int?
    }

    var id: String
    /// `waiting`, `active`, `paused`, `failed` or `cancelling`; in the history `completed`, `failed` or `cancelled`.
    var state: String
    /// Without user name, password and query.
    var url: String
    var mirrors: [String]?
    /// The destination, as far as it is known.
    var path: String
    var bytesDone: Int64?
    var bytesTotal: Int64?
    /// In bytes per second.
    var rate: Double?
    /// In seconds.
    var eta: Double?
    var connections: Int?
    var attempts: Int?
    var priority: Double?
    /// When it was added, in seconds since 1970.
    var added: Int64?
    /// When it ended, in seconds since 1970.
    var ended: Int64?
    var error: Failure?
    var userInfo: [String: String]?
    /// The parts of a running file. Only for one entry.
    var segments: [SegmentStatus]?

    private enum CodingKeys: String, CodingKey {
        case id, state, url, mirrors, path, rate, eta, connections, attempts, priority, added, ended, error, segments
        case bytesDone = "bytes_done"
        case bytesTotal = "bytes_total"
        case userInfo = "user_info"
    }

    init(_ entry: QueueEntry) {
        let request = entry.request
        self.id = entry.id.rawValue
        self.state = entry.state.rawValue
        self.url = request.source.description
        self.mirrors = request.mirrors.isEmpty ? nil : request.mirrors.map(\.description)
        self.path = Self.path(of: request)
        if let progress = entry.progress {
            self.bytesDone = progress.bytesDone
            self.bytesTotal = progress.bytesTotal
            if entry.state == .active {
                self.rate = progress.rate.map { $0.rounded() }
                self.eta = progress.timeLeft.map { Seconds($0).rounded }
                self.connections = progress.connections
            }
        }
        self.attempts = entry.attempts
        self.priority = request.priority
        self.added = entry.added
        self.error = entry.error.map { Failure($0) }
        self.userInfo = request.userInfo.isEmpty ? nil : request.userInfo
    }

    init(_ row: HistoryEntry) {
        self.id = row.id
        self.state = row.outcome.rawValue
        self.url = row.url
        self.path = row.path.string
        self.bytesDone = row.bytes
        self.bytesTotal = row.outcome == .completed ? row.bytes : nil
        self.ended = row.time
        self.userInfo = row.userInfo.isEmpty ? nil : row.userInfo
        if row.outcome == .cancelled {
            self.error = Failure(DownloadError(.cancelled, "the download was cancelled"))
        }
    }

    /// The file's path; a directory with a slash at the end if the file has no name yet.
    private static func path(of request: DownloadRequest) -> String {
        switch request.destination {
        case .file(let path), .stream(let path): path.string
        case .directory(let directory, _): directory.string + "/"
        case .descriptor: "-"
        }
    }

    /// Whether nothing happens until a user resumes it, or ever again.
    var isAtRest: Bool { !["waiting", "active", "cancelling"].contains(self.state) }
}

extension EntryRecord.Failure {
    init(_ error: DownloadError) {
        self.init(
            code: error.code.rawValue, exit: ExitCode(error.code).rawValue, message: error.message,
            hint: error.commandLineAdvice, status: error.status)
    }
}

/// What the service's API answers to a request for the state of the service.
struct ServiceRecord: Codable, Hashable, Sendable {
    /// The version of the API. It changes when an older client would misunderstand.
    var api = Self.apiVersion
    var version: String
    var pid: Int32
    /// Why no download runs: `hours` or `space`; absent if they may run.
    var held: String?
    /// The number of entries in each state.
    var counts: [String: Int]
    /// In bytes per second, of all downloads.
    var rate: Double
    /// The number of the latest event, for the first request for events.
    var event: String

    static let apiVersion = 1
    /// The field of every answer that has the version.
    static let apiField = "Segdl-API"
}
