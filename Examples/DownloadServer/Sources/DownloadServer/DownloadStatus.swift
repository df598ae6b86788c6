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

    private enum CodingKeys: String, CodingKey {
        case id, url, state, path, error
        case bytesDone = "bytes_done"
        case bytesTotal = "bytes_total"
    }

    /// The current status of a download in the group.
    init(_ download: Download) {
        let (state, progress) = (download.state, download.snapshot)
        self.id = download.id.rawValue
        self.url = download.request.source.description
        self.state = state.rawValue
        self.bytesDone = progress.bytesDone
        self.bytesTotal = progress.bytesTotal
        self.path = download.path.string
        if case .failed(let error, _) = download.outcome { self.error = Failure(error) } else { self.error = nil }
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
