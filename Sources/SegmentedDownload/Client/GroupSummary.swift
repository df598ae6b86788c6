/// The number of downloads of a group by outcome.
///
/// Each download counts once, with its present state: one that failed and was resumed is not counted as failed.
public struct GroupSummary: Codable, Hashable, Sendable {
    /// Downloads whose file is in place.
    public var completed = 0
    /// Downloads that failed and were not resumed or removed.
    public var failed = 0
    /// Downloads that are paused.
    public var paused = 0
    /// Downloads that were cancelled.
    public var cancelled = 0
    /// The total length of the completed files in bytes.
    public var bytes: Int64 = 0
    /// Body bytes received for the completed files.
    public var bytesFetched: Int64 = 0

    public init() {}

    private enum CodingKeys: String, CodingKey {
        case completed, failed, paused, cancelled, bytes
        case bytesFetched = "bytes_fetched"
    }

    /// Whether no download has failed, is paused or was cancelled.
    public var isComplete: Bool { self.failed == 0 && self.paused == 0 && self.cancelled == 0 }
}

extension DownloadGroup {
    /// An event of a group, for its observers.
    public enum Event: Sendable {
        /// A download was added to the list.
        case added(Download)
        /// An event of one download. The handle gives its id, request and ``DownloadRequest/userInfo``.
        case download(Download, DownloadEvent)
        /// A download was removed from the list.
        case removed(Download)
        /// The last active download has ended or paused. May occur more than once.
        case allCompleted(GroupSummary)

        /// Whether a slow observer may miss the event, because ``Download/snapshot`` and ``Download/segments`` give the
        /// present values.
        var isDispensable: Bool {
            switch self {
            case .download(_, let event):
                switch event {
                case .progress, .segment, .checkpoint: true
                case .started, .retrying, .note, .state, .paused, .completed, .failed, .cancelled: false
                }
            case .added, .removed, .allCompleted: false
            }
        }
    }
}
