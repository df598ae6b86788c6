/// Runs an origin on the loopback interface for the duration of `body`.
public func withOrigin<Value>(
    _ configuration: Origin.Configuration = .init(),
    _ body: (Origin) async throws -> Value
) async throws -> Value {
    let server = try OriginServer(configuration)
    let outcome: Result<Value, any Error>
    do {
        let port = try await server.listen(port: configuration.port)
        outcome = .success(try await body(Origin(port: port, configuration: configuration, server: server)))
    } catch {
        outcome = .failure(error)
    }
    try await server.shutDown()
    return try outcome.get()
}

/// An HTTP/1.1 server with content of any size and many faults, both selected by the URL.
///
/// `/<SIZE>/<anything>/<name>?key=value&key=value` is answered with SIZE bytes of ``OriginContent``. Sizes take K, M, G
/// or T, times take ms or s, values are percent-decoded, and the keys combine:
///
/// - content: `seed=N` `etag=TEXT|none|weak|random` `last-modified=SECONDS|none` `type=MIME` `encoding=CODING`
///   `disposition=RAW` `change-after=REQUESTS:SEED` `change-at=BYTES:SEED` `overwrite-at=BYTES:SEED` (in
///   place: the rest of an answer that is being sent has the new content) `empty=200`; `etag-raw=BYTES`
///   `modified-raw=BYTES` (several: one per version of the content, the last for the rest) `nodes=SEED:SEED…` (a farm,
///   whose nodes take turns with connections)
/// - pace: `rate=N` (per connection) `total-rate=N` (all requests of the URL) `slow=K:RATE` (the K-th request)
///   `latency=T` `slow-head=T` (a byte of the head per T)
/// - cuts, of the first COUNT bodies (default 1, or `all`): `stall-after=BYTES[:COUNT]` `reset-after=BYTES[:COUNT]`
///   `close-after=BYTES[:COUNT]`; `stall-at=OFFSET` (of every body, at this byte of the content); `close-notify=no`
/// - refusals: `drop=COUNT` `no-answer=COUNT` `limit=N` `limit-status=STATUS|reset` `fail=STATUS:COUNT[:SKIP]`
///   `fail-range=FROM:STATUS` `retry-after=RAW` `auth=USER:PASS`
/// - redirects: `redirect=STATUS:LOCATION` (several: one per request, the last for the rest) `redirect-to-self=STATUS`
///   `redirect-hops=N` `redirect-loop` `expires=T` (with the `token` that `redirect-to-self` adds)
/// - ranges:
///   `ranges=no|advertised|first-only|shift:N|mislabel:N|relabel:N|short:N|long:N|no-content-range|star|total:N|`
///   `multipart|garbage|unasked|huge|416` `if-range=ignore|broken`
/// - lengths: `length=none|chunked|chunked-cut:BYTES|wrong:N|two|negative|huge|both` `endless`
/// - whole answers: `raw=BYTES` (several: one per request, the last for the rest), and FIN
/// - heads: `head-size=N` `head-fields=N` `interim=N` `status-line=RAW` `field=NAME:RAW` `garbage` `http09`
///
/// An unknown key is answered with 400 and its name. Requests are counted by path and query.
public struct Origin: Sendable {
    public struct Configuration: Hashable, Sendable {
        /// `127.0.0.1`, `::1` or both; URLs contain the first.
        public var hosts: [String]
        /// Zero lets the system choose.
        public var port: Int
        public var tls: Bool
        public var certificate: Certificate
        /// Accepts at most TLS 1.1, which is deprecated.
        public var isLegacyTLS = false
        public var eventLoops: Int

        public init(
            hosts: [String] = ["127.0.0.1"],
            port: Int = 0,
            tls: Bool = false,
            certificate: Certificate = .good,
            eventLoops: Int = 1
        ) {
            precondition(!hosts.isEmpty, "an origin needs an address")
            self.hosts = hosts
            self.port = port
            self.tls = tls
            self.certificate = certificate
            self.eventLoops = eventLoops
        }
    }

    /// The certificate that a TLS origin sends.
    public enum Certificate: String, CaseIterable, Hashable, Sendable {
        /// For `localhost`, `127.0.0.1` and `::1`, by ``Origin/certificateAuthorityPEM``.
        case good
        case expired
        case wrongHost = "wrong-host"
        case selfSigned = "self-signed"
        /// Self-signed, with a key that few servers have.
        case p521, ed25519
    }

    /// The authority that a client must trust.
    public static let certificateAuthorityPEM = OriginCertificates.authority

    public let port: Int
    private let configuration: Configuration
    private let server: OriginServer

    init(port: Int, configuration: Configuration, server: OriginServer) {
        self.port = port
        self.configuration = configuration
        self.server = server
    }

    public var log: OriginLog { self.server.log }

    /// The URL of a path at this origin, with its first host or with another name of it.
    public func url(_ pathAndQuery: String, host: String? = nil) -> String {
        let host = host ?? self.configuration.hosts[0]
        let authority = host.contains(":") ? "[\(host)]" : host
        return "\(self.configuration.tls ? "https" : "http")://\(authority):\(self.port)\(pathAndQuery)"
    }

    /// The URL of a resource without its query. The origin keeps the query until it gets another one, so that one URL
    /// can change its behaviour.
    public func plainURL(_ resource: String) -> String {
        let mark = resource.firstIndex(of: "?") ?? resource.endIndex
        let path = String(resource[..<mark])
        self.server.resources.remember(query: String(resource[mark...].dropFirst()), of: path)
        return self.url(path)
    }

    /// Asks `route` about every request before its URL: for the URLs of other servers, and recorded answers.
    public func route(_ route: @escaping @Sendable (RoutedRequest) -> RoutedAnswer?) {
        self.server.resources.route(route)
    }

    /// Serves other content at a path, with any query, from the next request on.
    ///
    /// Without a size the size stays, and without an entity tag the new content has its default one.
    public func replace(_ path: String, seed: UInt64, size: Int64? = nil, etag: String? = nil) {
        self.server.resources.replace(
            path, seed: seed, size: size, entityTag: etag.map(Behaviour.EntityTag.init) ?? .standard)
    }

    /// Clears all requests, counts and replacements; requests in progress continue.
    public func reset() {
        self.server.resources.reset()
        self.log.reset()
    }

    /// Refuses new connections. Open ones continue.
    public func stopAccepting() async throws {
        try await self.server.stopListening()
    }

    /// Accepts connections again, at the same port.
    public func resumeAccepting() async throws {
        _ = try await self.server.listen(port: self.port)
    }

    /// Resets all open connections.
    public func disconnect() async throws {
        try await self.server.disconnect()
    }
}
