import NIOCore
import NIOSSL
import NIOTLS
import SegmentedDownloadCore

/// Where a tunnel through a proxy leads.
struct TunnelGoal: Hashable, CustomStringConvertible {
    /// The origin's host, whose name the certificate must have.
    let name: String
    /// The host that the proxy connects to: the name, or its address if that was looked up here. Without brackets.
    let host: String
    let port: Int
    let usesTLS: Bool

    var description: String { "\(self.host.contains(":") ? "[\(self.host)]" : self.host):\(self.port)" }
}

/// What a client does next to get a tunnel.
enum TunnelStep: Hashable {
    /// More bytes must arrive.
    case waiting
    case sending([UInt8])
    /// The proxy has connected. Bytes that follow are the origin's.
    case open
}

/// What a client and a proxy say until the proxy has connected to the goal.
protocol TunnelDialogue {
    /// What the client says first.
    func begin() throws -> [UInt8]
    /// Reads what has arrived.
    mutating func read(_ bytes: some Sequence<UInt8>) throws -> TunnelStep
}

/// Opens tunnels through proxies on new connections: the dialogue with the proxy, and then the TLS handshake with the origin.
///
/// Workaround: async-http-client has `CONNECT` for proxies over plain HTTP only
/// (https://github.com/swift-server/async-http-client/issues/776), does not say why a proxy refused, and has SOCKS 5 without
/// passwords. So it takes the proxy for the origin, and the tunnel is made before its first request.
struct ProxyTunnel: Sendable {
    let proxy: Proxy
    let goal: TunnelGoal
    /// How long the proxy may take to connect, and the origin to make the handshake.
    let patience: TimeAmount
    /// Nil for an origin without TLS.
    let tls: NIOSSLContext?
    let checksNames: Bool

    /// Opens the tunnel, on the channel's event loop.
    ///
    /// - Parameter authorization: The value of `Proxy-Authorization`.
    func open(on channel: any Channel, authorization: String?) -> EventLoopFuture<Void> {
        let pipeline = channel.pipeline.syncOperations
        let loop = channel.eventLoop
        do {
            // What follows comes behind the TLS of the proxy.
            let outer = try? pipeline.handler(type: NIOSSLClientHandler.self)
            let position: ChannelPipeline.SynchronousOperations.Position = outer.map { .after($0) } ?? .first
            let opened = loop.makePromise(of: Void.self)
            let dialogue: any TunnelDialogue =
                self.proxy.isHTTP
                ? ConnectDialogue(self.proxy, to: self.goal, authorization: authorization)
                : SOCKSDialogue(self.proxy, to: self.goal)
            let handler = TunnelHandler(dialogue, opened)
            let waits = self.limit(
                opened, on: loop, "the proxy \(self.proxy) did not connect to \(self.goal) in time", .network)
            try pipeline.addHandler(handler, position: position)
            return opened.futureResult.assumeIsolated().flatMapThrowing {
                waits.cancel()
                return try self.secure(channel, behind: handler)
            }.flatMapErrorThrowing { error in
                waits.cancel()
                throw self.failure(error)
            }.flatMap { $0 }.nonisolated()
        } catch {
            return loop.makeFailedFuture(error)
        }
    }

    /// Begins the TLS handshake with the origin.
    private func secure(_ channel: any Channel, behind handler: TunnelHandler) throws -> EventLoopFuture<Void> {
        let (pipeline, loop) = (channel.pipeline.syncOperations, channel.eventLoop)
        guard let tls else { return pipeline.removeHandler(handler) }
        let secured = loop.makePromise(of: Void.self)
        // A server name must not be an address (RFC 6066, section 3).
        let name = IPAddress.bytes(of: self.goal.name) == nil ? self.goal.name : nil
        let inner = try NIOSSLClientHandler(context: tls, serverHostname: name)
        let wait = HandshakeWait(inner, secured, host: self.checksNames ? self.goal.name : nil)
        let waits = self.limit(
            secured, on: loop, "\(self.goal.name): no TLS handshake within the connect timeout", .tls)
        try pipeline.addHandler(wait, position: .after(handler))
        try pipeline.addHandler(inner, position: .after(handler))
        pipeline.removeHandler(handler, promise: nil)
        return secured.futureResult.always { _ in waits.cancel() }
    }

    private func limit(
        _ promise: EventLoopPromise<Void>, on loop: any EventLoop, _ message: String, _ code: DownloadError.Code
    ) -> Scheduled<Void> {
        loop.scheduleTask(in: self.patience) {
            promise.fail(DownloadError(code, message, isTransient: true))
        }
    }

    private func failure(_ error: any Error) -> any Error {
        switch error {
        case is DownloadError, is ConnectDialogue.Refusal: error
        default:
            AsyncHTTPClientTransport.failure(error, host: "the proxy \(self.proxy)")
        }
    }
}

/// Speaks with the proxy. Nothing of it reaches other handlers.
private final class TunnelHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var dialogue: any TunnelDialogue
    private let opened: EventLoopPromise<Void>
    private var isOver = false

    init(_ dialogue: any TunnelDialogue, _ opened: EventLoopPromise<Void>) {
        self.dialogue = dialogue
        self.opened = opened
    }

    func handlerAdded(context: ChannelHandlerContext) {
        do {
            self.send(try self.dialogue.begin(), context)
        } catch {
            self.end(.failure(error))
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !self.isOver else { return context.fireChannelRead(data) }
        do {
            switch try self.dialogue.read(Self.unwrapInboundIn(data).readableBytesView) {
            case .waiting: break
            case .sending(let bytes): self.send(bytes, context)
            case .open: self.end(.success(()))
            }
        } catch {
            self.end(.failure(error))
        }
    }

    private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        context.writeAndFlush(Self.wrapOutboundOut(context.channel.allocator.buffer(bytes: bytes)), promise: nil)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !self.isOver else { return context.fireErrorCaught(error) }
        self.end(.failure(error))
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.end(.failure(NIOSSLError.uncleanShutdown))
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.end(.failure(ChannelError.ioOnClosedChannel))
    }

    private func end(_ result: Result<Void, any Error>) {
        guard !self.isOver else { return }
        self.isOver = true
        self.opened.completeWith(result)
    }
}

/// Waits for the TLS handshake and verifies the server's name.
private final class HandshakeWait: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let tls: NIOSSLClientHandler
    private let isMade: EventLoopPromise<Void>
    /// The host that the certificate must cover; `nil` for any.
    private let host: String?

    init(_ tls: NIOSSLClientHandler, _ isMade: EventLoopPromise<Void>, host: String?) {
        self.tls = tls
        self.isMade = isMade
        self.host = host
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case .handshakeCompleted = event as? TLSUserEvent else {
            return context.fireUserInboundEventTriggered(event)
        }
        do {
            if let host = self.host, let certificate = self.tls.peerCertificate,
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

    func handlerRemoved(context: ChannelHandlerContext) {
        self.isMade.fail(ChannelError.ioOnClosedChannel)
    }
}
