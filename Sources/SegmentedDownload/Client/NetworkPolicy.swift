/// Which of the system's network interfaces connections may use.
///
/// It is the client's, see ``DownloadConfiguration/network``, and may be changed while downloads run, see
/// ``DownloadClient/update(network:)``. No request is sent on a connection that turns out to go over another interface: it is
/// closed first. Which way packets take is the system's routing, as ever: naming an interface has connections begin at its address.
public struct NetworkPolicy: Hashable, Sendable {
    /// Names such as `eth0`, or addresses of this machine, in the order of preference; absent for any. Where a host has addresses
    /// of both families, and so has the interface, IPv4 is used.
    public var interfaces: [String]?
    /// Whether connections may go over interfaces where bytes cost money.
    ///
    /// Those are what Linux calls `wwan` (mobile broadband) and `bluetooth`, and `ppp…`. A wireless network that a phone
    /// provides looks like any other.
    public var allowsMetered = true
    /// The addresses that connections may lead to; absent for any.
    public var family: Family?

    /// A kind of address.
    public enum Family: String, Hashable, Sendable { case ipv4, ipv6 }

    public init(interfaces: [String]? = nil, allowsMetered: Bool = true, family: Family? = nil) {
        self.interfaces = interfaces
        self.allowsMetered = allowsMetered
        self.family = family
    }
}

extension DownloadClient {
    /// Changes which interfaces may be used, from now on and for what runs: connections over others are closed, what they brought is
    /// kept, and the same downloads go on over what is allowed. Where nothing is, they try again as for any network that is down, and
    /// fail after ``DownloadRequest/retries``.
    public func update(network policy: NetworkPolicy) {
        self.transport.apply(policy)
    }
}
