import SegmentedDownload
import SegmentedDownloadCore

/// The lists of digests given with `--checksum-from`.
struct ChecksumSource {
    /// Files or URLs.
    let places: [String]
    /// Adds credentials and fields to the request for a list from the files' own server.
    let identify: (inout DownloadRequest) throws(DownloadError) -> Void

    /// 1 MiB: ten thousand files.
    private static let lengthMax = 1 << 20

    /// Adds the digests from the lists to each request.
    ///
    /// - Throws: ``DownloadError`` if a list cannot be read; `usage` if no list has one of the files.
    func complete(_ requests: inout [DownloadRequest], _ configuration: DownloadConfiguration) async throws {
        guard !self.places.isEmpty else { return }
        let lists = try await self.lists(configuration, besides: requests.first?.source)
        for index in requests.indices {
            let found = try self.digests(in: lists, of: Self.names(of: requests[index]))
            requests[index].digests += found.filter { !requests[index].digests.contains($0) }
        }
    }

    /// The digests from the lists for an existing file.
    func digests(of path: String, _ configuration: DownloadConfiguration) async throws -> [ExpectedDigest] {
        guard !self.places.isEmpty else { return [] }
        return try self.digests(in: try await self.lists(configuration, besides: nil), of: [path])
    }

    /// - Parameter names: The names under which a list may have the file.
    private func digests(in lists: [ChecksumList], of names: [String]) throws(DownloadError) -> [ExpectedDigest] {
        var found: [ExpectedDigest] = []
        for list in lists {
            for name in names {
                let digests = try list.digests(of: FilePath(name))
                found += digests
                if !digests.isEmpty { break }
            }
        }
        guard !found.isEmpty else {
            let name = names[0].lastPathComponent.shown
            throw DownloadError(
                .usage,
                "\(self.places.map { InputFile(path: $0).name }.joined(separator: " and ")) has no entry for \(name)",
                hint: "Nothing was started; give its digest with --checksum")
        }
        return found
    }

    private func lists(
        _ configuration: DownloadConfiguration, besides source: SourceURL?
    ) async throws -> [ChecksumList] {
        let texts = try await withDownloadClient(configuration) { client in
            var texts: [String] = []
            for place in self.places {
                let bytes = try await InputFile(path: place).contents(lengthMax: Self.lengthMax, client) {
                    (request) throws(DownloadError) in
                    if request.source.origin == source?.origin { try self.identify(&request) }
                }
                texts.append(String(decoding: bytes, as: UTF8.self))
            }
            return texts
        }
        let lists = texts.map { ChecksumList($0) }
        for (place, list) in zip(self.places, lists) where list.isEmpty {
            throw DownloadError(.usage, "\(InputFile(path: place).name) contains no checksums")
        }
        return lists
    }

    /// The names under which a list may have a file: its path and name in the URL, or its name at the destination.
    private static func names(of request: DownloadRequest) -> [String] {
        let name = SafeFilename.choose(
            contentDisposition: nil, urlPath: request.source.path, host: request.source.origin.host
        ).value
        var names = [request.source.path.split(separator: "/").dropLast().joined(separator: "/") + "/" + name]
        if case .file(let path) = request.destination { names.append(path.string.lastPathComponent) }
        return names
    }
}
