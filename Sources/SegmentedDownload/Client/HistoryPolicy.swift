public import SystemPackage

/// What happens to downloads that are completed, failed or cancelled.
public struct HistoryPolicy: Hashable, Sendable {
    /// Whether completed and cancelled downloads stay in ``DownloadGroup/downloads`` until they are removed; `nil`, the
    /// default, for `false` in a ``DownloadService`` and `true` in other groups.
    ///
    /// Set it to `false` in a group that runs for weeks. A ``Download`` handle still gives the result. Failed downloads
    /// stay listed in any case, because they can be resumed: remove them with ``DownloadGroup/remove(_:)``.
    public var listsFinished: Bool?
    /// The path of a history file with one line for each download that completes, fails or is cancelled; `nil` for
    /// none. A relative path begins in the process's working directory, not in the group's directory.
    ///
    /// Lines are written by the time the group ends. Lines are lost if another process holds the file's lock for too
    /// long.
    public var path: FilePath?
    /// The maximum length of the history file in bytes. Default 1 MiB, about four thousand downloads.
    ///
    /// A file that would grow longer is renamed to the same name with the suffix `.1`, and a new one is begun.
    public var lengthMaximum: Int64 = 1 << 20

    public init(path: FilePath? = nil) {
        self.path = path
    }
}

/// The history's record of a download that ended.
public struct HistoryEntry: Hashable, Sendable {
    /// How a download ended.
    public enum Outcome: String, Codable, Hashable, Sendable, CaseIterable {
        case completed, failed, cancelled
    }

    /// The time at which it ended, in seconds since 1970.
    public var time: Int64
    /// The download's name in its group.
    public var id: String
    /// The source, safe to show: no user name, no password, no query.
    public var url: String
    /// The destination's path.
    public var path: FilePath
    /// The file's length if it completed, else the bytes of it that were present, in bytes.
    public var bytes: Int64
    /// How it ended.
    public var outcome: Outcome
    /// The raw value of the error's ``DownloadError/Code``; `nil` if there was no error.
    public var code: String?
    /// The error's message in one line, safe to show; `nil` if there was no error.
    public var message: String?
    /// The request's ``DownloadRequest/userInfo``.
    public var userInfo: [String: String]

    package init(
        time: Int64, id: String, url: String, path: FilePath, bytes: Int64, outcome: Outcome, code: String?,
        message: String?, userInfo: [String: String]
    ) {
        self.time = time
        self.id = id
        self.url = url
        self.path = path
        self.bytes = bytes
        self.outcome = outcome
        self.code = code
        self.message = message
        self.userInfo = userInfo
    }
}

/// The fields of a line of the history file.
extension HistoryEntry: Codable {
    private enum CodingKeys: String, CodingKey {
        case time, id, url, path, bytes, outcome, code, message
        case userInfo = "user_info"
    }

    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            time: try values.decode(Int64.self, forKey: .time), id: try values.decode(String.self, forKey: .id),
            url: try values.decode(String.self, forKey: .url),
            path: FilePath(try values.decode(String.self, forKey: .path)),
            bytes: try values.decode(Int64.self, forKey: .bytes),
            outcome: try values.decode(Outcome.self, forKey: .outcome),
            code: try values.decodeIfPresent(String.self, forKey: .code),
            message: try values.decodeIfPresent(String.self, forKey: .message),
            userInfo: try values.decode([String: String].self, forKey: .userInfo))
    }

    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(self.time, forKey: .time)
        try values.encode(self.id, forKey: .id)
        try values.encode(self.url, forKey: .url)
        try values.encode(self.path.string, forKey: .path)
        try values.encode(self.bytes, forKey: .bytes)
        try values.encode(self.outcome, forKey: .outcome)
        try values.encodeIfPresent(self.code, forKey: .code)
        try values.encodeIfPresent(self.message, forKey: .message)
        try values.encode(self.userInfo, forKey: .userInfo)
    }
}

extension DownloadGroup {
    /// The history's entries, oldest first, including those of earlier runs. Malformed lines are skipped.
    ///
    /// - Throws: ``DownloadError`` with code `file` if the history file exists and cannot be opened.
    public func historyEntries() async throws(DownloadError) -> [HistoryEntry] {
        guard let log = self.historyLog else { return [] }
        return try await EngineThreads.aside { () throws(DownloadError) in try log.entries() }
    }

    /// The latest entry of a download in the history; `nil` if there is none.
    ///
    /// Give downloads an ``DownloadRequest/id`` that is unique in all runs, such as a UUID. The number of a download
    /// that has none is another download's in the next run.
    ///
    /// - Throws: The same errors as ``historyEntries()``.
    public func historyEntry(id: Download.ID) async throws(DownloadError) -> HistoryEntry? {
        guard let log = self.historyLog else { return nil }
        return try await EngineThreads.aside { () throws(DownloadError) in
            try log.entries().last { $0.id == id.rawValue }
        }
    }
}

extension HistoryPolicy {
    /// The log that writes the history file; `nil` if there is no file.
    func log(in storage: any Storage, clock: any EngineClock) -> HistoryLog? {
        self.path.map {
            HistoryLog(HistoryFile(path: $0.string, lengthMaximum: self.lengthMaximum, storage: storage), clock: clock)
        }
    }
}

extension HistoryLog {
    /// Writes a line if the event ends a download. An error in the history does not fail the download.
    func note(_ event: DownloadEvent, of download: Download) {
        if let entry = HistoryEntry(event, of: download, at: self.clock.secondsSinceEpoch) { self.note(entry) }
    }
}

extension HistoryEntry {
    /// Returns `nil` if the event does not end the download.
    ///
    /// - Parameter time: In seconds since 1970.
    package init?(_ event: DownloadEvent, of download: Download, at time: Int64) {
        var (bytes, path) = (download.snapshot.bytesDone, download.path)
        var error: DownloadError?
        let outcome: Outcome
        switch event {
        case .completed(let result): (outcome, bytes, path) = (.completed, result.bytes, result.path)
        case .failed(let reason, let progress): (outcome, bytes, error) = (.failed, progress.bytesDone, reason)
        case .cancelled: outcome = .cancelled
        case .started, .progress, .segment, .retrying, .checkpoint, .note, .state, .paused: return nil
        }
        self.init(
            time: time, id: download.id.rawValue, url: download.request.source.description, path: path,
            bytes: bytes, outcome: outcome, code: error?.code.rawValue, message: error?.message,
            userInfo: download.request.userInfo)
    }
}
