import Foundation
import Origin

/// A server for the files of a contest, which counts requests and bytes.
protocol Server: Sendable {
    /// Resets the counts.
    func begin() async throws
    /// The counts since then.
    func counts() async throws -> ServerCounts
}

struct ServerCounts: Sendable {
    /// Bytes of bodies.
    var bytes: Int64 = 0
    var requests = 0
    /// Answers with 429 or 503.
    var rejected = 0
}

/// The fixture origin, in this process: it serves at any rate, and refuses as configured.
struct FixtureServer: Server {
    let origin: Origin

    func begin() { self.origin.reset() }

    func counts() -> ServerCounts {
        let log = self.origin.log.snapshot()
        return ServerCounts(bytes: log.bytesSent, requests: log.requests.count, rejected: log.rejected)
    }

    /// What is wrong with a file that should have this length and this origin's bytes.
    static func check(_ file: String, length: Int64) -> @Sendable (String) -> String? {
        { directory in
            OriginContent(seed: 1).firstMismatch(inFileAt: "\(directory)/\(file)", length: length)
                .map { "a wrong file, from byte \($0)" }
        }
    }
}

/// An nginx with a configuration of its own.
struct NginxServer: Server {
    static let port = 28_480
    static let securePort = 28_443

    private let lab: Lab
    private let prefix: [String]

    private var configuration: String { self.lab.path("nginx.conf") }
    private var log: String { self.lab.path("access.log") }
    /// The certificate it sends.
    var certificate: String { self.lab.path("certificate.pem") }

    static func lack(_ lab: Lab) -> String? {
        lab.program("nginx") == nil ? "nginx is not installed" : nil
    }

    /// Serves a directory for the duration of `body`, in plain text and, if openssl is installed, with TLS.
    ///
    /// - Parameters:
    ///   - http: Further directives within `http`.
    ///   - prefix: Arguments put before its command, to run it in another namespace.
    static func with<Value>(
        _ lab: Lab, root: String, http: String = "", address: String = "127.0.0.1", prefix: [String] = [],
        _ body: (NginxServer) async throws -> Value
    ) async throws -> Value {
        let server = NginxServer(lab: lab, prefix: prefix)
        try await server.start(root: root, http: http, address: address)
        let result: Result<Value, any Error>
        do { result = .success(try await body(server)) } catch { result = .failure(error) }
        try await lab.run(prefix + server.command + ["-s", "stop"])
        while FileManager.default.fileExists(atPath: lab.path("nginx.pid")) {
            try await Task.sleep(for: .milliseconds(20))
        }
        return try result.get()
    }

    private var command: [String] { ["nginx", "-p", self.lab.directory, "-c", self.configuration] }

    private func start(root: String, http: String, address: String) async throws {
        var secure = ""
        if !FileManager.default.fileExists(atPath: self.certificate) {
            try await self.lab.run([
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                "-days", "2",
                "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.lab.path("key.pem"),
                "-out", self.certificate,
            ])
        }
        if FileManager.default.fileExists(atPath: self.certificate) {
            secure = """
                server {
                    listen \(address):\(Self.securePort) ssl;
                    ssl_certificate \(self.certificate); ssl_certificate_key \(self.lab.path("key.pem"));
                }
                """
        }
        let text = """
            \(getuid() == 0 ? "user root;" : "")
            worker_processes 2;
            pid \(self.lab.path("nginx.pid"));
            error_log \(self.lab.path("nginx.log"));
            events { worker_connections 512; }
            http {
                log_format counts '$status $body_bytes_sent';
                access_log \(self.log) counts;
                sendfile on;
                keepalive_requests 100000;
                root \(root);
                \(http)
                server { listen \(address):\(Self.port); }
                \(secure)
            }
            """
        try text.write(toFile: self.configuration, atomically: true, encoding: .utf8)
        guard try await self.lab.run(self.prefix + self.command) == 0 else {
            throw Lab.Problem("nginx does not start: \(self.lab.lastWords)")
        }
    }

    func begin() throws {
        // The log is open for appending: the next line is at the beginning again.
        guard truncate(self.log, 0) == 0 || errno == ENOENT else {
            throw Lab.Problem("\(self.log) could not be truncated")
        }
    }

    func counts() async throws -> ServerCounts {
        // nginx writes a line after it notices that the connection closed, which takes an unspecified time.
        var text = ""
        repeat {
            text = (try? String(contentsOfFile: self.log, encoding: .utf8)) ?? ""
            try await Task.sleep(for: .milliseconds(100))
        } while text != (try? String(contentsOfFile: self.log, encoding: .utf8)) ?? ""
        var counts = ServerCounts()
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: " ")
            guard fields.count == 2, let bytes = Int64(fields[1]) else { continue }
            counts.requests += 1
            if fields[0] == "429" || fields[0] == "503" { counts.rejected += 1 } else { counts.bytes += bytes }
        }
        return counts
    }

    /// What is wrong with files that should be equal to those in another directory.
    static func check(_ names: [String] = ["file"], against root: String) -> @Sendable (String) throws -> String? {
        { directory in
            let found = try FileManager.default.contentsOfDirectory(atPath: directory)
            guard found.count == names.count else { return "\(found.count) files instead of \(names.count)" }
            for name in names where !Self.areEqual("\(directory)/\(name)", "\(root)/\(name)") {
                return "\(name) is wrong"
            }
            return nil
        }
    }

    private static func areEqual(_ left: String, _ right: String) -> Bool {
        let files = [left, right].map { (path: String) in open(path, O_RDONLY | O_CLOEXEC) }
        defer { for file in files where file >= 0 { close(file) } }
        guard files.allSatisfy({ $0 >= 0 }) else { return false }
        return withUnsafeTemporaryAllocation(byteCount: 2 << 18, alignment: 16) { buffer in
            while true {
                let counts = [0, 1].map { read(files[$0], buffer.baseAddress! + $0 << 18, 1 << 18) }
                guard counts[0] == counts[1], counts[0] >= 0 else { return false }
                if counts[0] == 0 { return true }
                guard memcmp(buffer.baseAddress!, buffer.baseAddress! + 1 << 18, counts[0]) == 0 else { return false }
            }
        }
    }
}
