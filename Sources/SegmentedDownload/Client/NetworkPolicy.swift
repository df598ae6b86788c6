/// The network interfaces and address families that connections may use.
///
/// Set it in ``DownloadConfiguration/network``; ``DownloadClient/update(network:)`` changes it while downloads run.
/// Naming an interface binds connections to the interface's address; the system's routing table still decides which way
/// packets take. A connection that uses another interface is closed before a request is sent on it.
public struct NetworkPolicy: Hashable, Sendable {
    /// Interface names such as `eth0`, or addresses of this machine, in order of preference; `nil` for any.
    ///
    /// If both the host and the interface have IPv4 and IPv6 addresses, IPv4 is used.
    public var interfaces: [String]?
    /// Whether connections may use metered interfaces.
    ///
    /// Linux device types `wwan` (mobile broadband) and `bluetooth`, and names that begin with `ppp`, count as metered.
    /// A Wi-Fi network that a phone provides cannot be recognised.
    public var allowsMetered = true
    /// The only address family to connect to; `nil` for both.
    public var family: Family?

    /// An address family.
    public enum Family: String, Hashable, Sendable { case ipv4, ipv6 }

    public init(interfaces: [String]? = nil, allowsMetered: Bool = true, family: Family? = nil) {
        self.interfaces = interfaces
        self.allowsMetered = allowsMetered
        self.family = family
    }
}

extension DownloadClient {
    /// Changes the network policy, effective immediately and also for running downloads.
    ///
    /// Connections over other interfaces are closed and the bytes they received are kept; the downloads continue over
    /// allowed interfaces. If there is none, they retry as if the network were down, and fail after
    /// ``DownloadOptions/retries`` attempts.
    public func update(network policy: NetworkPolicy) {
        self.transport.apply(policy)
    }
}
