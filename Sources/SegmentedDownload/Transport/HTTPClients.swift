import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import SegmentedDownloadCore
import Synchronization

/// The clients of one transport: one for each way that connections take, made when it is first taken.
final class HTTPClients: Sendable {
    /// How an origin is reached.
    enum Way: Hashable {
        /// From here. The hosts named are where these addresses are.
        case direct([String: String])
        /// Through an HTTP proxy that is asked for whole URLs (RFC 9112 §3.2.2).
        case forwarding(Proxy)
        /// Through an HTTP proxy that is asked to connect, which is at this port here where a relay leads to it.
        case tunnel(Proxy, relay: Int?)
        /// Through a SOCKS proxy, which is told these addresses instead of the hosts.
        case socks(Proxy, [String: String])

        /// Whether whoever is connected to is a proxy that is asked for whole URLs.
        var isForwarding: Bool { if case .forwarding = self { true } else { false } }

        /// Whether it begins at a relay on this machine.
        var isRelayed: Bool { if case .tunnel(_, .some) = self { true } else { false } }
    }

    private struct Key: Hashable {
        var way: Way
        var isIdentified: Bool
    }

    private struct State {
        var clients: [Key: HTTPClient] = [:]
        var isShutDown = false
    }

    private let state = Mutex(State())
    private let group: any EventLoopGroup
    private let make: @Sendable (Way, Bool) -> HTTPClient.Configuration

    /// - Parameter make: what the clients of a way are like, that show who we are or do not.
    init(on group: any EventLoopGroup, make: @escaping @Sendable (Way, Bool) -> HTTPClient.Configuration) {
        self.group = group
        self.make = make
    }

    subscript(way: Way, isIdentified isIdentified: Bool) -> HTTPClient {
        self.state.withLock { state in
            precondition(!state.isShutDown, "a transport is used no longer than it lives")
            let key = Key(way: way, isIdentified: isIdentified)
            if let client = state.clients[key] { return client }
            var configuration = self.make(way, isIdentified)
            switch way {
            case .direct(let addresses): configuration.dnsOverride = addresses
            case .forwarding: break
            case .tunnel(let proxy, let relay):
                configuration.proxy = .server(
                    host: relay == nil ? proxy.host : "127.0.0.1", port: relay ?? proxy.port,
                    authorization: proxy.credentials.map(\.authorization))
            case .socks(let proxy, let addresses):
                configuration.dnsOverride = addresses
                configuration.proxy = .socksServer(host: proxy.host, port: proxy.port)
            }
            let client = HTTPClient(eventLoopGroupProvider: .shared(self.group), configuration: configuration)
            state.clients[key] = client
            return client
        }
    }

    /// Closes all connections.
    func shutDown(_ done: @escaping @Sendable () -> Void) {
        let clients = self.state.withLock { state in
            state.isShutDown = true
            return Array(state.clients.values)
        }
        let ended = clients.map { client in
            let promise = self.group.next().makePromise(of: Void.self)
            client.shutdown { _ in promise.succeed() }
            return promise.futureResult
        }
        EventLoopFuture.andAllComplete(ended, on: self.group.next()).whenComplete { _ in done() }
    }
}

extension Credentials {
    fileprivate var authorization: HTTPClient.Authorization {
        switch self {
        case .basic(let user, let password): .basic(username: user, password: password)
        case .bearer(let token): .bearer(tokens: token)
        }
    }
}

/// Asks for whole URLs, as a proxy wants it: the scheme and the `Host` field go before the path.
final class AbsoluteForm: ChannelOutboundHandler, RemovableChannelHandler {
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard case .head(var head) = Self.unwrapOutboundIn(data), let host = head.headers.first(name: "host") else {
            context.write(data, promise: promise)
            return
        }
        head.uri = "http://\(host)\(head.uri)"
        context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
    }
}
