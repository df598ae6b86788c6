import SegmentedDownload
import SegmentedDownloadCore

/// The lists of digests that `--checksum-from` names.
struct ChecksumSource {
    /// Files or URLs.
    let places: [String]
    /// Adds credentials and fields to the request for a list from the files' own server.
    let identify: (inout DownloadRequest) throws(DownloadError) -> Void

    /// 1 MiB: ten thousand files.
    private static let lengthMax = 1 << 20

    /// Adds to each request the digest that the lists have of it.
    ///
    /// - Throws: ``DownloadError``: as the lists cannot be had; `usage` if none of them names a file.
    func complete(_ requests: inout [DownloadRequest], _ configuration: DownloadConfiguration) async throws {
        guard !self.places.isEmpty else { return }
        let lists = try await self.lists(configuration, besides: requests.first?.source)
        for index in requests.indices {
            let found = try self.digests(in: lists, of: Self.names(of: requests[index]))
            requests[index].digests += found.filter { !requests[index].digests.contains($0) }
        }
    }

    /// The digests that the lists have of a file that is there.
    func digests(of path: String, _ configuration: DownloadConfiguration) async throws -> [ExpectedDigest] {
        guard !self.places.isEmpty else { return [] }
        return try self.digests(in: try await self.lists(configuration, besides: nil), of: [path])
    }

    /// - Parameter names: what the file may be called.
    private func digests(in lists: [ChecksumList], of names: [String]) throws(DownloadError) -> [ExpectedDigest] {
        var found: [ExpectedDigest] = []
        for list in lists {
            for name in names {
                guard let digest = try list.digest(of: name) else { continue }
                found.append(digest)
                break
            }
        }
        guard !found.isEmpty else {
            let name = names[0].lastPathComponent.shown
            throw DownloadError(
                .usage, "\(self.places.map { InputFile(path: $0).name }.joined(separator: " and ")) names no \(name)",
                hint: "Nothing was begun; give its digest with --checksum")
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
            throw DownloadError(.usage, "\(InputFile(path: place).name) holds no checksums")
        }
        return lists
    }

    /// What lists may call a file: as its URL does, with its path, or as it will be called here.
    private static func names(of request: DownloadRequest) -> [String] {
        let name = SafeFilename.choose(
            contentDisposition: nil, urlPath: request.source.path, host: request.source.origin.host
        ).value
        var names = [request.source.path.split(separator: "/").dropLast().joined(separator: "/") + "/" + name]
        if case .file(let path) = request.destination { names.append(path.lastPathComponent) }
        return names
    }
}
