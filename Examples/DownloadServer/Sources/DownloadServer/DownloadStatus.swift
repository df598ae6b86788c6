import Hummingbird
import SegmentedDownload

/// The status of a download, as clients receive it. Unknown values are absent.
struct DownloadStatus: ResponseEncodable, Sendable {
    /// Why a download failed. Both texts are safe to print.
    struct Failure: Encodable, Sendable {
        let code: String
        let message: String
        var hint: String?
    }

    let id: String
    /// Without credentials and query, which is often a signature.
    let url: String
    /// A `DownloadState`.
    let state: String
    let bytesDone: Int64
    let bytesTotal: Int64?
    let path: String
    let error: Failure?

    /// The current status of a download in the group.
    init(_ download: Download) async {
        let (state, progress) = (download.state, download.snapshot)
        self.id = download.id.rawValue
        self.url = download.request.source.description
        self.state = state.rawValue
        self.bytesDone = progress.bytesDone
        self.bytesTotal = progress.bytesTotal
        self.path = download.path.string
        self.error = state == .failed ? await download.error.map(Failure.init) : nil
    }

    /// The status of a download that has left the group.
    init(_ entry: HistoryEntry) {
        self.id = entry.id
        self.url = entry.url
        self.state = entry.outcome.rawValue
        self.bytesDone = entry.bytes
        self.bytesTotal = entry.outcome == .completed ? entry.bytes : nil
        self.path = entry.path.string
        self.error = entry.code.map { Failure(code: $0, message: entry.message ?? "") }
    }
}

extension DownloadStatus.Failure {
    init(_ error: DownloadError) {
        self.init(code: error.code.rawValue, message: error.message, hint: error.advice)
    }
}

extension Download {
    /// The error of a failed download.
    ///
    /// A failed download's sequence of events begins with the failure. If the download was resumed in the meantime, it
    /// begins with another event.
    fileprivate var error: DownloadError? {
        get async {
            var events = self.events.makeAsyncIterator()
            guard case .failed(let error, _) = await events.next() else { return nil }
            return error
        }
    }
}
