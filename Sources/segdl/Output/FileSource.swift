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
    func note(_ outcome: TransferSummary.Outcome, number: Int) async
}

/// A file of a run.
enum FileSourceItem {
    case request(DownloadRequest)
    /// A file that cannot be requested, and why.
    case refused(path: String, DownloadError)
    /// No file, but there may be more: many entries were passed over, and the caller can look for signals.
    case none
}

/// Files that are known when the run begins: first those that cannot be requested.
final class RunFiles: FileSource {
    private struct Rest {
        var refused: ArraySlice<(path: String, error: DownloadError)>
        var requests: ArraySlice<DownloadRequest>
    }

    let count: Int?
    private let rest: Mutex<Rest>
    private let refusedCount: Int
    private let completed: @Sendable (Int) async -> Void

    /// - Parameters:
    ///   - refused: Files that cannot be requested, and why.
    ///   - completed: Called with the index of each request whose file is complete.
    init(
        _ requests: [DownloadRequest], refused: [(path: String, error: DownloadError)] = [],
        completed: @escaping @Sendable (Int) async -> Void = { _ in }
    ) {
        self.count = refused.count + requests.count
        self.rest = Mutex(Rest(refused: refused[...], requests: requests[...]))
        self.refusedCount = refused.count
        self.completed = completed
    }

    func next() -> FileSourceItem? {
        self.rest.withLock { rest in
            if let (path, error) = rest.refused.popFirst() { return .refused(path: path, error) }
            return rest.requests.popFirst().map { .request($0) }
        }
    }

    func note(_ outcome: TransferSummary.Outcome, number: Int) async {
        if case .completed = outcome { await self.completed(number - self.refusedCount) }
    }
}
