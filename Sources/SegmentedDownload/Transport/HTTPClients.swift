import AsyncHTTPClient
import NIOCore
import SegmentedDownloadCore
import Synchronization

/// The HTTP clients of a transport: one for each route, created when a request needs it.
final class HTTPClients: Sendable {
    /// The route to an origin.
    enum Way: Hashable {
        /// A direct connection, with fixed addresses of hosts.
        case direct([String: String])
        /// An HTTP proxy that receives requests in absolute form (RFC 9112, section 3.2.2).
        case forwarding(Proxy)
        /// A proxy that connects to the origin. The client takes it for the origin.
        case tunnel(Proxy, TunnelGoal)

        var proxy: Proxy? {
            switch self {
            case .direct: nil
            case .forwarding(let proxy), .tunnel(let proxy, _): proxy
            }
        }
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

    private struct Entry {
        let client: HTTPClient
        /// The number of requests that use it.
        var uses = 0
    }

    private struct State {
        var entries: [Route: Entry] = [:]
        /// The routes, the one first that was used longest ago.
        var order: [Route] = []
        var isShutDown = false
    }

    /// 64 clients without requests keep their connections. Some routes are of one origin each, and a service meets many.
    private static let clientsMax = 64

    private let state = Mutex(State())
    private let group: any EventLoopGroup
    private let make: @Sendable (Route) -> HTTPClient.Configuration

    /// - Parameter make: Returns the configuration for a route.
    init(on group: any EventLoopGroup, make: @escaping @Sendable (Route) -> HTTPClient.Configuration) {
        self.group = group
        self.make = make
    }

    /// The client for a request on a route. ``giveBack(_:)`` follows.
    func take(_ route: Route) -> HTTPClient {
        self.state.withLock { state in
            precondition(!state.isShutDown, "a transport must not be used after its shutdown")
            if state.entries[route] == nil {
                state.entries[route] = Entry(
                    client: HTTPClient(
                        eventLoopGroupProvider: .shared(self.group), configuration: self.make(route)))
                state.order.append(route)
            }
            state.entries[route]!.uses += 1
            return state.entries[route]!.client
        }
    }

    /// Ends a request. Of the clients without requests, those used longest ago are shut down when there are too many.
    func giveBack(_ route: Route) {
        let surplus = self.state.withLock { state -> HTTPClient? in
            state.entries[route]?.uses -= 1
            guard !state.isShutDown, state.order.count > Self.clientsMax,
                let index = state.order.firstIndex(where: { state.entries[$0]?.uses == 0 })
            else { return nil }
            return state.entries.removeValue(forKey: state.order.remove(at: index))?.client
        }
        surplus?.shutdown { _ in }
    }

    /// Closes all connections.
    func shutDown(_ done: @escaping @Sendable () -> Void) {
        let clients = self.state.withLock { state in
            state.isShutDown = true
            return state.entries.values.map(\.client)
        }
        let ended = clients.map { client in
            let promise = self.group.next().makePromise(of: Void.self)
            client.shutdown { _ in promise.succeed() }
            return promise.futureResult
        }
        EventLoopFuture.andAllComplete(ended, on: self.group.next()).whenComplete { _ in done() }
    }
}
