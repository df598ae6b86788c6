import ArgumentParser
import NIOCore
import SegmentedDownload

/// The options for control of the background service over TCP.
struct RPCOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Answer aria2's JSON-RPC at this address and port, such as 127.0.0.1:6800. (default: no TCP port)",
            valueName: "ADDRESS:PORT"))
    var rpcListen: RPCAddress?

    @Option(
        help: ArgumentHelp(
            "The secret that clients must send. (default: the one in ~/.local/state/segdl/rpc-secret, which is made)",
            valueName: "TEXT"))
    var rpcSecret: String?

    @Flag(help: "Allow an address that other machines can reach. The connection is not encrypted.")
    var rpcAllowRemote = false

    @Option(
        help: ArgumentHelp(
            "Also allow this origin of web pages, such as https://ariang.example.org. Repeatable.", valueName: "ORIGIN")
    )
    var rpcAllowOrigin: [String] = []

    @Option(
        help: ArgumentHelp(
            "Also allow this name of the machine in requests. Repeatable. (default: addresses and localhost)",
            valueName: "NAME"))
    var rpcAllowHost: [String] = []

    @Option(
        help: ArgumentHelp(
            "Clients may save files in this directory and below. Repeatable. (default: the directory of -d, unless that is the home directory)",
            valueName: "DIR"), completion: .directory, transform: HomePath.directory)
    var rpcRoot: [String] = []

    @Flag(help: "Clients may fetch from this machine and from private networks.")
    var rpcAllowPrivate = false

    @Flag(help: "Also serve a web page at --rpc-listen.")
    var web = false

    mutating func validate() throws {
        guard let address = self.rpcListen else {
            if self.web || self.rpcSecret != nil || !self.rpcRoot.isEmpty || self.rpcAllowRemote || self.rpcAllowPrivate
                || !self.rpcAllowOrigin.isEmpty || !self.rpcAllowHost.isEmpty
            {
                throw ValidationError("--web and the options of the RPC need --rpc-listen ADDRESS:PORT")
            }
            return
        }
        guard address.isLoopback || self.rpcAllowRemote else {
            throw ValidationError("other machines can reach \(address); allow that with --rpc-allow-remote")
        }
        if let secret = self.rpcSecret, secret.utf8.count < 8 {
            throw ValidationError("--rpc-secret must have at least 8 bytes")
        }
        for origin in self.rpcAllowOrigin where (try? SourceURL(origin)) == nil || origin.hasSuffix("/") {
            throw ValidationError("\(origin) is no origin: write it as https://example.org")
        }
    }
}

/// An IP address and a port as an argument: `127.0.0.1:6800`, `[::1]:6800`, or a port alone for `127.0.0.1`.
struct RPCAddress: Hashable, ExpressibleByArgument, CustomStringConvertible {
    let host: String
    let port: Int

    init?(argument: String) {
        let text = argument.hasPrefix(":") ? "127.0.0.1" + argument : argument
        if let port = Int(text) {
            (self.host, self.port) = ("127.0.0.1", port)
        } else {
            guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]) else {
                return nil
            }
            let host = text[..<colon]
            self.host =
                host == "localhost"
                ? "127.0.0.1"
                : host.hasPrefix("[") && host.hasSuffix("]")
                    ? String(host.dropFirst().dropLast()) : String(host)
            self.port = port
        }
        guard (0...65535).contains(self.port), (try? SocketAddress(ipAddress: self.host, port: self.port)) != nil else {
            return nil
        }
    }

    init(host: String, port: Int) { (self.host, self.port) = (host, port) }

    var isLoopback: Bool { self.host.hasPrefix("127.") || self.host == "::1" }

    var description: String { self.host.contains(":") ? "[\(self.host)]:\(self.port)" : "\(self.host):\(self.port)" }
}
