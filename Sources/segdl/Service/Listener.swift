import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOWebSocket
import SegmentedDownload
import ServiceLifecycle
import Synchronization

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Answers HTTP requests on a listening socket until it is shut down.
///
/// Hummingbird's own server can neither use a socket that the service manager passes nor refuse a connection.
struct Listener: Service {
    /// Which processes may connect.
    enum Peers: Hashable, Sendable {
        /// Those of this user, on a Unix socket.
        case sameUser
        case any
    }

    /// 64: a page, a few front-ends and commands. Further connections are closed.
    static let clientsMax = 64
    /// 10 s: the time for a whole request, and how long a connection may be idle.
    static let deadline = TimeAmount.seconds(10)

    /// A connection that has sent its first request, or none yet.
    private enum Connection: Sendable {
        case http(HTTP1Channel.Value)
        case webSocket(RPCSocket.Connection)
    }

    /// What answers a WebSocket at `/jsonrpc`, and which may be opened.
    struct WebSockets: Sendable {
        let policy: WebPolicy
        let handler: RPCSocket
    }

    let socket: CInt
    let peers: Peers
    var webSockets: WebSockets?
    let responder: RouterResponder<ServiceContext>
    let logger: Logger

    func run() async throws {
        let responder = self.responder
        let logger = self.logger
        let http = HTTP1Channel(
            responder: { request, writer, channel in
                let context = ServiceContext(source: .init(channel: channel, logger: logger))
                let response: Response
                do {
                    response = try await responder.respond(to: request, context: context)
                } catch {
                    response = Response(status: .internalServerError)
                }
                try await writer.write(response: response.head, body: response.body)
            },
            configuration: .init(
                additionalChannelHandlers: [RequestDeadline(Self.deadline)], idleTimeout: Self.deadline))
        let accepted = Accepted<Connection>()
        let clients = Clients { accepted.finish() }
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                guard clients.admit(channel) else {
                    return channel.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
                }
                let deadline = channel.eventLoop.scheduleTask(in: Self.deadline) { channel.close(promise: nil) }
                let ready = self.check(channel).flatMap {
                    self.setUp(channel, http).map { accepted.put($0) }
                }.always { _ in
                    deadline.cancel()
                    clients.isSetUp(channel)
                }
                // A WebSocket is known by its first request, which has not been read yet.
                return self.webSockets == nil ? ready : channel.eventLoop.makeSucceededVoidFuture()
            }
            .withBoundSocket(self.socket).get()
        server.closeFuture.whenComplete { _ in clients.close() }
        await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await withDiscardingTaskGroup { tasks in
                    while let connection = await accepted.next() {
                        tasks.addTask {
                            switch connection {
                            case .http(let value): await http.handle(value: value, logger: logger)
                            case .webSocket(let value): await self.webSockets?.handler.run(value)
                            }
                        }
                    }
                }
            } onGracefulShutdown: {
                server.close(promise: nil)
            }
        } onCancel: {
            server.close(promise: nil)
        }
    }

    private func setUp(_ channel: any Channel, _ http: HTTP1Channel) -> EventLoopFuture<Connection> {
        guard let webSockets else { return http.setup(channel: channel, logger: self.logger).map { .http($0) } }
        let upgrader = NIOTypedWebSocketServerUpgrader<Connection>(
            maxFrameSize: WebGuard.lengthMax,
            shouldUpgrade: { channel, head in
                let isAllowed =
                    head.uri == "/jsonrpc"
                    && webSockets.policy.refusal(
                        host: head.headers["Host"].first, origin: head.headers["Origin"].first) == nil
                return channel.eventLoop.makeSucceededFuture(isAllowed ? HTTPHeaders() : nil)
            },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        NIOWebSocketFrameAggregator(
                            minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: 1024,
                            maxAccumulatedFrameSize: WebGuard.lengthMax))
                    return .webSocket(try RPCSocket.Connection(wrappingChannelSynchronously: channel))
                }
            })
        return channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.configureUpgradableHTTPServerPipeline(
                configuration: .init(
                    upgradeConfiguration: .init(
                        upgraders: [upgrader],
                        notUpgradingCompletionHandler: { channel in
                            channel.eventLoop.makeCompletedFuture { .http(try self.addHandlers(to: channel)) }
                        })))
        }.flatMap { $0 }
    }

    /// The handlers that ``HTTP1Channel`` adds, after those of the HTTP codec.
    private func addHandlers(to channel: any Channel) throws -> HTTP1Channel.Value {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
        try pipeline.addHandler(RequestDeadline(Self.deadline))
        try pipeline.addHandler(
            HTTPConnectionStateHandler(idleTimeout: .nanoseconds(Self.deadline.nanoseconds), logger: self.logger))
        return try NIOAsyncChannel(
            wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
    }

    /// Listens on a TCP port.
    ///
    /// - Returns: The socket and its port.
    static func open(_ address: RPCAddress) throws(ServiceFailure) -> (socket: CInt, port: Int) {
        guard let place = try? SocketAddress(ipAddress: address.host, port: address.port) else {
            throw ServiceFailure("\(address) is no address")
        }
        let descriptor = SystemCalls.streamSocket(place.protocol.rawValue)
        guard descriptor >= 0 else { throw ServiceFailure("cannot create a socket for", "\(address)", errno: errno) }
        var one: CInt = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<CInt>.size))
        let isBound = place.withSockAddr { bind(descriptor, $0, socklen_t($1)) } == 0
        guard isBound, listen(descriptor, 128) == 0 else {
            let number = errno
            SystemCalls.closeFile(descriptor)
            throw ServiceFailure("cannot listen on", "\(address)", errno: number)
        }
        // Of a `sockaddr_in` or `sockaddr_in6`: both have the port in their third and fourth byte.
        var bound = [UInt8](repeating: 0, count: 32)
        var length = socklen_t(bound.count)
        _ = bound.withUnsafeMutableBytes { bytes in
            bytes.withMemoryRebound(to: sockaddr.self) { getsockname(descriptor, $0.baseAddress, &length) }
        }
        return (descriptor, Int(bound[2]) << 8 | Int(bound[3]))
    }

    /// Fails if the peer is another user's process (`SO_PEERCRED`, unix(7)).
    private func check(_ channel: any Channel) -> EventLoopFuture<Void> {
        guard self.peers == .sameUser else { return channel.eventLoop.makeSucceededVoidFuture() }
        guard let options = channel as? any SocketOptionProvider else {
            return channel.eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
        }
        let peer: EventLoopFuture<PeerCredentials> = options.unsafeGetSocketOption(
            level: .socket, name: NIOBSDSocket.Option(rawValue: SO_PEERCRED))
        return peer.flatMapThrowing { peer in
            guard peer.user == geteuid() else { throw ChannelError.operationUnsupported }
        }
    }
}

