import NIOCore
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

@Suite("Allowed interfaces")
struct NetworkPolicyTests {
    private static func interface(
        _ name: String, _ address: String, isMetered: Bool = false
    ) throws -> NetworkInterface {
        NetworkInterface(name: name, address: try SocketAddress(ipAddress: address, port: 0), isMetered: isMetered)
    }

    private static func machine() throws -> [NetworkInterface] {
        [
            try Self.interface("lo", "127.0.0.1"), try Self.interface("eth0", "fe80::1"),
            try Self.interface("eth0", "fd00::2"), try Self.interface("eth0", "192.0.2.2"),
            try Self.interface("wwan0", "198.51.100.7", isMetered: true), try Self.interface("six0", "fd00::6"),
        ]
    }

    @Test(
        "A connection uses the first interface that has an address for its host",
        arguments: [
            (["eth0"], "a.example", "192.0.2.2"), (["eth0"], "203.0.113.1", "192.0.2.2"),
            (["eth0"], "[2001:db8::1]", "fd00::2"),
            (["none0", "eth0"], "a.example", "192.0.2.2"), (["six0"], "a.example", "fd00::6"),
            (["wwan0", "eth0"], "a.example", "198.51.100.7"),
            (["127.0.0.9"], "a.example", "127.0.0.9"), (["fd00::6"], "a.example", "fd00::6"),
            (["six0", "lo"], "203.0.113.1", "127.0.0.1"),
        ])
    func localAddress(interfaces: [String], host: String, expected: String) throws {
        let policy = NetworkPolicy(interfaces: interfaces)
        let address = try policy.localAddress(to: host, among: try Self.machine())
        #expect(address == expected)
        let chosen = try SocketAddress(ipAddress: expected, port: 1)
        #expect(policy.allows(chosen, among: try Self.machine()))
    }

    @Test(
        "Without an allowed address for the host there is no connection",
        arguments: [(["none0"], "a.example"), (["six0"], "203.0.113.1"), (["127.0.0.1"], "[::1]"), ([], "a.example")])
    func noAddress(interfaces: [String], host: String) throws {
        let machine = try Self.machine()
        let failure = #expect(throws: DownloadError.self) {
            try NetworkPolicy(interfaces: interfaces).localAddress(to: host, among: machine)
        }
        #expect(failure?.code == .network && failure?.isTransient == true)
    }

    @Test("Without interface names the system chooses, and a metered interface is refused if it is not allowed")
    func metered() throws {
        let machine = try Self.machine()
        let wired = try SocketAddress(ipAddress: "192.0.2.2", port: 4000)
        let mobile = try SocketAddress(ipAddress: "198.51.100.7", port: 4000)
        #expect(try NetworkPolicy().localAddress(to: "a.example", among: machine) == nil)
        #expect(NetworkPolicy().allows(mobile, among: machine))
        let unmetered = NetworkPolicy(allowsMetered: false)
        #expect(try unmetered.localAddress(to: "a.example", among: machine) == nil)
        #expect(unmetered.allows(wired, among: machine) && !unmetered.allows(mobile, among: machine))
        let both = NetworkPolicy(interfaces: ["wwan0", "eth0"], allowsMetered: false)
        #expect(try both.localAddress(to: "a.example", among: machine) == "192.0.2.2")
        #expect(!NetworkPolicy(interfaces: ["198.51.100.7"], allowsMetered: false).allows(mobile, among: machine))
        #expect(!NetworkPolicy(interfaces: ["eth0"]).allows(mobile, among: machine))
    }

    @Test("The machine's interfaces are found, including loopback")
    func system() throws {
        let loopback = try NetworkInterface.all().first { $0.address.ipAddress == "127.0.0.1" }
        #expect(loopback?.isMetered == false)
    }
}
