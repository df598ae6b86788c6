public import HTTPTypes
import Synchronization

/// A transport that serves files from memory, for tests of programs that use the library.
///
/// ```swift
/// let source = try SourceURL("https://example.org/file.bin")
/// let transport = InMemoryTransport([source: .init(bytes, fields: [.eTag: "\"1\""])])
/// var configuration = DownloadConfiguration()
/// configuration.transport = transport
/// let result = try await withDownloadClient(configuration) { client in
///     try await client.download(DownloadRequest(source, to: .file(path)))
/// }
/// ```
///
/// It answers as a file server does (RFC 9110, sections 13 and 14): with 206 or 416 to a request for one range, in
/// consideration of `If-Range`, with 304 to `If-None-Match`, and with 404 for other URLs. It has neither latency nor
/// faults. Write a ``DownloadTransport`` of your own for those.
///
/// Statuses such as 503 are retried, with the delays of a real network. Set ``DownloadOptions/retries`` to 0 to let a test
/// fail at once.
public final class InMemoryTransport: DownloadTransport {
    /// What is served at a URL.
    public struct File: Hashable, Sendable {
        /// The content.
        public var bytes: [UInt8]
        /// The fields to send, such as `ETag`. `Content-Length`, `Content-Range` and `Accept-Ranges` are added.
        public var fields: HTTPFields
        /// 200 for a file. Any other status is sent as it is, to all requests, with the bytes as its body.
        public var status: Int

        public init(_ bytes: [UInt8] = [], fields: HTTPFields = [:], status: Int = 200) {
            self.bytes = bytes
            self.fields = fields
            self.status = status
        }
    }

    private struct State {
        /// By ``SourceURL/string``: requests have no user name.
        var files: [String: File]
        var requests: [TransportRequest] = []
    }

    private let state: Mutex<State>

    public init(_ files: [SourceURL: File] = [:]) {
        self.state = Mutex(State(files: Dictionary(files.map { ($0.string, $1) }) { $1 }))
    }

    /// The file at a URL. It may be replaced at any time, and later requests get the new one.
    public subscript(url: SourceURL) -> File? {
        get { self.state.withLock { $0.files[url.string] } }
        set { self.state.withLock { $0.files[url.string] = newValue } }
    }

    /// The requests so far, in the order they were sent.
    public var requests: [TransportRequest] { self.state.withLock { $0.requests } }

    public func send(_ request: TransportRequest) async throws -> TransportResponse {
        let file = self.state.withLock { state in
            state.requests.append(request)
            return state.files[request.url.string]
        }
        return file?.answer(request.fields) ?? TransportResponse(status: 404, fields: [.contentLength: "0"])
    }
}

extension InMemoryTransport.File {
    fileprivate func answer(_ request: HTTPFields) -> TransportResponse {
        guard self.status == 200 else { return self.response(self.status, self.bytes[...]) }
        if self.isKnown(request) { return TransportResponse(status: 304, fields: self.fields) }
        switch self.range(request) {
        case .whole: return self.response(200, self.bytes[...])
        case .part(let range):
            let part = self.bytes[range]
            return self.response(206, part, "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(self.bytes.count)")
        case .unsatisfiable: return self.response(416, [], "bytes */\(self.bytes.count)")
        }
    }

    private func response(
        _ status: Int, _ content: ArraySlice<UInt8>, _ contentRange: String? = nil
    ) -> TransportResponse {
        var fields = self.fields
        fields[.contentLength] = "\(content.count)"
        fields[.contentRange] = contentRange
        if self.status == 200 { fields[.acceptRanges] = "bytes" }
        return TransportResponse(status: status, fields: fields, body: Pieces(content: content))
    }

    // MARK: Conditions and ranges

    private enum Requested {
        case whole
        case part(Range<Int>)
        case unsatisfiable
    }

    /// Whether the client has the file already: `If-None-Match` compares weakly (RFC 9110, section 13.1.2).
    private func isKnown(_ request: HTTPFields) -> Bool {
        guard let known = request[.ifNoneMatch], let tag = self.fields[.eTag] else { return false }
        return known == "*" || known.split(separator: ",").contains { Self.opaque($0) == Self.opaque(tag[...]) }
    }

    private static func opaque(_ tag: Substring) -> Substring {
        let tag = tag.drop { $0 == " " }
        return tag.hasPrefix("W/") ? tag.dropFirst(2) : tag
    }

    /// The part that `Range` requests, unless `If-Range` names another version. Several ranges, other units and malformed
    /// ones are ignored, as section 14.2 allows.
    private func range(_ request: HTTPFields) -> Requested {
        guard let value = request[.range], value.hasPrefix("bytes="), self.isCurrent(request[.ifRange]) else {
            return .whole
        }
        let bounds = value.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard bounds.count == 2 else { return .whole }
        let count = self.bytes.count
        switch (Self.number(bounds[0]), Self.number(bounds[1])) {
        case (let first?, nil) where bounds[1].isEmpty:
            return first < count ? .part(first..<count) : .unsatisfiable
        case (let first?, let last?) where first <= last:
            return first < count ? .part(first..<min(last, count - 1) + 1) : .unsatisfiable
        case (nil, let length?) where bounds[0].isEmpty:
            return length > 0 && count > 0 ? .part(max(count - length, 0)..<count) : .unsatisfiable
        default: return .whole
        }
    }

    /// Whether `If-Range` names this version. Tags are compared strongly, dates for equality (section 13.1.5).
    private func isCurrent(_ condition: String?) -> Bool {
        guard let condition else { return true }
        return condition.hasPrefix("\"") ? condition == self.fields[.eTag] : condition == self.fields[.lastModified]
    }

    private static func number(_ digits: Substring) -> Int? {
        digits.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(digits) : nil
    }

    /// The content in pieces, so that a download through this transport is written step by step as from a network.
    private struct Pieces: AsyncSequence, Sendable {
        /// 64 KiB: about what a socket delivers at a time.
        private static let lengthMax = 64 << 10

        struct AsyncIterator: AsyncIteratorProtocol {
            var rest: ArraySlice<UInt8>

            mutating func next() async -> [UInt8]? {
                guard !self.rest.isEmpty else { return nil }
                let piece = self.rest.prefix(Pieces.lengthMax)
                self.rest = self.rest.dropFirst(piece.count)
                return Array(piece)
            }
        }

        let content: ArraySlice<UInt8>

        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(rest: self.content) }
    }
}
