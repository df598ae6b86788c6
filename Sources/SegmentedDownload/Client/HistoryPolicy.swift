/// What becomes of downloads that are over.
public struct HistoryPolicy: Hashable, Sendable {
    /// Whether completed and cancelled downloads stay in ``DownloadGroup/downloads`` until they are removed. A group that fetches
    /// for weeks wants them to leave; whoever holds a ``Download`` still reads its end from it.
    public var listsFinished = true
    /// A file that gets a line for every download that completes, fails or is cancelled, at the end of the group at the latest; absent
    /// for none. Where another process holds the file's lock for longer than a moment, lines are lost.
    public var path: String?
    /// The file is begun anew when it would grow longer, in bytes, and the one before is kept with `.1` behind its name. 1 MiB: some
    /// four thousand downloads.
    public var lengthMaximum: Int64 = 1 << 20

    public init(path: String? = nil) {
        self.path = path
    }
}

/// A download that ended, as the history has it.
public struct HistoryEntry: Codable, Hashable, Sendable {
    /// How it ended.
    public enum Outcome: String, Codable, Hashable, Sendable, CaseIterable {
        case completed, failed, cancelled
    }

    /// When it ended, in seconds since 1970.
    public var time: Int64
    /// The download's name in its group.
    public var id: String
    /// Safe to show: no user name, no password, no query.
    public var url: String
    /// The destination.
    public var path: String
    /// The file's length, or what was there of it in the end.
    public var bytes: Int64
    /// How it ended.
    public var outcome: Outcome
    /// The error's ``DownloadError/Code``, absent if there was none.
    public var code: String?
    /// The error in a line, safe to show; absent if there was none.
    public var message: String?
    /// As the request had it.
    public var userInfo: [String: String]

    enum CodingKeys: String, CodingKey {
        case time, id, url, path, bytes, outcome, code, message
        case userInfo = "user_info"
    }
}

extension DownloadGroup {
    /// The downloads that ended, oldest first, those of earlier runs included; what cannot be read is passed over.
    ///
    /// - Throws: ``DownloadError`` with code `file` if there is a history that cannot be opened.
    public func historyEntries() throws(DownloadError) -> [HistoryEntry] {
        try self.historyLog?.entries() ?? []
    }
}

extension HistoryPolicy {
    /// What keeps the history, if there is one.
    func log(clock: any EngineClock) -> HistoryLog? {
        self.path.map { HistoryLog(HistoryFile(path: $0, lengthMaximum: self.lengthMaximum), clock: clock) }
    }
}

extension HistoryLog {
    /// Has a line written if an event ends a download. History is a convenience: what goes wrong with it fails no download.
    func note(_ event: DownloadEvent, of download: Download) {
        if let entry = HistoryEntry(event, of: download) { self.note(entry) }
    }
}

extension HistoryEntry {
    /// Absent for what ends nothing.
    fileprivate init?(_ event: DownloadEvent, of download: Download) {
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
            time: HistoryFile.now, id: download.id.rawValue, url: download.request.source.description, path: path,
            bytes: bytes, outcome: outcome, code: error?.code.rawValue, message: error?.message,
            userInfo: download.request.userInfo)
    }
}
