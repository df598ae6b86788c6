import SegmentedDownload
import Synchronization

/// The files of a run, in order.
protocol FileSource: Sendable {
    /// The number of files; nil if it is not known before the last one.
    var count: Int? { get }

    /// The next file; nil after the last one.
    func next() -> FileSourceItem?

    /// Receives how a file ended.
    ///
    /// - Parameter number: Its place in the order, from 0.
    func note(_ outcome: TransferSummary.Outcome, number: Int)
}

/// A file of a run.
enum FileSourceItem {
    case request(DownloadRequest)
    /// A file that cannot be requested, and why.
    case refused(path: String, DownloadError)
    /// No file, but there may be more: many entries were passed over, and the caller can look for signals.
    case none
}

/// Files that are known when the run begins.
final class RunFiles: FileSource {
    private let items:
        Mutex<(refused: ArraySlice<(path: String, error: DownloadError)>, requests: ArraySlice<DownloadRequest>)>
    private let total: Int

    init(_ requests: [DownloadRequest], refused: [(path: String, error: DownloadError)] = []) {
        self.total = refused.count + requests.count
        self.items = Mutex((refused[...], requests[...]))
    }

    var count: Int? { self.total }

    func next() -> FileSourceItem? {
        self.items.withLock { items in
            if let (path, error) = items.refused.popFirst() { return .refused(path: path, error) }
            return items.requests.popFirst().map { .request($0) }
        }
    }

    func note(_ outcome: TransferSummary.Outcome, number: Int) {}
}
