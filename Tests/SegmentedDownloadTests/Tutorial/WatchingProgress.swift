// The article with this file's name shows the code between "// begin" and "// end".

// begin
import SegmentedDownload

func fetch(_ request: DownloadRequest, reporting report: (String) -> Void) async throws -> DownloadResult {
    try await withDownloadClient { client in
        try await client.withGroup { group in
            let download = try group.add(request)
            for await event in download.events {
                switch event {
                case .started(let start):
                    report(
                        "\(start.path): \(start.bytesTotal.map { "\($0)" } ?? "unknown") bytes, \(start.resumedFrom) there"
                    )
                case .progress(let progress):
                    let done = progress.fraction.map { "\(Int($0 * 100)) %" } ?? "\(progress.bytesDone) bytes"
                    report("\(done) over \(progress.connections) connections")
                case .retrying(let error, let attempt, let delay):
                    report("attempt \(attempt) failed: \(error.message); the next in \(delay)")
                case .note(let text): report(text)
                default: break
                }
            }
            return try await download.result()
        }
    }
}
// end

// begin
func fetchAll(_ requests: [DownloadRequest], reporting report: (String) -> Void) async throws -> GroupSummary {
    try await withDownloadClient { client in
        try await client.withGroup { group in
            let events = group.events
            for request in requests { try group.add(request) }
            for await event in events {
                switch event {
                case .download(let download, .completed(let result)): report("\(download.id): \(result.bytes) bytes")
                case .download(let download, .failed(let error, _)): report("\(download.id): \(error.message)")
                // The first file may be complete before the second is added, so this may come twice.
                case .allCompleted(let summary) where summary.completed + summary.failed == requests.count:
                    return summary
                default: break
                }
            }
            return group.summary
        }
    }
}
// end

// begin
/// The rows of a list in a window, each time it is drawn.
func rows(of group: DownloadGroup) -> [String] {
    group.downloads.map { download in
        let progress = download.snapshot
        let left = progress.timeLeft.map { ", \($0.components.seconds) s left" } ?? ""
        return "\(download.path): \(download.state), \(progress.bytesDone) bytes\(left)"
    }
}
// end
