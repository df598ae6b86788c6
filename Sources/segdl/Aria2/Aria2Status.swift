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
    private(set) var bytesDone: Int64
    /// 0 if it is unknown.
    private(set) var bytesTotal: Int64
    /// The parts of the file that are present, as far as they are known.
    private var ranges: [(start: Int64, end: Int64)]
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

    /// - Parameter segments: Those of a download that runs.
    init(_ entry: QueueEntry, segments: [SegmentStatus]) {
        self.gid = entry.id.rawValue
        self.state = Self.state(of: entry)
        (self.directory, self.file) = Self.place(of: entry.request)
        self.uris = Self.uris(of: entry, segments)
        self.ranges = segments.map { ($0.start, $0.position) }
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

    init(_ row: HistoryEntry) {
        self.gid = row.id
        // A download that was cancelled before its file had a name has the path of the directory.
        let isNamed = row.outcome == .completed || FileFacts(row.path.string)?.isDirectory != true
        self.directory = isNamed ? row.path.removingLastComponent().string : row.path.string
        self.file = isNamed ? row.path.string : nil
        // The history has no query, which may be secret, and without it the URL is another one.
        self.uris = row.url.contains("?") ? [] : [Self.uri(row.url, isUsed: true)]
        self.ranges = row.outcome == .completed ? [(start: Int64(0), end: row.bytes)] : []
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

    /// Uses what the manifest of a download that does not run says.
    mutating func update(_ saved: SavedDownload) {
        (self.bytesDone, self.bytesTotal) = (saved.bytesDone, saved.bytesTotal)
        self.ranges = saved.ranges.map { ($0.lowerBound, $0.upperBound) }
    }

    static func place(of request: DownloadRequest) -> (directory: String, file: String?) {
        switch request.destination {
        case .file(let path): (path.removingLastComponent().string, path.string)
        case .directory(let directory, _): (directory.string, nil)
        case .descriptor, .stream: ("", nil)
        }
    }

    // MARK: Fields

    /// The URLs are complete except for user name and password, because front-ends add a download again with them.
    private static func uris(of entry: QueueEntry, _ segments: [SegmentStatus]) -> [RPCValue] {
        let sources = Self.sources(of: entry.request)
        let used = Set(segments.compactMap(\.source).filter { sources.indices.contains($0) }.map { sources[$0] })
        return ([entry.request.source] + entry.request.mirrors).map { source in
            Self.uri(source.string, isUsed: used.contains(source))
        }
    }

    /// The sources of a request, each once: their indices are those that ``SegmentStatus`` has.
    static func sources(of request: DownloadRequest) -> [SourceURL] {
        ([request.source] + request.mirrors).reduce(into: []) { sources, source in
            if !sources.contains(source) { sources.append(source) }
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

    /// - Parameter keys: The names of the fields; empty for all.
    func object(_ keys: Set<String>) -> RPCValue {
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
        if pieces.count > 0, !self.ranges.isEmpty, keys.isEmpty || keys.contains("bitfield") {
            fields["bitfield"] = .string(pieces.bitfield(of: self.ranges))
        }
        return .object(keys.isEmpty ? fields : fields.filter { keys.contains($0.key) })
    }

    /// A rate as a whole number.
    static func whole(_ rate: Double) -> Int64 { Int64(exactly: rate.rounded()) ?? 0 }
}
