import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
package import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The real network: AsyncHTTPClient over HTTP/1.1, tuned for large bodies.
///
/// One event loop and a large receive buffer reach the speed of a plain `recv` loop; the figures are in `Design.md`.
package struct AsyncHTTPClientTransport: HTTPTransport {
    package struct Configuration: Hashable, Sendable {
        package var connectTimeout: Duration = .seconds(15)
        /// Who is trusted, and who we are.
        package var trust = TrustPolicy()
        /// Which connections go through a proxy.
        package var proxies = ProxyPolicy()
        /// Where hosts are to be found, instead of what name servers say.
        package var addresses: [HostAddress] = []
        /// Connections kept per host: more than any budget, which alone decides and may be raised while all runs.
        package var connectionsPerHost = 1 << 16
        /// Which interfaces may be used.
        package var network = NetworkPolicy()

        package init() {}
    }

    private let configuration: Configuration
    private let clients: HTTPClients
    private let loops: MultiThreadedEventLoopGroup
    private let buffers: ReceiveBuffers
    private let connections: ConnectionRegister
    private let relay: TLSRelay

    /// Hands a transport to `body` and shuts it down when that returns.
    package static func withTransport<Answer: Sendable>(
        _ configuration: Configuration = Configuration(),
        _ body: (AsyncHTTPClientTransport) async throws -> Answer
    ) async throws -> Answer {
        try DescriptorLimit.check()
        let tls = try configuration.trust.tlsConfiguration()
        let buffers = ReceiveBuffers()
        let connections = ConnectionRegister()
        connections.apply(configuration.network)
        let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let clients = HTTPClients(on: loops) { way, isIdentified in
            var own = tls
            // Who we are is told to origins, not to what is between.
            if !isIdentified || way.isForwarding {
                own.certificateChain = []
                own.privateKey = nil
            }
            var settings = HTTPClient.Configuration(tlsConfiguration: own)
            settings.redirectConfiguration = .disallow
            settings.httpVersion = .http1Only
            settings.decompression = .disabled
            settings.timeout = .init(connect: .nanoseconds(configuration.connectTimeout.inNanoseconds), read: nil)
            settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = configuration.connectionsPerHost
            settings.connectionPool.retryConnectionEstablishment = false
            settings.http1_1ConnectionDebugInitializer = { channel in
                Self.prepare(
                    channel, on: way, checksNames: configuration.trust.verifiesCertificates, buffers, connections)
            }
            return settings
        }
        let result: Result<Answer, any Error>
        do {
            result = .success(
                try await body(
                    AsyncHTTPClientTransport(
                        configuration: configuration, clients: clients, loops: loops, buffers: buffers,
                        connections: connections, relay: TLSRelay(on: loops.next(), configuration, connections))))
        } catch {
            result = .failure(error)
        }
        await Self.shutDown(clients, loops)
        return try result.get()
    }

    /// Makes a new connection ready, on its own event loop, before anything is sent on it.
    private static func prepare(
        _ channel: any Channel, on way: HTTPClients.Way, checksNames: Bool, _ buffers: ReceiveBuffers,
        _ connections: ConnectionRegister
    ) -> EventLoopFuture<Void> {
        let pipeline = channel.pipeline.syncOperations
        do {
            // What leaves this machine behind a relay is admitted there.
            if !way.isRelayed { try connections.admit(channel) }
            let encoder = try pipeline.handler(type: HTTPRequestEncoder.self)
            var proxy: Proxy?
            if case .forwarding(let given) = way { proxy = given }
            try pipeline.addHandler(HeadBytes(), position: .before(encoder))
            if proxy != nil { try pipeline.addHandler(AbsoluteForm(), position: .after(encoder)) }
            if checksNames, let certificate = try? pipeline.nioSSL_peerCertificate() {
                try pipeline.addHandler(PeerNameCheck(certificate, host: proxy?.host), position: .after(encoder))
            }
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        let isTLS = (try? pipeline.handler(type: NIOSSLClientHandler.self)) != nil
        let allocator = buffers.take(isTLS: isTLS)
        channel.closeFuture.whenComplete { _ in buffers.giveBack() }
        return channel.setOption(.recvAllocator, value: allocator).flatMap {
            channel.setOption(.maxMessagesPerRead, value: 1)
        }
    }

    /// 200 ms: idle connections are closed long before; whoever pressed Ctrl-C has a second.
    private static let shutdownPatience: TimeAmount = .milliseconds(200)

    /// Closes the connections, without waiting for those that are still being made: the client cannot break these off,
    /// and they may take until the connect timeout. What is left ends by itself.
    private static func shutDown(_ clients: HTTPClients, _ loops: MultiThreadedEventLoopGroup) async {
        let isOver = Latch()
        await withCheckedContinuation { continuation in
            let resume: @Sendable () -> Void = {
                if isOver.raise() { continuation.resume() }
            }
            _ = loops.next().scheduleTask(in: Self.shutdownPatience, resume)
            clients.shutDown {
                loops.shutdownGracefully { _ in resume() }
            }
        }
    }

    private init(
        configuration: Configuration, clients: HTTPClients, loops: MultiThreadedEventLoopGroup,
        buffers: ReceiveBuffers, connections: ConnectionRegister, relay: TLSRelay
    ) {
        self.configuration = configuration
        self.clients = clients
        self.loops = loops
        self.buffers = buffers
        self.connections = connections
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
        let proxy = self.configuration.proxies.proxy(for: request.url.origin)
        // What goes wrong on the way to a proxy is not the origin's.
        let host = proxy.map { "\(request.url.host) through the proxy \($0)" } ?? request.url.host
        let response: HTTPClientResponse
        let start = NIODeadline.now()
        do {
            let (client, message) = try await self.message(request, through: proxy)
            response = try await client.execute(message, deadline: .distantFuture)
        } catch {
            if let proxy, !(error is CancellationError), let failure = self.relay.failure(of: proxy, since: start) {
                throw Self.failure(failure, host: "the proxy \(proxy)")
            }
            if proxy == nil, await self.isStalledHandshake(error, request.url) {
                throw Failure(.tls, "\(request.url.host): no TLS handshake in time", isTransient: true)
            }
            throw Self.failure(error, host: host)
        }
        try Self.checkSize(of: response, host: host)
        let body = Body(iterator: response.body.makeAsyncIterator(), host: host)
        return try await consume(Self.head(response), body)
    }

    /// A request as it is sent, and who sends it.
    private func message(
        _ request: TransportRequest, through proxy: Proxy?
    ) async throws -> (HTTPClient, HTTPClientRequest) {
        let origin = request.url.origin
        var message = HTTPClientRequest(url: request.url.string)
        message.localAddress = try self.connections.localAddress(to: proxy?.host ?? origin.host)
        for field in request.fields where field.name != .cookie {
            message.headers.add(name: field.name.rawName, value: field.value)
        }
        // One field over HTTP/1.1 (RFC 6265 §5.4), which HTTPFields takes apart.
        let cookies = request.fields[values: .cookie]
        if !cookies.isEmpty { message.headers.add(name: "Cookie", value: cookies.joined(separator: "; ")) }
        // Where there is no certificate to show, all are served by the same connections.
        let isIdentified = request.isIdentified || self.configuration.trust.certificateFile == nil
        guard let proxy else {
            return (self.clients[.direct(self.addresses(of: origin)), isIdentified: isIdentified], message)
        }
        switch proxy.kind {
        case .http where origin.scheme != "http":
            return (self.clients[.tunnel(proxy, relay: nil), isIdentified: isIdentified], message)
        case .https where origin.scheme != "http":
            // Where the connection begins that leaves this machine is the relay's to see to.
            message.localAddress = nil
            let port = try await self.relay.port(to: proxy)
            return (self.clients[.tunnel(proxy, relay: port), isIdentified: isIdentified], message)
        case .http, .https:
            message.url = "\(proxy.kind == .http ? "http" : "https")://\(proxy)\(request.url.target)"
            message.headers.add(name: "Host", value: request.url.host)
            if let credentials = proxy.credentials {
                message.headers.add(name: "Proxy-Authorization", value: credentials.fieldValue)
            }
            return (self.clients[.forwarding(proxy), isIdentified: isIdentified], message)
        case .socks5:
            let known = self.addresses(of: origin)
            let addresses = known.isEmpty ? try await self.lookUp(origin) : known
            return (self.clients[.socks(proxy, addresses), isIdentified: isIdentified], message)
        case .socks5h:
            return (self.clients[.socks(proxy, [:]), isIdentified: isIdentified], message)
        }
    }

    private func addresses(of origin: SourceURL.Origin) -> [String: String] {
        let own = self.configuration.addresses.last { $0.host == origin.host && $0.port == origin.port }
        return own.map { [$0.host: $0.address] } ?? [:]
    }

    /// The address that the system has for a host.
    private func lookUp(_ origin: SourceURL.Origin) async throws -> [String: String] {
        guard !origin.host.hasPrefix("["), (try? SocketAddress(ipAddress: origin.host, port: origin.port)) == nil else {
            return [:]
        }
        let address = try? await NIOThreadPool.singleton.runIfActive {
            try SocketAddress.makeAddressResolvingHost(origin.host, port: origin.port)
        }
        guard let text = address?.ipAddress else {
            throw Failure(
                .network, "\(origin.host) was not found (name lookup failed)",
                hint: "Have the proxy look it up: socks5h://", isTransient: true)
        }
        return [origin.host: text]
    }

    /// As much as servers and proxies take themselves; more is no description of a file.
    private static let headLengthMax = 64 << 10
    private static let headFieldsMax = 200

    /// The client has a bound of its own, which is to protect memory and lies higher.
    private static func checkSize(of response: HTTPClientResponse, host: String) throws {
        // A colon, a space and a line's end belong to every field.
        let length = response.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        guard length <= Self.headLengthMax, response.headers.count <= Self.headFieldsMax else {
            throw Failure(
                .protocol,
                "\(host) sent a head of \(response.headers.count) fields and \(length) bytes, more than "
                    + "\(Self.headFieldsMax) and \(Self.headLengthMax)")
        }
    }

    private static func head(_ response: HTTPClientResponse) -> ResponseHead {
        var fields = HTTPFields()
        for (name, value) in response.headers {
            // A name that is no token cannot be one we look for.
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: ObsText.meaning(value, of: name)))
        }
        return ResponseHead(status: Int(response.status.code), fields: fields)
    }

    /// 1 s: whoever can be reached answers sooner.
    private static let reachPatience: TimeAmount = .seconds(1)

    /// The client has one limit for connection and handshake, and does not say which took too long: whether the host can be
    /// connected to is looked up.
    private func isStalledHandshake(_ error: any Error, _ url: SourceURL) async -> Bool {
        guard error as? HTTPClientError == .connectTimeout, url.origin.scheme == "https" else { return false }
        let host = url.origin.host.hasPrefix("[") ? String(url.origin.host.dropFirst().dropLast()) : url.origin.host
        let bootstrap = ClientBootstrap(group: self.loops).connectTimeout(Self.reachPatience)
        guard let channel = try? await bootstrap.connect(host: host, port: url.origin.port).get() else { return false }
        channel.close(promise: nil)
        return true
    }

    private final class Body: ResponseBody {
        // Used by the one task that reads the body; the client's iterator cannot say so itself.
        nonisolated(unsafe) private var iterator: HTTPClientResponse.Body.AsyncIterator
        private let host: String

        init(iterator: HTTPClientResponse.Body.AsyncIterator, host: String) {
            self.iterator = iterator
            self.host = host
        }

        func next() async throws -> (any BodyChunk)? {
            do {
                return try await self.iterator.next()
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
