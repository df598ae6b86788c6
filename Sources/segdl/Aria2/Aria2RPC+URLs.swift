import SegmentedDownload
import SegmentedDownloadService

extension Aria2RPC {
    /// A URL that can be fetched; nil if it is not one. As in aria2, spaces and other visible characters that a URL must
    /// not have are percent-encoded.
    static func url(_ text: String) -> String? {
        if (try? SourceURL(text)) != nil { return text }
        let encoded = Self.encoded(text)
        return (try? SourceURL(encoded)) == nil ? nil : encoded
    }

    private static func encoded(_ text: String) -> String {
        let others = Set("\"<>\\^`{|}".utf8)
        let bytes = text.utf8.flatMap { byte -> [UInt8] in
            guard byte == 0x20 || byte >= 0x80 || others.contains(byte) else { return [byte] }
            return Array("%\(String(byte, radix: 16, uppercase: true))".utf8)
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Removes URLs of a download and adds others.
    ///
    /// Fields and credentials are for the server of the first URL only. They are dropped if another server comes first. A
    /// running download uses added mirrors when it is next resumed. If its first URL changes, or one is removed, it is
    /// paused and resumed, so that it does not end with what only a removed URL delivered.
    func changeURI(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        let file = try parameters.integer(1, atLeast: 1)
        let (removed, added) = (try parameters.strings(2), try parameters.strings(3))
        let position = try parameters.values.count > 4 ? parameters.integer(4, atLeast: 0) : nil
        guard case .entry(let entry) = found, entry.state != .cancelling else {
            throw RPCError("Cannot remove URIs from GID#\(found.gid)")
        }
        guard file == 1 else { throw RPCError("fileIndex is out of range") }
        var sources: [SourceURL] = []
        for text in added.compactMap({ Self.url($0) }) {
            // What may be fetched is decided in one place.
            sources.append(try self.control.request(Submission.Description(url: text)).source)
        }
        // As in aria2, the position is one among the URLs that are not in use.
        let isUsed = entry.state == .active
        let removals = removed.compactMap { Self.url($0) }.compactMap { try? SourceURL($0).string }
        var count = 0
        let isChanged = try await self.control.queue.update(entry.id) { (request) throws(DownloadError) in
            count = try Self.change(&request, removals, sources, at: position.map { isUsed ? $0 + 1 : $0 })
            self.control.restrict(&request)
        }
        guard isChanged else { throw RPCError("Cannot remove URIs from GID#\(found.gid)") }
        return .array([.int(Int64(count)), .int(Int64(sources.count))])
    }

    /// - Returns: The number of removed URLs.
    private static func change(
        _ request: inout DownloadRequest, _ removals: [String], _ added: [SourceURL], at position: Int?
    ) throws(DownloadError) -> Int {
        var sources = [request.source] + request.mirrors
        let count = sources.count
        for text in removals {
            if let index = sources.firstIndex(where: { $0.string == text }) { sources.remove(at: index) }
        }
        let removed = count - sources.count
        sources.insert(contentsOf: added, at: min(position ?? .max, sources.count))
        guard let first = sources.first else {
            throw DownloadError(.usage, "the last URL of a download cannot be removed")
        }
        if first.origin != request.source.origin {
            request.fields = [:]
            request.credentials = nil
        }
        request.source = first
        request.mirrors = Array(sources.dropFirst())
        return removed
    }
}
