package import HTTPTypes
package import SegmentedDownloadCore

/// The door to the network: one request, one response whose body is read piece by piece.
package protocol HTTPTransport: Sendable {
    /// Sends a GET and hands head and body to `consume`. When it returns before the body's end the connection is closed;
    /// otherwise it may serve another request. Redirects are not followed.
    ///
    /// - Throws: ``Failure`` for what the network did, `CancellationError` when the task was cancelled, and what
    ///   `consume` throws.
    func withResponse<Answer: Sendable>(
        to request: TransportRequest,
        _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
    ) async throws -> Answer

    /// Holds every connection to a limit from now on, those of others too; absent to take it back.
    func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier)

    /// Keeps every connection to a policy from now on.
    func apply(_ policy: NetworkPolicy)
}

extension HTTPTransport {
    /// Where there are no interfaces, any policy is kept.
    package func apply(_ policy: NetworkPolicy) {}
}

/// A GET request to one URL.
package struct TransportRequest: Hashable, Sendable {
    package var url: SourceURL
    package var fields: HTTPFields
    /// Whether a client certificate may be shown.
    package var isIdentified: Bool

    package init(url: SourceURL, fields: HTTPFields, isIdentified: Bool = true) {
        self.url = url
        self.fields = fields
        self.isIdentified = isIdentified
    }
}

/// A response body. Reading is pull: nothing is buffered beyond one piece.
package protocol ResponseBody {
    /// The next piece, or nothing once the body ended as it was framed to.
    func next() async throws -> (any BodyChunk)?
}

/// A piece of a response body.
package protocol BodyChunk: Sendable {
    var count: Int { get }
    func withBytes<Answer>(_ body: (UnsafeRawBufferPointer) throws -> Answer) rethrows -> Answer
}