/// `struct ucred` of unix(7).
private struct PeerCredentials: Sendable {
    let process: Int32
    let user: UInt32
    let group: UInt32
}

/// The connections that are set up and not served yet, for one reader.
///
/// Unlike an `AsyncStream`, it delivers all of them also if the reader is cancelled: a connection that is dropped traps.
private final class Accepted<Connection: Sendable>: Sendable {
    private struct State {
        var connections: [Connection] = []
        var isOver = false
        var reader: CheckedContinuation<Connection?, Never>?
    }

    private let state = Mutex(State())

    func put(_ connection: Connection) {
        let reader = self.state.withLock { state in
            defer { state.reader = nil }
            if state.reader == nil { state.connections.append(connection) }
            return state.reader
        }
        reader?.resume(returning: connection)
    }

    /// No connection follows.
    func finish() {
        let reader = self.state.withLock { state in
            defer { state.reader = nil }
            state.isOver = true
            return state.reader
        }
        reader?.resume(returning: nil)
    }

    /// The next connection; nil once all were delivered and none follows.
    func next() async -> Connection? {
        await withCheckedContinuation { reader in
            let (connection, isWaiting) = self.state.withLock { state -> (Connection?, Bool) in
                if !state.connections.isEmpty { return (state.connections.removeFirst(), false) }
                if state.isOver { return (nil, false) }
                state.reader = reader
                return (nil, true)
            }
            if !isWaiting { reader.resume(returning: connection) }
        }
    }
}

/// The open connections of a listener.
private final class Clients: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var beingSetUp: Set<ObjectIdentifier> = []
        var isClosed = false
    }

    private let state = Mutex(State())
    /// Called when no connection can follow.
    private let onEnd: @Sendable () -> Void

    init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }

    /// Whether there is room for one more connection.
    func admit(_ channel: any Channel) -> Bool {
        let id = ObjectIdentifier(channel)
        let isAdmitted = self.state.withLock { state in
            guard !state.isClosed, state.channels.count < Listener.clientsMax else { return false }
            state.channels[id] = channel
            state.beingSetUp.insert(id)
            return true
        }
        guard isAdmitted else { return false }
        channel.closeFuture.whenComplete { _ in _ = self.state.withLock { $0.channels.removeValue(forKey: id) } }
        return true
    }

    func isSetUp(_ channel: any Channel) {
        let (isLast, isClosed) = self.state.withLock { state in
            state.beingSetUp.remove(ObjectIdentifier(channel))
            return (state.isClosed && state.beingSetUp.isEmpty, state.isClosed)
        }
        if isClosed { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
        if isLast { self.onEnd() }
    }

    /// Closes idle connections, and others once they have their responses.
    func close() {
        let (channels, unfinished, isLast) = self.state.withLock { state in
            state.isClosed = true
            return (
                state.channels.filter { !state.beingSetUp.contains($0.key) }.map(\.value),
                state.channels.filter { state.beingSetUp.contains($0.key) }.map(\.value), state.beingSetUp.isEmpty
            )
        }
        for channel in unfinished { channel.close(promise: nil) }
        for channel in channels { channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent()) }
        if isLast { self.onEnd() }
    }
}

/// Closes a connection on which a request does not arrive completely in time.
private final class RequestDeadline: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart

    private let limit: TimeAmount
    private var task: Scheduled<Void>?

    init(_ limit: TimeAmount) { self.limit = limit }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch self.unwrapInboundIn(data) {
        case .head:
            let channel = context.channel
            self.task = context.eventLoop.scheduleTask(in: self.limit) { channel.close(promise: nil) }
        case .body: break
        case .end: self.task?.cancel()
        }
        context.fireChannelRead(data)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.task?.cancel()
        context.fireChannelInactive()
    }
}

/// The context of a request to the service.
struct ServiceContext: RequestContext {
    var coreContext: CoreRequestContextStorage
    /// 64 MiB: a list of a hundred thousand files in one request.
    var maxUploadSize: Int { 64 << 20 }

    init(source: ApplicationRequestContextSource) { self.coreContext = .init(source: source) }
}
