// The article with this file's name shows the code between "// begin" and "// end".

// begin
import SegmentedDownload

/// Downloads a file, or resumes it if an earlier run was interrupted.
func fetch(_ url: String, to path: FilePath) async throws -> DownloadResult {
    let request = DownloadRequest(try SourceURL(url), to: .file(path))
    return try await withDownloadClient { client in
        try await client.download(request)
    }
}
// end

// begin
func describe(_ url: String) async throws -> String {
    let request = DownloadRequest(try SourceURL(url))
    let file = try await withDownloadClient { client in try await client.probe(request) }
    let length = file.length.map { "\($0) bytes" } ?? "of unknown length"
    return "\(file.name): \(length), \(file.supportsRanges ? "in segments" : "in one stream")"
}
// end

// begin
func carefulRequest(for url: String, in directory: FilePath) throws -> DownloadRequest {
    // The server names the file. Any name stays in the directory.
    var request = DownloadRequest(try SourceURL(url), to: .directory(directory))
    request.segments = .exactly(8)
    request.ifExists = .overwrite
    request.lengthMaximum = 10 << 30
    request.retries = 5
    request.stallTimeout = .seconds(10)
    request.fields[.referer] = "https://example.org/"
    try request.validate()
    return request
}
// end

// begin
func fetchOrExplain(_ request: DownloadRequest) async throws -> String {
    do {
        let result = try await withDownloadClient { client in try await client.download(request) }
        return "\(result.path) is there: \(result.bytes) bytes, verified by \(result.verifiedBy)"
    } catch let error as DownloadError {
        switch error.code {
        case .space: return "no room: \(error.message)"
        case .exists: return "something is in the way: \(error.message)"
        case .changed: return "the server has another file by now: \(error.message)"
        case _ where error.isResumable: return "not yet: \(error.message). The same request resumes it"
        default: return "not at all: \(error.message). \(error.advice ?? "")"
        }
    }
}
// end

// begin
func configuration() -> DownloadConfiguration {
    var configuration = DownloadConfiguration()
    configuration.connectTimeout = .seconds(5)
    configuration.schemes = ["https"]
    configuration.proxies = ProxyPolicy(environment: ["https_proxy": "http://proxy.example.org:3128"])
    // Stores the number of connections that was useful, for the next run.
    configuration.memory = .standard
    return configuration
}
// end
