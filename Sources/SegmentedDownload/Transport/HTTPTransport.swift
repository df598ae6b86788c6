package import HTTPTypes
package import SegmentedDownloadCore

/// A transport for HTTP requests. The engine reaches the network only through this protocol.
package protocol HTTPTransport: Sendable {
    /// Sends a GET request and passes the response head and body to `consume`.
    ///
    /// If `consume` returns before the end of the body, the connection is closed; otherwise it may be reused. Redirects
    /// are not followed.
    ///
    /// - Throws: ``Failure`` for a network error, `CancellationError` if the task is cancelled, and any error that
    ///   `consume` throws.
    func withResponse<Answer: Sendable>(
        to request: TransportRequest,
        _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
    ) async throws -> Answer

    /// Sets an owner's limit; `nil` removes it. All connections comply with the strictest limit.
    func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier)

    /// Sets the network policy for all connections, open ones included.
    func apply(_ policy: NetworkPolicy)
}

extension HTTPTransport {
    /// Does nothing: a simulated network has no interfaces.
    package func apply(_ policy: NetworkPolicy) {}
}

/// A GET request to one URL.
package struct TransportRequest: Hashable, Sendable {
    package var url: SourceURL
    package var fields: HTTPFields
    /// Whether a client certificate may be presented.
    package var isIdentified: Bool

    package init(url: SourceURL, fields: HTTPFields, isIdentified: Bool = true) {
        self.url = url
        self.fields = fields
        self.isIdentified = isIdentified
    }
}

/// A response body, read on demand: no more than one piece is buffered.
package protocol ResponseBody {
    /// The next piece; `nil` after the end of a complete body.
    func next() async throws -> (any BodyChunk)?
}

/// A piece of a response body.
package protocol BodyChunk: Sendable {
    var count: Int { get }
    func withBytes<Answer>(_ body: (UnsafeRawBufferPointer) throws -> Answer) rethrows -> Answer
}
