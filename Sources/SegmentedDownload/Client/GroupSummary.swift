/// How the downloads of a group have ended.
///
/// It counts all that were ever added, each as what it is now: one that failed and was resumed is not a failure any more.
public struct GroupSummary: Hashable, Sendable {
    /// Downloads whose file is in place.
    public var completed = 0
    /// Downloads that failed and were not resumed.
    public var failed = 0
    /// Downloads that rest until they are resumed.
    public var paused = 0
    /// Downloads that were stopped for good.
    public var cancelled = 0
    /// Bytes of the completed files.
    public var bytes: Int64 = 0
    /// Body bytes received for them.
    public var bytesFetched: Int64 = 0

    public init() {}

    /// Whether every file is there.
    public var isComplete: Bool { self.failed == 0 && self.paused == 0 && self.cancelled == 0 }
}

extension DownloadGroup {
    /// Something that happened in a group, for its observers.
    public enum Event: Sendable {
        /// It is listed from now on.
        case added(Download)
        /// What a download's own observers hear. The download has its id, request and ``DownloadRequest/userInfo``.
        case download(Download, DownloadEvent)
        /// It is listed no more.
        case removed(Download)
        /// The last download that was under way has ended or paused. Comes again each time that happens.
        case allCompleted(GroupSummary)

        /// Whether a slow observer may miss it: the next one says the same and more.
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
