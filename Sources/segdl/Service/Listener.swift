import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypes
import NIOPosix
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

    let socket: CInt
    let peers: Peers
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
        let (connections, accepted) = AsyncStream.makeStream(of: HTTP1Channel.Value.self)
        let clients = Clients { accepted.finish() }
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                guard clients.admit(channel) else {
                    return channel.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel)
                }
                return self.check(channel)
                    .flatMap { http.setup(channel: channel, logger: logger).map { _ = accepted.yield($0) } }
                    .always { _ in clients.isSetUp(channel) }
            }
            .withBoundSocket(self.socket).get()
        server.closeFuture.whenComplete { _ in clients.close() }
        await withTaskCancellationHandler {
            await withGracefulShutdownHandler {
                await withDiscardingTaskGroup { tasks in
                    for await connection in connections {
                        tasks.addTask { await http.handle(value: connection, logger: logger) }
                    }
                }
            } onGracefulShutdown: {
                server.close(promise: nil)
            }
        } onCancel: {
            server.close(promise: nil)
        }
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
        let (channels, isLast) = self.state.withLock { state in
            state.isClosed = true
            return (Array(state.channels.values), state.beingSetUp.isEmpty)
        }
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
