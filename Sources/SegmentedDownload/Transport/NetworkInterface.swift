import NIOCore
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An address of this machine and its interface.
struct NetworkInterface: Hashable, Sendable {
    var name: String
    var address: SocketAddress
    var isMetered: Bool

    /// The interfaces that are up (`getifaddrs(3)`).
    static func all() throws -> [NetworkInterface] {
        try System.enumerateDevices().compactMap { device in
            guard let address = device.address else { return nil }
            return NetworkInterface(name: device.name, address: address, isMetered: Self.isMetered(device.name))
        }
    }

    /// Whether the device type in `/sys/class/net` is a metered one.
    private static func isMetered(_ name: String) -> Bool {
        guard !name.hasPrefix("ppp") else { return true }
        let facts = (try? String(contentsOfFile: "/sys/class/net/\(name)/uevent", encoding: .utf8)) ?? ""
        return ["DEVTYPE=wwan", "DEVTYPE=bluetooth"].contains { facts.split(separator: "\n").contains(Substring($0)) }
    }
}

extension NetworkPolicy {
    /// Whether a connection may use a local address.
    func allows(_ local: SocketAddress, among interfaces: [NetworkInterface]) -> Bool {
        guard self.family?.covers(local) ?? true else { return false }
        let own = interfaces.filter { $0.address.ipAddress == local.ipAddress }
        guard self.allowsMetered || !own.contains(where: \.isMetered) else { return false }
        guard let allowed = self.interfaces else { return true }
        return allowed.contains { name in own.contains { $0.name == name } || Self.isSame(name, local) }
    }

    /// The local address for a connection to a host; `nil` if the system chooses.
    ///
    /// - Throws: ``DownloadError`` with code `network` if no allowed address can reach the host.
    func localAddress(to host: String, among interfaces: [NetworkInterface]) throws(DownloadError) -> String? {
        let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        let target = try? SocketAddress(ipAddress: bare, port: 0)
        if let target, let family = self.family, !family.covers(target) {
            throw DownloadError(
                .network, "\(host) is not an \(family.name) address, and only \(family.name) is allowed",
                isTransient: false)
        }
        // Binding to the any-address of a family restricts the connection to that family.
        guard let allowed = self.interfaces else { return self.family?.anyAddress }
        let addresses = allowed.flatMap { name in
            // The address need not belong to an interface: 127.0.0.2, for example, does not. The system decides.
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
            throw DownloadError(.network, "\(host): \(reason)", hint: hint, isTransient: true)
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
    /// Whether the address is link-local, which is valid only within one network and with the interface's name (RFC
    /// 4291, section 2.5.6).
    var isLinkLocal: Bool { self.address.ipAddress?.lowercased().hasPrefix("fe80:") == true }
}
