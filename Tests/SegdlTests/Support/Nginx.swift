import CLinux
import Foundation
import Synchronization
import TestSupport

@testable import Origin

#if canImport(Glibc)
    import Glibc
#endif

/// A real nginx on loopback, plain and TLS, over IPv4 and IPv6, serving a directory of its own.
struct Nginx {
    /// Its configuration.
    struct Settings {
        /// The number of its addresses, from 127.0.0.1 on: each is a host with files of its own.
        var hosts = 1
        /// The number of requests it serves at once, in total and per host; it answers 503 to more.
        var requestsMax: (all: Int, host: Int)?
        /// Bytes per second of a connection, in nginx's syntax. nginx sends a second's worth at once.
        var rate = "0"
        var hasTags = true
        /// The bytes after which a response nearly stops when requested, in nginx's syntax.
        var stopsAfter = "512k"
        /// Further configuration of the first host's server, in nginx's syntax.
        var locations = ""
        /// `NAME:HASH` for its `auth_basic_user_file passwords`.
        var passwords = ""
    }

    let directory: String
    let port: Int
    let portTLS: Int
    private let settings: Settings

    /// The program; absent if it is not installed.
    static let path: String? = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    /// Runs `body` with a server, and stops it afterwards.
    static func run<Answer>(
        _ settings: Settings = Settings(), _ body: (Nginx) async throws -> Answer
    ) async throws -> Answer {
        try await TestPlaces.take(.processes) {
            let directory = NSTemporaryDirectory() + "segdl-nginx-" + UUID().uuidString
            for host in 1...settings.hosts {
                try FileManager.default.createDirectory(
                    atPath: directory + "/www/\(host)", withIntermediateDirectories: true)
            }
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let nginx = try Self.started(in: directory, settings)
            defer { nginx.stop() }
            return try await body(nginx)
        }
    }

    /// A server on two free ports; tries again if another process takes one first.
    private static func started(in directory: String, _ settings: Settings) throws -> Nginx {
        for _ in 0..<10 {
            let ports = try Self.freePorts(2)
            let nginx = Nginx(directory: directory, port: ports[0], portTLS: ports[1], settings: settings)
            let files = [
                "nginx.conf": nginx.configuration, "leaf.pem": OriginCertificates.good,
                "leaf.key": OriginCertificates.goodKey, "ca.pem": Origin.certificateAuthorityPEM,
                "passwords": settings.passwords, "client.pem": OriginCertificates.client,
                "client.key": OriginCertificates.clientKey,
            ]
            for (name, text) in files {
                try Data(text.utf8).write(to: URL(fileURLWithPath: directory + "/" + name))
            }
            // nginx forks into the background after it listens, so the end of the command means that it is ready.
            if (try? nginx.command([])) != nil { return nginx }
        }
        throw POSIXError(.EADDRINUSE)
    }

    /// Repeats the signal until the pid file is gone: nginx writes that file shortly after it listens, and ignores a
    /// signal that arrives before it waits for signals. Requests in progress end with it.
    func stop() {
        // The second call finds no process.
        let marker = self.directory + "/stopped"
        guard !FileManager.default.fileExists(atPath: marker) else { return }
        defer { _ = FileManager.default.createFile(atPath: marker, contents: nil) }
        var wasTold = false
        for _ in 0..<1000 {
            let isTold = (try? self.command(["-s", "stop"])) != nil
            wasTold = wasTold || isTold
            if wasTold, !FileManager.default.fileExists(atPath: self.directory + "/nginx.pid") { return }
        }
    }

