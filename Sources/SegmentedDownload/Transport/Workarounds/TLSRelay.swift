import AsyncHTTPClient
import NIOCore
import NIOPosix
import NIOSSL
import NIOTLS
import SegmentedDownloadCore
import Synchronization

/// Forwards connections to a proxy that is reached over TLS.
///
/// It listens on loopback and forwards all bytes to the proxy over TLS. Another process that finds the port gets no
/// further than the proxy, because the relay holds no credentials.
///
/// Workaround: async-http-client sends `CONNECT` only to proxies over plain HTTP
/// (https://github.com/swift-server/async-http-client/issues/776).
final class TLSRelay: Sendable {
    private struct State {
        /// For each proxy the channel that accepts connections to it.
        var listeners: [Proxy: EventLoopFuture<any Channel>] = [:]
        var failures: [Proxy: (error: any Error, at: NIODeadline)] = [:]
    }

    private let state = Mutex(State())
    private let loop: any EventLoop
    private let configuration: AsyncHTTPClientTransport.Configuration
    private let connections: ConnectionRegister

    init(
        on loop: any EventLoop, _ configuration: AsyncHTTPClientTransport.Configuration,
        _ connections: ConnectionRegister
    ) {
        self.loop = loop
        self.configuration = configuration
        self.connections = connections
    }

    /// The local port that leads to a proxy.
    func port(to proxy: Proxy) async throws -> Int {
        let listener: EventLoopFuture<any Channel>
        if let known = self.state.withLock({ $0.listeners[proxy] }) {
            listener = known
        } else {
            // Reads certificates, and so comes before the lock, which the event loop takes too.
            let context = try self.context()
            listener = self.state.withLock { state in
                if let listener = state.listeners[proxy] { return listener }
                let listener = self.listen(for: proxy, context)
                state.listeners[proxy] = listener
                return listener
            }
        }
        let channel: any Channel
        do {
            channel = try await listener.get()
        } catch {
            self.state.withLock { _ = $0.listeners.removeValue(forKey: proxy) }
            throw error
        }
        guard let port = channel.localAddress?.port else { throw ChannelError.unknownLocalAddress }
        return port
    }

    /// The error of the last connection to a proxy, if it occurred after `start`.
    func failure(of proxy: Proxy, since start: NIODeadline) -> (any Error)? {
        self.state.withLock { state in state.failures[proxy].flatMap { $0.at >= start ? $0.error : nil } }
    }

    private func context() throws -> NIOSSLContext {
        // The client certificate is presented to origins, not to proxies.
        var tls = try self.configuration.trust.tlsConfiguration()
        tls.certificateChain = []
        tls.privateKey = nil
        return try NIOSSLContext(configuration: tls)
    }

    private func listen(for proxy: Proxy, _ context: NIOSSLContext) -> EventLoopFuture<any Channel> {
        ServerBootstrap(group: self.loop)
            .childChannelInitializer { client in self.lead(client, to: proxy, context) }
            .bind(host: "127.0.0.1", port: 0)
    }

    /// Stops listening.
    func close() {
        let listeners = self.state.withLock { $0.listeners.values }
        for listener in listeners { listener.whenSuccess { $0.close(promise: nil) } }
    }

