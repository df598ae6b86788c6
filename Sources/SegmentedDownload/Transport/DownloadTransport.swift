public import HTTPTypes

/// Sends the requests of downloads in place of the built-in HTTP client.
///
/// Set it in ``DownloadConfiguration/transport``, for example to test a program without a network. A transport only
/// sends single requests. The library still follows redirects, checks every response, retries, limits rates and times
/// out.
///
/// ```swift
/// /// Sends requests through a client that the program already has.
/// struct OwnTransport: DownloadTransport {
///     let client: OwnClient
///
///     func send(_ request: TransportRequest) async throws -> TransportResponse {
///         let response = try await self.client.get(request.url.string, request.fields)
///         return TransportResponse(status: response.status, fields: response.fields, body: response.pieces)
///     }
/// }
/// ```
///
/// ``InMemoryTransport`` is a transport for tests.
public protocol DownloadTransport: Sendable {
    /// Sends one GET request and returns the head of the response, with a body that is read later. Redirects are not
    /// followed.
    ///
    /// Several requests are sent at once, from one thread, so a transport must not block it. The task that sends a
    /// request also reads its body. It is cancelled when the response is no longer wanted: then end soon, with any
    /// error. A body that is not read to its end is released.
    ///
    /// - Throws: A ``DownloadError`` ends the download as that error, unless it is transient. Any other error counts as
    ///   a failure of the network, and the request is sent again. ``DownloadOptions/retries`` limits how often.
    func send(_ request: TransportRequest) async throws -> TransportResponse
}

/// A GET request to one URL.
public struct TransportRequest: Hashable, Sendable {
    /// The URL, without user name, password and fragment.
    public var url: SourceURL
    /// All fields of the request except those that depend on the connection, such as `Host`.
    public var fields: HTTPFields
    /// Whether a client certificate may be presented.
    public var allowsClientCertificate: Bool
    /// Whether the connection may lead to a special address: see ``DownloadOptions/allowsPrivateAddresses``.
    public var allowsPrivateAddresses: Bool
    /// The number of requested bytes; `nil` if the response decides.
    package var length: Int64?

    public init(
        url: SourceURL, fields: HTTPFields, allowsClientCertificate: Bool = true, allowsPrivateAddresses: Bool = true
    ) {
        self.url = url
        self.fields = fields
        self.allowsClientCertificate = allowsClientCertificate
        self.allowsPrivateAddresses = allowsPrivateAddresses
    }
}

/// The final response to a ``TransportRequest``.
public struct TransportResponse: Sendable {
    /// The HTTP status.
    public var status: Int
    /// The fields of the head. With `Content-Length` a body that ends early is detected.
    public var fields: HTTPFields
    let makePieces: @Sendable () -> any BodyPieces

    /// Creates a response with a body that arrives in pieces.
    ///
    /// - Parameter body: The content, after any transfer coding was removed. It is iterated once, and its next piece is
    ///   requested when the one before has been written.
    public init<Body: AsyncSequence & Sendable>(status: Int, fields: HTTPFields = [:], body: Body)
    where Body.Element == [UInt8] {
        self.status = status
        self.fields = fields
        self.makePieces = { SequencePieces(body) }
    }

    /// Creates a response with a short body.
    public init(status: Int, fields: HTTPFields = [:], bytes: [UInt8] = []) {
        self.init(status: status, fields: fields, body: SinglePiece(bytes: bytes))
    }
}

/// The pieces of a body, one after another.
protocol BodyPieces {
    func next() async throws -> [UInt8]?
}

private final class SequencePieces<Body: AsyncSequence>: BodyPieces where Body.Element == [UInt8] {
    // Only one task reads the body, which `AsyncIteratorProtocol` cannot express.
    nonisolated(unsafe) private var iterator: Body.AsyncIterator

    init(_ body: Body) {
        self.iterator = body.makeAsyncIterator()
    }

    func next() async throws -> [UInt8]? { try await self.iterator.next() }
}

private struct SinglePiece: AsyncSequence, Sendable {
    struct AsyncIterator: AsyncIteratorProtocol {
        var bytes: [UInt8]?

        mutating func next() async -> [UInt8]? { self.bytes.take() }
    }

    let bytes: [UInt8]

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(bytes: self.bytes) }
}
