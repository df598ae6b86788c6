import AsyncHTTPClient
import HTTPTypes
package import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
package import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The transport over real sockets: AsyncHTTPClient with HTTP/1.1, tuned for large bodies.
///
/// One event loop with a large receive buffer is as fast as a plain `recv` loop; `Design.md` has the measurements. Where
/// decryption keeps one busy, ``ReceivingLoops`` adds others.
package struct AsyncHTTPClientTransport: HTTPTransport {
    package struct Configuration: Sendable {
        package var connectTimeout: Duration = .seconds(15)
        /// The trusted authorities and the client certificate.
        package var trust = TrustPolicy()
        /// The proxies to use.
        package var proxies = ProxyPolicy()
        /// Fixed addresses of hosts, used instead of name resolution.
        package var addresses: [HostAddress] = []
        /// 65,536: never the limit, because the engine's budget decides and may be raised at any time.
        package var connectionsPerHost = 1 << 16
        /// The network interfaces that connections may use.
        package var network = NetworkPolicy()
        /// The event loops to use; nil for threads of the transport's own.
        package var group: (any EventLoopGroup)?
        /// How many of them are used.
        var loops = ReceivingLoops.Plan.single
        /// Whether the loops' threads end with the process instead of when `body` returns.
        var endsWithProcess = false

        package init() {}
    }

    private let configuration: Configuration
    private let clients: HTTPClients
    let loops: ReceivingLoops
    package let executor: (any TaskExecutor)?
    private let buffers: ReceiveBuffers
    private let connections: ConnectionRegister
    private let trailers: TrailerFields
    private let relay: TLSRelay

    /// Runs `body` with a transport, and shuts the transport down when `body` returns, its threads only if they do not end
    /// with the process.
    package static func withTransport<Answer: Sendable>(
        _ configuration: Configuration = Configuration(),
        _ body: (AsyncHTTPClientTransport) async throws -> Answer
    ) async throws -> Answer {
        try DescriptorLimit.check()
        let tls = try configuration.trust.tlsConfiguration()
        let buffers = ReceiveBuffers()
        let connections = ConnectionRegister()
        let trailers = TrailerFields()
        connections.apply(configuration.network)
        let loops = ReceivingLoops(configuration.loops, of: configuration.group)
        let relay = TLSRelay(on: loops.first, configuration, connections)
        let clients = HTTPClients(on: loops) { route in
            var own = tls
            // The client certificate is presented to origins, not to proxies.
            if !route.allowsClientCertificate || route.way.isForwarding {
                own.certificateChain = []
                own.privateKey = nil
            }
            var settings = HTTPClient.Configuration(tlsConfiguration: own)
            settings.redirectConfiguration = .disallow
            settings.localAddress = route.localAddress
            settings.httpVersion = .http1Only
            settings.decompression = .disabled
            settings.timeout = .init(connect: .nanoseconds(configuration.connectTimeout.inNanoseconds), read: nil)
            settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = configuration.connectionsPerHost
            settings.connectionPool.retryConnectionEstablishment = false
            // The client would describe every request to a tracer that does nothing. The type is compared by name,
            // because segdl does not depend on its module.
            if settings.tracing.tracer.map({ "\(type(of: $0))" }) == "NoOpTracer" { settings.tracing.tracer = nil }
            settings.http1_1ConnectionDebugInitializer = { channel in
                Self.prepare(
                    channel, on: route.way, checksNames: configuration.trust.verifiesCertificates, buffers,
                    connections, trailers, allowsPrivateAddresses: route.allowsPrivateAddresses)
            }
            return settings
        }
        let result: Result<Answer, any Error>
        do {
            result = .success(
                try await body(
                    AsyncHTTPClientTransport(
                        configuration: configuration, clients: clients, loops: loops, buffers: buffers,
                        connections: connections, trailers: trailers, relay: relay)))
        } catch {
            result = .failure(error)
        }
        relay.close()
        if configuration.endsWithProcess { ProcessLifetime.keep((clients, loops)) }
        await Self.shutDown(clients, loops, endsLoops: !configuration.endsWithProcess)
        return try result.get()
    }

    /// Prepares a new connection, on its event loop, before anything is sent.
    private static func prepare(
        _ channel: any Channel, on way: HTTPClients.Way, checksNames: Bool, _ buffers: ReceiveBuffers,
        _ connections: ConnectionRegister, _ trailers: TrailerFields, allowsPrivateAddresses: Bool
    ) -> EventLoopFuture<Void> {
        if !allowsPrivateAddresses, SpecialAddress.isSpecial(channel.remoteAddress?.ipAddress ?? "") {
            return channel.eventLoop.makeFailedFuture(SpecialAddress.refusal(of: "the connection's peer"))
        }
        // A connection to the relay stays on this machine. The relay admits the connection to the proxy.
        let admitted =
            way.isRelayed ? channel.eventLoop.makeSucceededVoidFuture() : connections.admit(channel)
        return admitted.flatMapThrowing {
            try Self.addHandlers(to: channel, on: way, checksNames: checksNames, trailers)
        }
        .flatMap { isTLS in
            let allocator = buffers.take(isTLS: isTLS)
            channel.closeFuture.whenComplete { _ in buffers.giveBack() }
            return channel.setOption(.recvAllocator, value: allocator)
        }.flatMap { channel.setOption(.maxMessagesPerRead, value: 1) }
    }

    /// - Returns: Whether the connection uses TLS.
    private static func addHandlers(
        to channel: any Channel, on way: HTTPClients.Way, checksNames: Bool, _ trailers: TrailerFields
    ) throws -> Bool {
        let pipeline = channel.pipeline.syncOperations
        let encoder = try pipeline.handler(type: HTTPRequestEncoder.self)
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
        try pipeline.addHandlers(HeadGuard(), TrailerFields.Tap(trailers), position: .after(decoder))
        var proxy: Proxy?
        if case .forwarding(let given) = way { proxy = given }
        try pipeline.addHandler(HeadBytes(), position: .before(encoder))
        try pipeline.addHandler(RequestTarget(isForwarded: proxy != nil), position: .after(encoder))
        if checksNames, let certificate = try? pipeline.nioSSL_peerCertificate() {
            try pipeline.addHandler(PeerNameCheck(certificate, host: proxy?.host), position: .after(encoder))
        }
        return (try? pipeline.handler(type: NIOSSLClientHandler.self)) != nil
    }

    private init(
        configuration: Configuration, clients: HTTPClients, loops: ReceivingLoops,
        buffers: ReceiveBuffers, connections: ConnectionRegister, trailers: TrailerFields, relay: TLSRelay
    ) {
        self.configuration = configuration
        self.clients = clients
        self.loops = loops
        self.executor = LoopExecutor(loops.first)
        self.buffers = buffers
        self.connections = connections
        self.trailers = trailers
        self.relay = relay
    }

    package func apply(_ policy: NetworkPolicy) {
        self.connections.apply(policy)
    }

    package func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {
        self.buffers.update(limits, for: owner)
    }

    package func withResponse<Answer: Sendable>(
        to request: TransportRequest,
        _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
    ) async throws -> Answer {
        // The client looks at a cancellation only when it has to wait.
        try Task.checkCancellation()
        let proxy = self.configuration.proxies.proxy(for: request.url.origin)
        // Errors on the way to a proxy are reported as the proxy's.
        let host = proxy.map { "\(request.url.host) through the proxy \($0)" } ?? request.url.host
        let (buffers, isTLS) = (self.buffers, request.url.origin.scheme == "https")
        let reception = Reception { buffers.lengthAllowed(isTLS: isTLS) }
        let place = self.loops.place(isTLS: isTLS, length: request.length)
        let number = self.trailers.open()
        defer {
            reception.finish()
            self.trailers.close(number)
            self.loops.end(place)
        }
        let head: HTTPResponseHead
        let start = NIODeadline.now()
        do {
            var (client, message) = try await self.message(request, through: proxy)
            message.headers.replaceOrAdd(name: TrailerFields.requestField, value: "\(number)")
            message.headers.remove(name: RequestTarget.requestField)
            if request.url.hasOtherEncoding {
                message.headers.add(name: RequestTarget.requestField, value: request.url.target)
            }
            head = try await reception.head(of: message, from: client, on: place.preference)
        } catch {
            if let proxy, !(error is CancellationError), let failure = self.relay.failure(of: proxy, since: start) {
                throw Self.failure(failure, host: "the proxy \(proxy)")
            }
            if proxy == nil, await Self.isStalledHandshake(error, request.url, on: self.loops.first) {
                throw DownloadError(
                    .tls, "\(request.url.host): no TLS handshake within the connect timeout", isTransient: true)
            }
            throw Self.failure(error, host: host)
        }
        try Self.checkSize(of: head, host: host)
        let body = Body(reception: reception, storedTrailers: self.trailers, number: number, host: host)
        return try await consume(Self.head(head), body)
    }

    /// The request to send, and the client to send it with.
    private func message(
        _ request: TransportRequest, through proxy: Proxy?
    ) async throws -> (HTTPClient, HTTPClient.Request) {
        let origin = request.url.origin
        var localAddress = try await self.connections.localAddress(to: proxy?.host ?? origin.host)
        var headers = HTTPHeaders()
        for field in request.fields where field.name != .cookie {
            headers.add(name: field.name.rawName, value: field.value)
        }
        // HTTP/1.1 requires a single `Cookie` field (RFC 6265, section 5.4), which `HTTPFields` splits.
        let cookies = request.fields[values: .cookie]
        if !cookies.isEmpty { headers.add(name: "Cookie", value: cookies.joined(separator: "; ")) }
        // Without a client certificate all requests share the same connections.
        let allowsClientCertificate = request.allowsClientCertificate || self.configuration.trust.certificateFile == nil
        func route(_ way: HTTPClients.Way) -> HTTPClients.Route {
            HTTPClients.Route(
                way: way, allowsClientCertificate: allowsClientCertificate,
                allowsPrivateAddresses: proxy != nil || request.allowsPrivateAddresses, localAddress: localAddress)
        }
        guard let proxy else {
            if !request.allowsPrivateAddresses { try await self.requirePublicAddress(of: origin) }
            return (
                self.clients[route(.direct(self.addresses(of: origin)))],
                try HTTPClient.Request(url: request.url.string, headers: headers)
            )
        }
        var url = request.url.string
        let way: HTTPClients.Way
        switch proxy.kind {
        case .http where origin.scheme != "http": way = .tunnel(proxy, relay: nil)
        case .https where origin.scheme != "http":
            // The relay chooses the local address of the connection to the proxy.
            localAddress = nil
            way = .tunnel(proxy, relay: try await self.relay.port(to: proxy))
        case .http, .https:
            url = "\(proxy.kind == .http ? "http" : "https")://\(proxy)\(request.url.target)"
            headers.add(name: "Host", value: request.url.host)
            if let credentials = proxy.credentials {
                headers.add(name: "Proxy-Authorization", value: credentials.fieldValue)
            }
            way = .forwarding(proxy)
        case .socks5:
            let known = self.addresses(of: origin)
            way = .socks(proxy, known.isEmpty ? try await self.lookUp(origin) : known)
        case .socks5h: way = .socks(proxy, [:])
        }
        return (self.clients[route(way)], try HTTPClient.Request(url: url, headers: headers))
    }

    private func addresses(of origin: SourceURL.Origin) -> [String: String] {
        let own = self.configuration.addresses.last { $0.host == origin.host && $0.port == origin.port }
        if let own { return [own.host: own.address] }
        // Not every resolver knows these names (RFC 6761, section 6.3).
        return origin.host.hasSuffix(".localhost") ? [origin.host: "127.0.0.1"] : [:]
    }

    /// Throws if a host has no public address, so that no connection to a special one is begun. The client looks the name
    /// up again, and the address of the connection is examined too, before the request is sent.
    private func requirePublicAddress(of origin: SourceURL.Origin) async throws {
        let known = self.addresses(of: origin)
        let addresses = known.isEmpty ? try await self.lookUp(origin, hint: nil) : known
        let address = addresses[origin.host] ?? origin.host.filter { $0 != "[" && $0 != "]" }
        guard !SpecialAddress.isSpecial(address) else { throw SpecialAddress.refusal(of: origin.host) }
    }

    /// 4 threads for looking names up: a name whose server does not answer blocks one for half a minute.
    private static let lookups: NIOThreadPool = {
        let pool = NIOThreadPool(numberOfThreads: 4)
        pool.start()
        return pool
    }()

    /// Resolves a host's name; empty if the host is an address.
    private func lookUp(
        _ origin: SourceURL.Origin, hint: String? = "Have the proxy look it up: socks5h://"
    ) async throws -> [String: String] {
        guard !origin.host.hasPrefix("["), (try? SocketAddress(ipAddress: origin.host, port: origin.port)) == nil else {
            return [:]
        }
        let address = try? await Self.lookups.runIfActive {
            try SocketAddress.makeAddressResolvingHost(origin.host, port: origin.port)
        }
        guard let text = address?.ipAddress else {
            throw DownloadError(
                .network, "\(origin.host) was not found (name lookup failed)",
                hint: hint, isTransient: true)
        }
        return [origin.host: text]
    }

    /// 64 KiB and 200 fields: what servers and proxies accept themselves.
    private static let headLengthMax = 64 << 10
    private static let headFieldsMax = 200

    /// Throws if a response head is too large. The client's own limit is higher.
    private static func checkSize(of response: HTTPResponseHead, host: String) throws {
        // Each field also has a colon, a space and a line end.
        let length = response.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        guard length <= Self.headLengthMax, response.headers.count <= Self.headFieldsMax else {
            throw DownloadError(
                .protocol,
                "\(host) sent a head of \(response.headers.count) fields and \(length) bytes, more than "
                    + "\(Self.headFieldsMax) and \(Self.headLengthMax)")
        }
    }

    private static func head(_ response: HTTPResponseHead) -> ResponseHead {
        ResponseHead(
            status: Int(response.status.code), fields: Self.fields(response.headers), received: SystemClock.date)
    }

    private static func fields(_ headers: HTTPHeaders) -> HTTPFields {
        var fields = HTTPFields()
        for (name, value) in headers {
            // A field whose name is not a token is ignored.
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: ObsText.meaning(value, of: name)))
        }
        return fields
    }

    private struct Body: ResponseBody {
        let reception: Reception
        let storedTrailers: TrailerFields
        /// The number of the response's trailers.
        let number: UInt64
        let host: String

        var trailers: HTTPFields { AsyncHTTPClientTransport.fields(self.storedTrailers.fields(of: self.number)) }

        func next() async throws -> (any BodyChunk)? {
            do {
                return try await self.reception.next()
            } catch {
                throw AsyncHTTPClientTransport.failure(error, host: self.host)
            }
        }
    }
}

extension ByteBuffer: BodyChunk {
    package var count: Int { self.readableBytes }

    package func withBytes<Answer>(_ body: (UnsafeRawBufferPointer) throws -> Answer) rethrows -> Answer {
        try self.withUnsafeReadableBytes(body)
    }
}

extension Duration {
    var inNanoseconds: Int64 {
        self.components.seconds * 1_000_000_000 + self.components.attoseconds / 1_000_000_000
    }
}