    /// Runs nginx until the process itself ends. Not by Foundation, which also waits for the daemon.
    private func command(_ arguments: [String]) throws {
        let program = Self.path ?? "nginx"
        let words = [
            program, "-p", self.directory, "-c", self.directory + "/nginx.conf", "-e", self.directory + "/error.log",
        ]
        var pointers = (words + arguments).map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        // The server would keep what it inherits: a connection of another test would outlive its end.
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1)
        var identifier: pid_t = 0
        var status: Int32 = 0
        guard posix_spawn(&identifier, program, &actions, nil, &pointers, environ) == 0,
            waitpid(identifier, &status, 0) == identifier, status == 0
        else { throw POSIXError(.ECHILD) }
    }

    private var configuration: String {
        """
        \(getuid() == 0 ? "user root;" : "")
        worker_processes 1;
        pid \(self.directory)/nginx.pid;
        error_log \(self.directory)/error.log;
        events { worker_connections 128; }
        http {
            log_format facts '"$request" $status $body_bytes_sent $server_addr $http_authorization $http_cookie';
            access_log \(self.directory)/access.log facts;
            client_body_temp_path \(self.directory)/body;
            proxy_temp_path \(self.directory)/proxy;
            fastcgi_temp_path \(self.directory)/fastcgi;
            uwsgi_temp_path \(self.directory)/uwsgi;
            scgi_temp_path \(self.directory)/scgi;
            sendfile on;
            limit_rate \(self.settings.rate);
            etag \(self.settings.hasTags ? "on" : "off");
            \(self.limits)
            \((1...self.settings.hosts).map { self.server($0) }.joined(separator: "\n"))
        }
        """
    }

    private var limits: String {
        guard let max = self.settings.requestsMax else { return "" }
        return """
            limit_conn_zone $server_port zone=all:1m;
            limit_conn_zone $server_addr zone=host:1m;
            limit_conn all \(max.all);
            limit_conn host \(max.host);
            """
    }

    /// The server on one address; the first has all listeners.
    private func server(_ host: Int) -> String {
        let others = """
            listen [::1]:\(self.port);
            listen 127.0.0.1:\(self.portTLS) ssl;
            ssl_certificate \(self.directory)/leaf.pem;
            ssl_certificate_key \(self.directory)/leaf.key;
            ssl_client_certificate \(self.directory)/client.pem;
            ssl_verify_client optional;
            \(self.settings.locations)
            location /moved { return 302 http://127.0.0.1:\(self.port)/file.bin; }
            """
        return """
            server {
                limit_rate_after \(self.settings.stopsAfter);
                if (-f \(self.stopMarker)) { set $limit_rate 1k; }
                root \(self.directory)/www/\(host);
                listen 127.0.0.\(host):\(self.port);
                \(host == 1 ? others : "")
            }
            """
    }

    /// Below 32768, from which on the system gives ports to connections and origins (ip(7)): none of them takes one of
    /// these ports before a server listens at it.
    private static let ports = 10_000..<32_000
    /// The next port to try. Other runs of the tests begin elsewhere.
    private static let portNext = Mutex(Self.ports.lowerBound + Int(getpid()) % Self.ports.count)

    /// Ports without a listener, which no other test gets.
    static func freePorts(_ count: Int) throws -> [Int] {
        var free: [Int] = []
        for _ in Self.ports where free.count < count {
            let port = Self.portNext.withLock { next in
                defer { next = next + 1 < Self.ports.upperBound ? next + 1 : Self.ports.lowerBound }
                return next
            }
            if Self.isFree(port) { free.append(port) }
        }
        guard free.count == count else { throw POSIXError(.EADDRINUSE) }
        return free
    }

    private static func isFree(_ port: Int) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                bind(descriptor, generic, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    private var stopMarker: String { self.directory + "/slow" }

    /// Has each response from now on nearly stop after its beginning, or continue. An interruption then finds the
    /// download unfinished, however late it is.
    func nearlyStop(_ stops: Bool) throws {
        guard stops else { return try FileManager.default.removeItem(atPath: self.stopMarker) }
        try Data().write(to: URL(fileURLWithPath: self.stopMarker))
    }

    /// Writes a file that one of its hosts serves.
    func serve(_ content: [UInt8], as name: String = "file.bin", host: Int = 1) throws {
        let (path, files) = (self.path(name, host: host), FileManager.default)
        let earlier = try? files.attributesOfItem(atPath: path)[.modificationDate] as? Date
        try Data(content).write(to: URL(fileURLWithPath: path))
        // nginx's validators have seconds: other content of the same second and length would have the same ones.
        guard let earlier else { return }
        let next = max(earlier + 1, Date())
        try files.setAttributes([.modificationDate: next], ofItemAtPath: path)
    }

    /// The path of a file of one of its hosts.
    func path(_ name: String = "file.bin", host: Int = 1) -> String { self.directory + "/www/\(host)/\(name)" }

    func url(_ name: String = "file.bin", host: Int = 1) -> String { "http://127.0.0.\(host):\(self.port)/\(name)" }

    var accessLog: String {
        String(decoding: FileManager.default.contents(atPath: self.directory + "/access.log") ?? Data(), as: UTF8.self)
    }
}
