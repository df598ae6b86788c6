import Foundation
import TestSupport
import Testing

/// The real background service, run as a process with directories of its own.
struct Service: Sendable {
    let command: Segdl
    /// The process of the service.
    let process: Int32

    var environment: [String: String] { Self.environment(self.command) }

    private static func environment(_ command: Segdl) -> [String: String] {
        [
            "HOME": command.path("home"), "XDG_STATE_HOME": command.path("state"),
            "XDG_RUNTIME_DIR": command.path("run"),
        ]
    }

    /// The TCP port that the service has reported; nil if there is none.
    var rpcPort: Int? {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: self.command.directory)) ?? []
        let texts = names.filter { $0.hasPrefix(".") && $0.hasSuffix(".err") }.compactMap {
            FileManager.default.contents(atPath: self.command.path($0)).map { String(decoding: $0, as: UTF8.self) }
        }
        return texts.compactMap { $0.firstMatch(of: #/RPC at http://127\.0\.0\.1:(\d+)/#) }.first.flatMap {
            Int($0.output.1)
        }
    }

    var socket: String { self.command.path("run/segdl/socket") }

    /// Runs a command of the queue.
    func run(_ arguments: String...) async throws -> Segdl.Outcome { try await self.run(arguments) }

    func run(_ arguments: [String]) async throws -> Segdl.Outcome {
        try await self.command.run(arguments, environment: self.environment)
    }

    /// The entries, as `list --json` writes them.
    func list() async throws -> [[String: Any]] { try await self.run("list", "--no-autostart", "--json").events }

    /// Adds files, and returns their IDs.
    func add(_ arguments: String...) async throws -> [String] {
        let outcome = try await self.run(["add", "--no-autostart", "--quiet"] + arguments)
        #expect(outcome.status == 0, "\(outcome.errors)")
        return outcome.output.split(separator: "\n").map { String($0) }
    }

    /// What the service answers to these bytes, until it closes the connection.
    func answer(to request: String) async throws -> String {
        try await RawConnection.answer(to: Array(request.utf8), socket: self.socket)
    }

    /// Runs the service while `body` does, and ends it with `stop`, unless it has ended.
    ///
    /// - Parameters:
    ///   - shell: A script for bash that runs the service as `"$0" "$@"`.
    ///   - stopping: Whether it is stopped. Otherwise `body` ends it.
    /// - Returns: How the service ended.
    static func run(
        _ command: Segdl, _ options: [String] = [], shell: String? = nil, stopping: Bool = true,
        _ body: @escaping @Sendable (Service) async throws -> Void
    ) async throws -> Segdl.Outcome {
        let environment = Self.environment(command)
        for name in ["home", "run", "state"] {
            try FileManager.default.createDirectory(
                atPath: command.path(name), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
        let failure = Failure()
        let outcome = try await command.run(["daemon"] + options, shell: shell, environment: environment) { process in
            let service = Service(command: command, process: process)
            await service.waitUntilReady()
            do {
                try await body(service)
            } catch {
                failure.set(error)
            }
            if stopping || failure.error != nil { _ = try? await service.run("stop") }
        }
        if let error = failure.error { throw error }
        return outcome
    }

    private func waitUntilReady() async {
        while !Task.isCancelled,
            await (try? self.answer(to: "GET /v1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))?.contains("200 OK")
                != true
        {
            // Not a delay for correctness: it leaves the processor to the service.
            try? await Task.sleep(for: .milliseconds(5))
        }
    }

    private final class Failure: @unchecked Sendable {
        private let lock = NSLock()
        private var value: (any Error)?

        var error: (any Error)? { self.lock.withLock { self.value } }

        func set(_ error: any Error) { self.lock.withLock { self.value = error } }
    }
}

/// A connection to a Unix socket on which any bytes can be sent.
enum RawConnection {
    static func open(_ path: String) -> CInt? {
        let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let isOpen = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        guard !isOpen else { return descriptor }
        close(descriptor)
        return nil
    }

    /// To a port on 127.0.0.1.
    static func open(port: Int) -> CInt? {
        let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let isOpen = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard !isOpen else { return descriptor }
        close(descriptor)
        return nil
    }

    static func answer(to bytes: [UInt8], port: Int) async throws -> String {
        try await aside {
            guard let descriptor = Self.open(port: port) else { return "refused" }
            defer { close(descriptor) }
            return Self.answer(to: bytes, on: descriptor)
        }
    }

    static func answer(to bytes: [UInt8], socket: String) async throws -> String {
        try await aside {
            guard let descriptor = Self.open(socket) else { return "refused" }
            defer { close(descriptor) }
            return Self.answer(to: bytes, on: descriptor)
        }
    }

    /// Sends the bytes, and reads until the peer closes the connection, or its answer has a text.
    static func answer(to bytes: [UInt8], on descriptor: CInt, until end: String? = nil) -> String {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            guard count > 0 else { break }
            rest = rest.dropFirst(count)
        }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return String(decoding: answer, as: UTF8.self) }
            answer += buffer[..<count]
            if let end {
                let text = String(decoding: answer, as: UTF8.self)
                if text.contains(end) { return text }
            }
        }
    }
}
