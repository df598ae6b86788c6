import AsyncHTTPClient
import NIOCore
import SegmentedDownloadCore
import Synchronization

/// The HTTP clients of a transport: one for each route, created on first use.
final class HTTPClients: Sendable {
    /// The route to an origin.
    enum Way: Hashable {
        /// A direct connection, with fixed addresses of hosts.
        case direct([String: String])
        /// An HTTP proxy that receives requests in absolute form (RFC 9112, section 3.2.2).
        case forwarding(Proxy)
        /// An HTTP proxy that receives `CONNECT`. If a relay leads to it, it is reached at this local port.
        case tunnel(Proxy, relay: Int?)
        /// A SOCKS proxy, with addresses to send in place of host names.
        case socks(Proxy, [String: String])

        /// Whether requests are sent to a proxy in absolute form.
        var isForwarding: Bool { if case .forwarding = self { true } else { false } }

        /// Whether the connection goes to a relay on this machine.
        var isRelayed: Bool { if case .tunnel(_, .some) = self { true } else { false } }
    }

    /// What the connections of one client have in common.
    struct Route: Hashable {
        var way: Way
        /// Whether the client certificate may be presented.
        var allowsClientCertificate: Bool
        /// Whether connections to special addresses are allowed. Counts for direct connections only.
        var allowsPrivateAddresses: Bool
        /// The local address to connect from; nil for any.
        var localAddress: String?
    }

    private struct State {
        var clients: [Route: HTTPClient] = [:]
        var isShutDown = false
    }

    private let state = Mutex(State())
    private let group: any EventLoopGroup
    private let make: @Sendable (Route) -> HTTPClient.Configuration

    /// - Parameter make: Returns the configuration for a route.
    init(on group: any EventLoopGroup, make: @escaping @Sendable (Route) -> HTTPClient.Configuration) {
        self.group = group
        self.make = make
    }

    subscript(route: Route) -> HTTPClient {
        self.state.withLock { state in
            precondition(!state.isShutDown, "a transport must not be used after its shutdown")
            if let client = state.clients[route] { return client }
            var configuration = self.make(route)
            switch route.way {
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
            state.clients[route] = client
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
