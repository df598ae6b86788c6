import NIOCore
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An address of this machine, and the interface it belongs to.
struct NetworkInterface: Hashable, Sendable {
    var name: String
    var address: SocketAddress
    var isMetered: Bool

    /// Those that are up, as `getifaddrs(3)` has them.
    static func all() throws -> [NetworkInterface] {
        try System.enumerateDevices().compactMap { device in
            guard let address = device.address else { return nil }
            return NetworkInterface(name: device.name, address: address, isMetered: Self.isMetered(device.name))
        }
    }

    /// By the kind of device that `/sys/class/net` tells, as far as it tells any.
    private static func isMetered(_ name: String) -> Bool {
        guard !name.hasPrefix("ppp") else { return true }
        let facts = (try? String(contentsOfFile: "/sys/class/net/\(name)/uevent", encoding: .utf8)) ?? ""
        return ["DEVTYPE=wwan", "DEVTYPE=bluetooth"].contains { facts.split(separator: "\n").contains(Substring($0)) }
    }
}

extension NetworkPolicy {
    /// Whether a connection may begin at an address.
    func allows(_ local: SocketAddress, among interfaces: [NetworkInterface]) -> Bool {
        guard self.family?.covers(local) ?? true else { return false }
        let own = interfaces.filter { $0.address.ipAddress == local.ipAddress }
        guard self.allowsMetered || !own.contains(where: \.isMetered) else { return false }
        guard let allowed = self.interfaces else { return true }
        return allowed.contains { name in own.contains { $0.name == name } || Self.isSame(name, local) }
    }

    /// Where a connection to a host begins; absent where the system may choose.
    ///
    /// - Throws: ``Failure`` with code `network` where nothing that is allowed can reach it.
    func localAddress(to host: String, among interfaces: [NetworkInterface]) throws(Failure) -> String? {
        let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        let target = try? SocketAddress(ipAddress: bare, port: 0)
        if let target, let family = self.family, !family.covers(target) {
            throw Failure(.network, "\(host) is no \(family.name) address, and others are not allowed")
        }
        // A connection that begins at any address of one family ends at one of it.
        guard let allowed = self.interfaces else { return self.family?.anyAddress }
        let addresses = allowed.flatMap { name in
            // One that no interface has may be this machine's all the same, such as 127.0.0.2; the system knows.
            if let address = try? SocketAddress(ipAddress: name, port: 0) { return [address] }
            return interfaces.filter { $0.name == name && !$0.isLinkLocal }.map(\.address)
        }.filter { self.allows($0, among: interfaces) }
        let chosen =
            if let target {
                addresses.first { $0.protocol == target.protocol }
            } else {
                addresses.first { $0.protocol == .inet } ?? addresses.first
            }
        guard let text = chosen?.ipAddress else {
            let names = allowed.map(\.printable).joined(separator: ", ")
            let reason = allowed.isEmpty ? "no network interface is allowed" : "no address to connect from on \(names)"
            let hint = "Name an interface that has an address of the right family (ip address shows them)"
            throw Failure(.network, "\(host): \(reason)", hint: hint, isTransient: true)
        }
        return text
    }

    private static func isSame(_ text: String, _ address: SocketAddress) -> Bool {
        (try? SocketAddress(ipAddress: text, port: 0))?.ipAddress == address.ipAddress
    }
}

extension NetworkPolicy.Family {
    var name: String {
        switch self {
        case .ipv4: "IPv4"
        case .ipv6: "IPv6"
        }
    }

    var anyAddress: String {
        switch self {
        case .ipv4: "0.0.0.0"
        case .ipv6: "::"
        }
    }

    func covers(_ address: SocketAddress) -> Bool {
        switch self {
        case .ipv4: address.protocol == .inet
        case .ipv6: address.protocol == .inet6
        }
    }
}

extension NetworkInterface {
    /// Of use within one network only, and only with the interface's name (RFC 4291 §2.5.6).
    var isLinkLocal: Bool { self.address.ipAddress?.lowercased().hasPrefix("fe80:") == true }
}
