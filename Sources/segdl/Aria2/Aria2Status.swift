import SegmentedDownload
import SegmentedDownloadService

/// A download as aria2 describes it. Numbers are strings.
struct Aria2Status {
    /// aria2's states.
    enum State: String {
        case active, waiting, paused, error, complete, removed

        var isStopped: Bool {
            switch self {
            case .active, .waiting, .paused: false
            case .error, .complete, .removed: true
            }
        }
    }

    let gid: String
    let state: State
    /// The destination. The file's name is nil while it is unknown.
    let directory: String
    let file: String?
    let uris: [RPCValue]
    let bytesDone: Int64
    /// 0 if it is unknown.
    let bytesTotal: Int64
    var rate = 0.0
    var connections = 0
    var error: (code: Aria2ErrorCode, message: String)?

    static func state(of entry: QueueEntry) -> State {
        switch entry.state {
        case .active: .active
        case .waiting: .waiting
        case .paused: .paused
        case .failed: .error
        case .cancelling: .removed
        }
    }

    init(_ found: Aria2RPC.Found) {
        switch found {
        case .entry(let entry): self.init(entry)
        case .row(let row): self.init(row)
        }
    }

    private init(_ entry: QueueEntry) {
        self.gid = entry.id.rawValue
        self.state = Self.state(of: entry)
        (self.directory, self.file) = Self.place(of: entry.request)
        self.uris = Self.uris(of: entry)
        self.bytesDone = max(entry.progress?.bytesDone ?? 0, 0)
        self.bytesTotal = max(entry.progress?.bytesTotal ?? 0, 0)
        if entry.state == .active {
            self.rate = entry.progress?.rate ?? 0
            self.connections = entry.progress?.connections ?? 0
        }
        switch self.state {
        case .error: self.error = entry.error.map { (Aria2ErrorCode($0), $0.message) } ?? (.unknown, "")
        case .removed: self.error = (.removed, "")
        case .active, .waiting, .paused, .complete: break
        }
    }

    private init(_ row: HistoryEntry) {
        self.gid = row.id
        self.directory = row.path.removingLastComponent().string
        self.file = row.path.string
        self.uris = [Self.uri(row.url, isUsed: true)]
        self.bytesDone = max(row.bytes, 0)
        switch row.outcome {
        case .completed: (self.state, self.error) = (.complete, (.none, ""))
        case .cancelled: (self.state, self.error) = (.removed, (.removed, ""))
        case .failed:
            let code = row.code.map { DownloadError.Code(rawValue: $0) } ?? .internal
            (self.state, self.error) = (.error, (Aria2ErrorCode(code), row.message ?? ""))
        }
        self.bytesTotal = row.outcome == .completed ? max(row.bytes, 0) : 0
    }

    static func place(of request: DownloadRequest) -> (directory: String, file: String?) {
        switch request.destination {
        case .file(let path): (path.removingLastComponent().string, path.string)
        case .directory(let directory, _): (directory.string, nil)
        case .descriptor: ("", nil)
        }
    }

    // MARK: Fields

    /// The first of these in a list is the URL in use.
    ///
    /// The URLs are complete except for user name and password, because front-ends add a download again with them.
    static func uris(of entry: QueueEntry) -> [RPCValue] {
        ([entry.request.source] + entry.request.mirrors).enumerated().map { index, source in
            Self.uri(source.string, isUsed: index == 0 && (entry.state == .active || entry.state == .failed))
        }
    }

    private static func uri(_ url: String, isUsed: Bool) -> RPCValue {
        .object(["uri": .string(url), "status": .string(isUsed ? "used" : "waiting")])
    }

    var files: RPCValue {
        .array([
            .object([
                "index": .string("1"), "path": .string(self.file ?? ""), "length": .digits(self.bytesTotal),
                "completedLength": .digits(self.bytesDone), "selected": .string("true"), "uris": .array(self.uris),
            ])
        ])
    }

    /// - Parameters:
    ///   - keys: The names of the fields; empty for all.
    ///   - segments: What `bitfield` shows; nil to leave it out.
    func object(_ keys: Set<String>, segments: [SegmentStatus]? = nil) -> RPCValue {
        let pieces = Aria2Pieces(bytesTotal: self.bytesTotal)
        var fields: [String: RPCValue] = [
            "gid": .string(self.gid), "status": .string(self.state.rawValue), "dir": .string(self.directory),
            "totalLength": .digits(self.bytesTotal), "completedLength": .digits(self.bytesDone),
            "downloadSpeed": .digits(Self.whole(self.rate)), "connections": .digits(self.connections),
            "uploadLength": .string("0"), "uploadSpeed": .string("0"),
            "pieceLength": .digits(pieces.length), "numPieces": .digits(pieces.count), "files": self.files,
        ]
        if let error {
            fields["errorCode"] = error.code.value
            fields["errorMessage"] = .string(error.message)
        }
        if let segments, pieces.count > 0, self.state == .complete || !segments.isEmpty {
            let whole: [(start: Int64, end: Int64)] = [(0, self.bytesTotal)]
            let ranges = self.state == .complete ? whole : segments.map { ($0.start, $0.position) }
            fields["bitfield"] = .string(pieces.bitfield(of: ranges))
        }
        return .object(keys.isEmpty ? fields : fields.filter { keys.contains($0.key) })
    }

    /// A rate as a whole number.
    static func whole(_ rate: Double) -> Int64 { Int64(exactly: rate.rounded()) ?? 0 }
}
