// The article with this file's name shows the code between "// begin" and "// end".

// begin
import SegmentedDownload

func fetchAll(_ urls: [String], into directory: FilePath) async throws -> (summary: GroupSummary, failures: [String]) {
    var configuration = DownloadConfiguration()
    configuration.limits.downloads = 4
    configuration.limits.connections = 32
    configuration.limits.connectionsPerHost = 8
    configuration.limits.bytesPerSecond = 500 << 20
    return try await withDownloadClient(configuration) { client in
        try await client.withGroup { group in
            for url in urls {
                try group.add(DownloadRequest(try SourceURL(url), to: .directory(directory)))
            }
            let summary = await group.waitForAll()
            return (summary, failures(in: group))
        }
    }
}
// end

// begin
func failures(in group: DownloadGroup) -> [String] {
    var lines: [String] = []
    for download in group.downloads(.failed) {
        if case .failed(let error, _) = download.outcome { lines.append("\(download.path): \(error.message)") }
    }
    return lines
}
// end

// begin
func addUrgently(_ request: DownloadRequest, to group: DownloadGroup) throws -> Download {
    var request = request
    request.priority = 1
    let download = try group.add(request)
    download.moveToFront()
    return download
}
// end

// begin
func leaveRoomForOthers(_ group: DownloadGroup) {
    var limits = group.limits
    limits.bytesPerSecond = 1 << 20
    limits.connectionsPerHost = 2
    group.update(limits)
}
// end

// begin
func fetchForUser(_ name: String, _ urls: [String], in directory: FilePath) async throws -> [HistoryEntry] {
    try await withDownloadClient { client in
        try await client.withGroup(named: name, in: directory) { group in
            for url in urls { try group.add(DownloadRequest(try SourceURL(url))) }
            await group.waitForAll()
            return try await group.historyEntries()
        }
    }
}
// end