    /// Connects an accepted client to its proxy. Nothing is read from the client until then.
    private func lead(_ client: any Channel, to proxy: Proxy, _ context: NIOSSLContext) -> EventLoopFuture<Void> {
        let patience = TimeAmount.nanoseconds(self.configuration.connectTimeout.inNanoseconds)
        return self.connections.localAddress(to: proxy.host, on: client.eventLoop).flatMapThrowing { address in
            try address.map { try SocketAddress(ipAddress: $0, port: 0) }
        }.flatMap { address in
            let bootstrap = ClientBootstrap(group: client.eventLoop).connectTimeout(patience)
            let bound = address.map { bootstrap.bind(to: $0) } ?? bootstrap
            return bound.connect(host: proxy.host, port: proxy.port)
        }.flatMap { server in
            let isEncrypted = server.eventLoop.makePromise(of: Void.self)
            let timeout = server.eventLoop.scheduleTask(in: patience) {
                isEncrypted.fail(HTTPClientError.tlsHandshakeTimeout)
            }
            self.connections.admit(server).flatMapThrowing {
                // A server name must not be an address (RFC 6066, section 3).
                let isAddress = (try? SocketAddress(ipAddress: proxy.host, port: proxy.port)) != nil
                let tls = try NIOSSLClientHandler(context: context, serverHostname: isAddress ? nil : proxy.host)
                let name = self.configuration.trust.verifiesCertificates ? proxy.host : nil
                try server.pipeline.syncOperations.addHandlers(tls, HandshakeWait(isEncrypted, host: name))
            }.whenFailure { isEncrypted.fail($0) }
            return isEncrypted.futureResult.flatMapThrowing {
                timeout.cancel()
                let (near, far) = Junction.pair()
                try client.pipeline.syncOperations.addHandler(near)
                try server.pipeline.syncOperations.addHandler(far)
                self.state.withLock { _ = $0.failures.removeValue(forKey: proxy) }
            }.flatMapErrorThrowing { error in
                timeout.cancel()
                server.close(promise: nil)
                throw error
            }
        }.flatMapError { self.fail($0, proxy, client.eventLoop) }
    }

    private func fail(_ error: any Error, _ proxy: Proxy, _ loop: any EventLoop) -> EventLoopFuture<Void> {
        self.state.withLock { $0.failures[proxy] = (error, .now()) }
        return loop.makeFailedFuture(error)
    }
}

/// Waits for the TLS handshake and verifies the server's name.
private final class HandshakeWait: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let isMade: EventLoopPromise<Void>
    /// The host that the certificate must cover; `nil` for any.
    private let host: String?

    init(_ isMade: EventLoopPromise<Void>, host: String?) {
        self.isMade = isMade
        self.host = host
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .handshakeCompleted = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        do {
            if let host = self.host, let certificate = try context.pipeline.syncOperations.nioSSL_peerCertificate(),
                let failure = CertificateNames(certificate).failure(for: host)
            {
                throw failure
            }
            self.isMade.succeed()
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        } catch {
            self.errorCaught(context: context, error: error)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        self.isMade.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.isMade.fail(NIOSSLError.uncleanShutdown)
        context.fireChannelInactive()
    }
}

/// One end of two joined connections: bytes received at one end are sent at the other, with back-pressure.
private final class Junction: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var other: Junction?
    private var context: ChannelHandlerContext?
    private var owesRead = false

    static func pair() -> (Junction, Junction) {
        let (one, other) = (Junction(), Junction())
        (one.other, other.other) = (other, one)
        return (one, other)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        self.other = nil
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let there = self.other?.context else { return }
        there.write(Self.wrapOutboundOut(Self.unwrapInboundIn(data)), promise: nil)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        self.other?.context?.flush()
    }

    func read(context: ChannelHandlerContext) {
        if self.other?.context?.channel.isWritable ?? false {
            context.read()
        } else {
            self.owesRead = true
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable, let there = self.other, there.owesRead {
            there.owesRead = false
            there.context?.read()
        }
        context.fireChannelWritabilityChanged()
    }

    /// Sends what was received before the other end is closed.
    func channelInactive(context: ChannelHandlerContext) {
        if let there = self.other?.context {
            let isSent = there.eventLoop.makePromise(of: Void.self)
            isSent.futureResult.assumeIsolated().whenComplete { _ in there.close(promise: nil) }
            there.writeAndFlush(Self.wrapOutboundOut(ByteBuffer()), promise: isSent)
        }
        context.fireChannelInactive()
    }

    /// Closes this end, which closes the other one.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
