import Foundation

/// A real proxy, or Apache, on loopback, for the duration of one command.
struct ProxyServer {
    /// The script that runs the server beside the command and ends it afterwards. Before it listens the command's
    /// connections are refused, and segdl retries.
    let shell: String
    let port: Int

    private static func path(_ name: String) -> String? {
        ["/usr/bin/", "/usr/sbin/"].map { $0 + name }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    static let tinyproxy = Self.path("tinyproxy")
    static let dante = Self.path("danted")
    static let squid = Self.path("squid")
    static let microsocks = Self.path("microsocks")
    static let apache = Self.path("apache2")
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

    /// A SOCKS 5 proxy that requires the credentials `user:password`.
    static func microsocks(in directory: String) throws -> ProxyServer {
        let port = try Nginx.freePorts(1)[0]
        return try self.init(
            Self.microsocks, in: directory, arguments: "-i 127.0.0.1 -p \(port) -u user -P password", port: port
        ) { _ in "" }
    }

    /// A line of a file of digests: of `user`, `realm` and `password`, by `md5sum`.
    private static let digestLine = "user:realm:ebbc0ff9a121dbb6789bbe5f82174fa0"

    /// An HTTP proxy that requires a Digest login as `user` with `password`.
    static func squid(in directory: String, portTLS: Int) throws -> ProxyServer {
        let passwords = directory + "/digests"
        try Data(Self.digestLine.utf8).write(to: URL(fileURLWithPath: passwords))
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: directory)
        return try self.init(Self.squid, in: directory, arguments: "-N -f") { port in
            """
            http_port 127.0.0.1:\(port)
            pid_filename \(directory)/squid.pid
            access_log none
            cache_log \(directory)/squid.log
            cache deny all
            coredump_dir \(directory)
            shutdown_lifetime 0 seconds
            auth_param digest program /usr/lib/squid/digest_file_auth -c \(passwords)
            auth_param digest realm realm
            auth_param digest children 1
            acl known proxy_auth REQUIRED
            acl SSL_ports port \(portTLS)
            http_access allow known
            http_access deny all
            """
        }
    }

    /// Apache with a directory for whoever has a Digest login as `user` with `password`.
    static func apache(in directory: String, serving root: String) throws -> ProxyServer {
        let passwords = directory + "/digests"
        try Data((Self.digestLine + "\n").utf8).write(to: URL(fileURLWithPath: passwords))
        let modules = ["mpm_event", "authn_core", "authn_file", "authz_core", "authz_user", "auth_digest"]
        return try self.init(Self.apache, in: directory, arguments: "-D FOREGROUND -f") { port in
            """
            ServerRoot \(directory)
            ServerName localhost
            PidFile \(directory)/apache.pid
            ErrorLog \(directory)/apache.log
            DefaultRuntimeDir \(directory)
            Listen 127.0.0.1:\(port)
            \(modules.map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n"))
            DocumentRoot \(root)
            <Directory \(root)>
                AuthType Digest
                AuthName realm
                AuthDigestProvider file
                AuthUserFile \(passwords)
                Require valid-user
            </Directory>
            """
        }
    }

    private init(shell: String, port: Int) {
        self.shell = shell
        self.port = port
    }

    private init(
        _ program: String?, in directory: String, file: String = "proxy.conf", arguments: String, port: Int? = nil,
        configuration: (Int) -> String
    ) throws {
        self.port = try port ?? Nginx.freePorts(1)[0]
        let file = directory + "/" + file
        try Data(configuration(self.port).utf8).write(to: URL(fileURLWithPath: file))
        self.shell = """
            \(program ?? "false") \(arguments) \(file) >/dev/null 2>&1 & proxy=$!
            "$0" "$@"; status=$?
            kill $proxy; wait $proxy 2>/dev/null; exit $status
            """
    }
}
