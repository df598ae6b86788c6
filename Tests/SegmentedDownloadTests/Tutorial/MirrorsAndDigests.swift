// The article with this file's name shows the code between "// begin" and "// end".

// begin
import SegmentedDownload

func fetch(_ url: String, mirrors: [String], sha256: String, to path: FilePath) async throws -> DownloadResult {
    var request = DownloadRequest(try SourceURL(url), to: .file(path))
    for mirror in mirrors { request.mirrors.append(try SourceURL(mirror)) }
    guard let digest = ExpectedDigest(.sha256, hex: sha256) else {
        throw DownloadError(.usage, "\(sha256) is no SHA-256")
    }
    request.digests = [digest]
    return try await withDownloadClient { [request] client in try await client.download(request) }
}
// end

// begin
func fetch(_ url: String, listedAt list: String, to path: FilePath) async throws -> DownloadResult {
    try await withDownloadClient { client in
        let checksums = ChecksumList(try await client.text(of: DownloadRequest(try SourceURL(list))))
        let digests = try checksums.digests(of: path)
        guard !digests.isEmpty else { throw DownloadError(.usage, "\(list) does not name \(path)") }
        var request = DownloadRequest(try SourceURL(url), to: .file(path))
        request.digests = digests
        return try await client.download(request)
    }
}
// end

// begin
func damage(in path: FilePath) async throws -> [Range<Int64>] {
    let check = try await FileCheck(of: path)
    return check.isGood ? [] : check.damage
}
// end

// begin
func repair(_ path: FilePath, from url: String) async throws {
    let check = try await FileCheck(of: path)
    guard !check.isGood else { return }
    let source = try SourceURL(url)
    let request = DownloadRequest(source, to: .file(path))
    try await withDownloadClient { client in
        try await check.beginRepair(from: [source], as: try await client.probe(request))
        _ = try await client.download(request)
    }
}
// end
