import Foundation

@testable import Origin

#if canImport(Glibc)
    import Glibc
#endif

/// A real nginx on loopback, plain and TLS, over IPv4 and IPv6, serving a directory of its own.
struct Nginx {
    let directory: String
    let port: Int
    let portTLS: Int

    /// The program, absent where it is not installed.
    static let path: String? = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    /// Runs `body` with a server, and stops it afterwards.
    static func run<Answer>(_ body: (Nginx) async throws -> Answer) async throws -> Answer {
        let directory = NSTemporaryDirectory() + "segdl-nginx-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: directory + "/www", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let nginx = try Self.started(in: directory)
        defer { nginx.stop() }
        return try await body(nginx)
    }

    /// A server on two ports nobody else took in the moment between asking for them and using them.
    private static func started(in directory: String) throws -> Nginx {
        for _ in 0..<10 {
            let ports = try Self.freePorts(2)
            let nginx = Nginx(directory: directory, port: ports[0], portTLS: ports[1])
            let files = [
                "nginx.conf": nginx.configuration, "leaf.pem": OriginCertificates.good,
                "leaf.key": OriginCertificates.goodKey, "ca.pem": Origin.certificateAuthorityPEM,
            ]
            for (name, text) in files {
                try Data(text.utf8).write(to: URL(fileURLWithPath: directory + "/" + name))
            }
            // It goes into the background once it listens, so that its end is the sign to begin.
            if (try? nginx.command([])) != nil { return nginx }
        }
        throw POSIXError(.EADDRINUSE)
    }

    /// Tells it to stop until its pid file is gone: it writes that a moment after it listens, and a signal that comes
    /// before it waits for signals is noted by it but not obeyed.
    private func stop() {
        var wasTold = false
        for _ in 0..<1000 {
            let isTold = (try? self.command(["-s", "stop"])) != nil
            wasTold = wasTold || isTold
            if wasTold, !FileManager.default.fileExists(atPath: self.directory + "/nginx.pid") { return }
        }
    }

    /// Runs nginx until the process itself ends. Spawned by hand: Foundation also waits for the daemon it leaves behind.
    private func command(_ arguments: [String]) throws {
        let program = Self.path ?? "nginx"
        let words = [
            program, "-p", self.directory, "-c", self.directory + "/nginx.conf", "-e", self.directory + "/error.log",
        ]
        var pointers = (words + arguments).map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var identifier: pid_t = 0
        var status: Int32 = 0
        guard posix_spawn(&identifier, program, nil, nil, &pointers, environ) == 0,
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
            access_log \(self.directory)/access.log;
            client_body_temp_path \(self.directory)/body;
            proxy_temp_path \(self.directory)/proxy;
            fastcgi_temp_path \(self.directory)/fastcgi;
            uwsgi_temp_path \(self.directory)/uwsgi;
            scgi_temp_path \(self.directory)/scgi;
            sendfile on;
            root \(self.directory)/www;
            server {
                listen 127.0.0.1:\(self.port);
                listen [::1]:\(self.port);
                location /moved { return 302 http://127.0.0.1:\(self.port)/file.bin; }
            }
            server {
                listen 127.0.0.1:\(self.portTLS) ssl;
                ssl_certificate \(self.directory)/leaf.pem;
                ssl_certificate_key \(self.directory)/leaf.key;
            }
        }
        """
    }

    /// Ports nobody listened on a moment ago.
    private static func freePorts(_ count: Int) throws -> [Int] {
        let sockets = (0..<count).map { _ in socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) }
        defer { for descriptor in sockets { close(descriptor) } }
        return try sockets.map { descriptor in
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isBound = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                    bind(descriptor, generic, length) == 0 && getsockname(descriptor, generic, &length) == 0
                }
            }
            guard isBound else { throw POSIXError(.EADDRINUSE) }
            return Int(UInt16(bigEndian: address.sin_port))
        }
    }

    /// Writes the file that is served as `/file.bin`.
    func serve(_ content: [UInt8]) throws {
        try Data(content).write(to: URL(fileURLWithPath: self.directory + "/www/file.bin"))
    }

    var accessLog: String {
        String(decoding: FileManager.default.contents(atPath: self.directory + "/access.log") ?? Data(), as: UTF8.self)
    }
}
