import Foundation

/// A real proxy on loopback, for the duration of one command.
struct ProxyServer {
    /// The script that runs the proxy beside the command and ends it afterwards. Before it listens the command's
    /// connections are refused, and segdl retries.
    let shell: String
    let port: Int

    private static func path(_ name: String) -> String? {
        ["/usr/bin/", "/usr/sbin/"].map { $0 + name }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    static let tinyproxy = Self.path("tinyproxy")
    static let dante = Self.path("danted")
    static let squid = Self.path("squid")
    static let stunnel = Self.path("stunnel4")

    /// An HTTP proxy that requires the credentials `user:password`.
    static func tinyproxy(in directory: String, ports: [Int]) throws -> ProxyServer {
        try self.init(Self.tinyproxy, in: directory, arguments: "-d -c") { port in
            """
            Port \(port)
            Listen 127.0.0.1
            Timeout 60
            MaxClients 100
            BasicAuth user password
            \(ports.map { "ConnectPort \($0)" }.joined(separator: "\n"))
            """
        }
    }

    /// The same proxy over TLS, with the certificate of a running server.
    static func encrypted(in directory: String, certificateOf nginx: Nginx) throws -> ProxyServer {
        let inner = try Self.tinyproxy(in: directory, ports: [nginx.portTLS])
        let outer = try self.init(Self.stunnel, in: directory, file: "stunnel.conf", arguments: "") { port in
            """
            foreground = yes
            pid =
            [proxy]
            accept = 127.0.0.1:\(port)
            connect = 127.0.0.1:\(inner.port)
            cert = \(nginx.directory)/leaf.pem
            key = \(nginx.directory)/leaf.key
            """
        }
        let command = #""$0" "$@""#
        let shell = outer.shell.replacingOccurrences(of: command, with: "sh -c '\(inner.shell)' \(command)")
        return ProxyServer(shell: shell, port: outer.port)
    }

    /// A SOCKS 5 proxy.
    static func dante(in directory: String) throws -> ProxyServer {
        try self.init(Self.dante, in: directory, arguments: "-f") { port in
            """
            logoutput: stdout
            internal: 127.0.0.1 port = \(port)
            external: 127.0.0.1
            socksmethod: none
            clientmethod: none
            user.privileged: root
            user.unprivileged: daemon
            client pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }
            socks pass { from: 127.0.0.0/8 to: 0.0.0.0/0 }
            """
        }
    }

    private init(shell: String, port: Int) {
        self.shell = shell
        self.port = port
    }

    private init(
        _ program: String?, in directory: String, file: String = "proxy.conf", arguments: String,
        configuration: (Int) -> String
    ) throws {
        self.port = try Nginx.freePorts(1)[0]
        let file = directory + "/" + file
        try Data(configuration(self.port).utf8).write(to: URL(fileURLWithPath: file))
        self.shell = """
            \(program ?? "false") \(arguments) \(file) >/dev/null 2>&1 & proxy=$!
            "$0" "$@"; status=$?
            kill $proxy; wait $proxy 2>/dev/null; exit $status
            """
    }
}
