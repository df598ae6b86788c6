package import HTTPTypes
package import SegmentedDownloadCore

/// A transport for HTTP requests. The engine reaches the network only through this protocol.
///
/// Programs implement the smaller ``DownloadTransport``.
package protocol HTTPTransport: Sendable {
    /// Sends a GET request and passes the response head and body to `consume`.
    ///
    /// If `consume` returns before the end of the body, the connection is closed; otherwise it may be reused. Redirects
    /// are not followed.
    ///
    /// - Throws: ``DownloadError`` for a network error, `CancellationError` if the task is cancelled, and any error that
    ///   `consume` throws.
    func withResponse<Answer: Sendable>(
        to request: TransportRequest,
        _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
    ) async throws -> Answer

    /// Sets an owner's limit; `nil` removes it. All connections comply with the strictest limit.
    func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier)

    /// Sets the network policy for all connections, open ones included.
    func apply(_ policy: NetworkPolicy)

    /// The first thread of the connections; `nil` if they have none of their own. Work on it must not block.
    var executor: (any TaskExecutor)? { get }
}

extension HTTPTransport {
    /// Does nothing: a simulated network has no interfaces.
    package func apply(_ policy: NetworkPolicy) {}

    package var executor: (any TaskExecutor)? { nil }
}

/// A response body, read on demand: no more than one piece is buffered.
package protocol ResponseBody {
    /// The next piece; `nil` after the end of a complete body.
    func next() async throws -> (any BodyChunk)?

    /// The fields that follow the body, valid after ``next()`` has returned `nil`. Empty for a transport that has none.
    var trailers: HTTPFields { get }

    /// The first bytes of a body that is not read otherwise, as far as they arrive within a time; empty for a transport
    /// without real time.
    func beginning(lengthMax: Int, within time: Duration) async -> [UInt8]
}

extension ResponseBody {
    package var trailers: HTTPFields { HTTPFields() }

    package func beginning(lengthMax: Int, within time: Duration) async -> [UInt8] { [] }
}

/// A piece of a response body.
package protocol BodyChunk: Sendable {
    var count: Int { get }
    func withBytes<Answer>(_ body: (UnsafeRawBufferPointer) throws -> Answer) rethrows -> Answer
}
