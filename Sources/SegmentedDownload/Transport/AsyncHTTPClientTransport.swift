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
    private let lookup: HostLookup
    /// How the proxies want digests of passwords.
    private let logins: DigestLogins

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
        let contexts = TLSContexts(tls)
        let logins = DigestLogins()
        let clients = HTTPClients(on: loops) { route in
            // The client certificate is presented to origins, not to proxies.
            let presents = route.allowsClientCertificate && route.way.proxy == nil
            var settings = HTTPClient.Configuration(tlsConfiguration: presents ? tls : tls.withoutCertificate)
            if case .direct(let addresses) = route.way { settings.dnsOverride = addresses }
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
                    channel, on: route, checksNames: configuration.trust.verifiesCertificates, buffers, connections,
                    trailers
                ) { proxy, goal in
                    let tunnel = ProxyTunnel(
                        proxy: proxy, goal: goal, patience: .nanoseconds(configuration.connectTimeout.inNanoseconds),
                        tls: goal.usesTLS ? try contexts.context(presents: route.allowsClientCertificate) : nil,
                        checksNames: configuration.trust.verifiesCertificates)
                    return tunnel.open(
                        on: channel,
                        authorization: proxy.authorization(
                            logins[proxy.loginName], method: "CONNECT", target: "\(goal)"))
                }
            }
            return settings
        }
        let result: Result<Answer, any Error>
        do {
            result = .success(
                try await body(
                    AsyncHTTPClientTransport(
                        configuration: configuration, clients: clients, loops: loops, buffers: buffers,
                        connections: connections, trailers: trailers, logins: logins)))
        } catch {
            result = .failure(error)
        }
        if configuration.endsWithProcess { ProcessLifetime.keep((clients, loops)) }
        await Self.shutDown(clients, loops, endsLoops: !configuration.endsWithProcess)
        return try result.get()
    }

    /// Prepares a new connection, on its event loop, before anything is sent.
    ///
    /// - Parameter openTunnel: Opens a tunnel on it.
    private static func prepare(
        _ channel: any Channel, on route: HTTPClients.Route, checksNames: Bool, _ buffers: ReceiveBuffers,
        _ connections: ConnectionRegister, _ trailers: TrailerFields,
        openTunnel: @escaping @Sendable (Proxy, TunnelGoal) throws -> EventLoopFuture<Void>
    ) -> EventLoopFuture<Void> {
        let loop = channel.eventLoop
        let isForbidden =
            !route.allowsPrivateAddresses && SpecialAddress.isSpecial(channel.remoteAddress?.ipAddress ?? "")
        let admitted =
            isForbidden
            ? loop.makeFailedFuture(SpecialAddress.refusal(of: "the connection's peer")) : connections.admit(channel)
        let prepared = admitted.flatMapThrowing {
            try Self.addHandlers(to: channel, on: route.way, checksNames: checksNames, trailers)
            guard case .tunnel(let proxy, let goal) = route.way else { return loop.makeSucceededVoidFuture() }
            return try openTunnel(proxy, goal)
        }.flatMap { (opened: EventLoopFuture<Void>) in opened }.flatMap {
            let isTLS = (try? channel.pipeline.syncOperations.handler(type: NIOSSLClientHandler.self)) != nil
            let allocator = buffers.take(isTLS: isTLS)
            channel.closeFuture.whenComplete { _ in buffers.giveBack() }
            return channel.setOption(.recvAllocator, value: allocator)
        }.flatMap { channel.setOption(.maxMessagesPerRead, value: 1) }.flatMap { KeepAlive.begin(on: channel) }
        // The client forgets a connection that is not prepared.
        prepared.whenFailure { _ in channel.close(promise: nil) }
        return prepared
    }

    private static func addHandlers(
        to channel: any Channel, on way: HTTPClients.Way, checksNames: Bool, _ trailers: TrailerFields
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        let encoder = try pipeline.handler(type: HTTPRequestEncoder.self)
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
        try pipeline.addHandlers(HeadGuard(), TrailerFields.Tap(trailers), position: .after(decoder))
        let isForwarded = if case .forwarding = way { true } else { false }
        try pipeline.addHandler(HeadBytes(), position: .before(encoder))
        try pipeline.addHandler(RequestTarget(isForwarded: isForwarded), position: .after(encoder))
        guard checksNames, let certificate = try? pipeline.nioSSL_peerCertificate() else { return }
        if let proxy = way.proxy {
            if let failure = CertificateNames(certificate).failure(for: proxy.host) { throw failure }
        } else {
            try pipeline.addHandler(PeerNameCheck(certificate), position: .after(encoder))
        }
    }

    private init(
        configuration: Configuration, clients: HTTPClients, loops: ReceivingLoops,
        buffers: ReceiveBuffers, connections: ConnectionRegister, trailers: TrailerFields, logins: DigestLogins
    ) {
        self.configuration = configuration
        self.clients = clients
        self.loops = loops
        self.executor = LoopExecutor(loops.first)
        self.buffers = buffers
        self.connections = connections
        self.trailers = trailers
        self.lookup = HostLookup(given: configuration.addresses)
        self.logins = logins
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
        let proxy = try self.configuration.proxies.proxy(for: request.url.origin)
        var (challenges, closed) = (0, 0)
        while true {
            do {
                return try await self.exchange(request, through: proxy, isLast: challenges == Self.loginsMax, consume)
            } catch is ProxyChallenge {
                challenges += 1
            } catch is HeadBytes.StaleConnection where closed < Self.closedMax {
                closed += 1
            } catch let error as HeadBytes.StaleConnection {
                throw Self.failure(error, host: request.url.host)
            }
        }
    }

    /// 2: so often a proxy's challenge is answered. The nonce of the first may be too old.
    private static let loginsMax = 2

    /// 16: a request is sent again as often as its connection turns out to be closed already. The others of the origin may be too.
    private static let closedMax = 16

    /// The proxy has refused a request with a challenge that can be answered.
    private struct ProxyChallenge: Error {}

    /// Sends a request once.
    ///
    /// - Parameter isLast: Whether a challenge of the proxy is a failure.
    private func exchange<Answer: Sendable>(
        _ request: TransportRequest, through proxy: Proxy?, isLast: Bool,
        _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
    ) async throws -> Answer {
        // Errors on the way to a proxy are reported as the proxy's.
        let host = proxy.map { "\(request.url.host) through the proxy \($0)" } ?? request.url.host
        let (buffers, isTLS) = (self.buffers, request.url.origin.scheme == "https")
        let reception = Reception { buffers.lengthAllowed(isTLS: isTLS) }
        let (route, message) = try await self.message(request, through: proxy)
        let client = self.clients.take(route)
        let place = self.loops.place(isTLS: isTLS, length: request.length)
        let number = self.trailers.open()
        defer {
            reception.finish()
            self.trailers.close(number)
            self.loops.end(place)
            self.clients.giveBack(route)
        }
        var numbered = message
        numbered.headers.add(name: TrailerFields.requestField, value: "\(number)")
        let response: HTTPResponseHead
        do {
            response = try await reception.head(of: numbered, from: client, on: place.preference)
        } catch let refusal as ConnectDialogue.Refusal {
            if !isLast, self.hasLogin(to: refusal.proxy, after: refusal.head, sent: refusal.sent) {
                throw ProxyChallenge()
            }
            throw refusal.failure
        } catch let error as HeadBytes.StaleConnection {
            throw error
        } catch ChannelError.ioOnClosedChannel {
            throw HeadBytes.StaleConnection()
        } catch {
            if proxy == nil, await Self.isStalledHandshake(error, request.url, on: self.loops.first) {
                throw DownloadError(
                    .tls, "\(request.url.host): no TLS handshake within the connect timeout", isTransient: true)
            }
            throw Self.failure(error, host: host)
        }
        try Self.checkSize(of: response, host: host)
        let head = Self.head(response)
        if case .forwarding(let proxy) = route.way {
            let sent = message.headers.first(name: Self.proxyAuthorization)
            if !isLast, self.hasLogin(to: proxy, after: head, sent: sent) { throw ProxyChallenge() }
            if let failure = Self.failure(head, of: proxy, for: request.url) { throw failure }
        }
        let body = Body(reception: reception, storedTrailers: self.trailers, number: number, host: host)
        return try await consume(head, body)
    }

    /// Whether the proxy can be asked again with an answer to its challenge.
    private func hasLogin(to proxy: Proxy, after head: ResponseHead, sent: String?) -> Bool {
        guard head.status == 407, proxy.user != nil else { return false }
        return self.logins.begin(head.challenges, by: proxy.loginName, after: sent) != nil
    }

    private static let proxyAuthorization = "Proxy-Authorization"

    /// The request to send, and the route to send it on.
    private func message(
        _ request: TransportRequest, through proxy: Proxy?
    ) async throws -> (HTTPClients.Route, HTTPClient.Request) {
        let origin = request.url.origin
        let localAddress = try await self.connections.localAddress(to: proxy?.host ?? origin.host)
        var headers = HTTPHeaders()
        for field in request.fields where field.name != .cookie {
            headers.add(name: field.name.rawName, value: field.value)
        }
        headers.remove(name: TrailerFields.requestField)
        headers.remove(name: RequestTarget.requestField)
        if request.url.hasOtherEncoding {
            headers.add(name: RequestTarget.requestField, value: request.url.target)
        }
        // HTTP/1.1 requires a single `Cookie` field (RFC 6265, section 5.4), which `HTTPFields` splits.
        let cookies = request.fields[values: .cookie]
        if !cookies.isEmpty { headers.add(name: "Cookie", value: cookies.joined(separator: "; ")) }
        var (url, way) = (request.url.string, HTTPClients.Way.direct(self.lookup.known(origin)))
        if let proxy {
            way = try await self.way(to: origin, through: proxy)
            url = "\(proxy.kind == .https ? "https" : "http")://\(proxy)\(request.url.target)"
            headers.add(name: "Host", value: request.url.host)
            let target = "http://\(request.url.host)\(request.url.target)"
            if case .forwarding = way,
                let value = proxy.authorization(self.logins[proxy.loginName], method: "GET", target: target)
            {
                headers.add(name: Self.proxyAuthorization, value: value)
            }
        } else if !request.allowsPrivateAddresses {
            try await self.lookup.requirePublicAddress(of: origin)
        }
        let route = HTTPClients.Route(
            way: way,
            // Without a client certificate all requests share the same connections.
            allowsClientCertificate: request.allowsClientCertificate || self.configuration.trust.certificateFile == nil,
            allowsPrivateAddresses: proxy != nil || request.allowsPrivateAddresses, localAddress: localAddress)
        return (route, try HTTPClient.Request(url: url, headers: headers))
    }

    private func way(to origin: SourceURL.Origin, through proxy: Proxy) async throws -> HTTPClients.Way {
        let usesTLS = origin.scheme == "https"
        let name = origin.host.filter { $0 != "[" && $0 != "]" }
        var host = name
        switch proxy.kind {
        case .http, .https: if !usesTLS { return .forwarding(proxy) }
        case .socks4, .socks5:
            host = try await self.lookup.address(
                of: origin, hint: "Have the proxy look it up: \(proxy.kind == .socks4 ? "socks4a" : "socks5h")://")
        case .socks4a, .socks5h: break
        }
        return .tunnel(proxy, TunnelGoal(name: name, host: host, port: origin.port, usesTLS: usesTLS))
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

        func beginning(lengthMax: Int, within time: Duration) async -> [UInt8] {
            await self.reception.beginning(lengthMax: lengthMax, within: time)
        }

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
