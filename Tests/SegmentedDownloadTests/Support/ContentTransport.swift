import HTTPTypes
import Origin
import SegmentedDownload
import Synchronization
import TestSupport

/// A transport as a program may write it: it serves the same content at every URL, and counts.
final class ContentTransport: DownloadTransport {
    private struct State {
        var requests: [TransportRequest] = []
        /// The end of the bytes that were delivered, by URL.
        var reach: [String: Int64] = [:]
        var isHolding = false
        var heldCount = 0
        var cancelledCount = 0
    }

    /// 64 KiB: the length of a piece.
    static let pieceLength: Int64 = 64 << 10

    let length: Int64
    private let content = OriginContent(seed: 1)
    private let onPiece: @Sendable (ContentTransport, _ offset: Int64, _ start: Int64) async throws -> Void
    private let state = Mutex(State())

    /// - Parameter onPiece: Called before each piece, with its offset in the file and that of the response.
    init(
        length: Int64,
        onPiece: @escaping @Sendable (ContentTransport, _ offset: Int64, _ start: Int64) async throws -> Void = {
            _, _, _ in
        }
    ) {
        self.length = length
        self.onPiece = onPiece
    }

    var configuration: DownloadConfiguration {
        var configuration = DownloadConfiguration()
        configuration.transport = self
        return configuration
    }

    /// A request for a file of this transport.
    func request(_ name: String = "file.bin", in directory: String = ".") throws -> DownloadRequest {
        var request = DownloadRequest(
            try SourceURL("https://example.org/\(name)"), to: .file(directory + "/" + name))
        request.segments = .exactly(4)
        request.stallTimeout = .seconds(3600)
        return request
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        self.state.withLock { $0.requests.append(request) }
        let bounds = (request.fields[.range] ?? "bytes=0-").dropFirst("bytes=".count)
            .split(separator: "-").compactMap { Int64($0) }
        let range = bounds[0]..<(bounds.count > 1 ? bounds[1] + 1 : self.length)
        let fields: HTTPFields = [
            .contentRange: "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(self.length)",
            .contentLength: "\(range.count)", .eTag: "\"1\"",
        ]
        return TransportResponse(
            status: 206, fields: fields, body: Body(transport: self, url: request.url.string, range: range))
    }

    private struct Body: AsyncSequence {
        struct AsyncIterator: AsyncIteratorProtocol {
            let body: Body
            var offset: Int64

            mutating func next() async throws -> [UInt8]? {
                guard self.offset < self.body.range.upperBound else { return nil }
                let transport = self.body.transport
                try await transport.onPiece(transport, self.offset, self.body.range.lowerBound)
                let end = Swift.min(self.offset + ContentTransport.pieceLength, self.body.range.upperBound)
                defer { self.offset = end }
                transport.state.withLock { $0.reach[self.body.url] = Swift.max($0.reach[self.body.url] ?? 0, end) }
                return transport.content.bytes(self.offset..<end)
            }
        }

        let transport: ContentTransport
        let url: String
        let range: Range<Int64>

        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: self, offset: self.range.lowerBound) }
    }

    // MARK: What tests ask and decide

    var requests: [TransportRequest] { self.state.withLock { $0.requests } }

    /// The end of the bytes that were delivered of a request's file.
    func reach(_ request: DownloadRequest) -> Int64 {
        self.state.withLock { $0.reach[request.source.string] ?? 0 }
    }

    /// Whether ``holdIfAsked()`` holds.
    var isHolding: Bool {
        get { self.state.withLock { $0.isHolding } }
        set { self.state.withLock { $0.isHolding = newValue } }
    }

    /// How many calls were held, and how many of them were cancelled.
    var held: (count: Int, cancelled: Int) { self.state.withLock { ($0.heldCount, $0.cancelledCount) } }

    /// While ``isHolding``, waits until the task is cancelled, like a server that sends nothing more.
    func holdIfAsked() async throws {
        guard self.isHolding else { return }
        self.state.withLock { $0.heldCount += 1 }
        let (never, _) = AsyncStream.makeStream(of: Never.self)
        for await _ in never {}
        self.state.withLock { $0.cancelledCount += 1 }
        throw CancellationError()
    }
}
