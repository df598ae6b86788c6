import SegmentedDownload
import ServiceLifecycle

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Reports to systemd, as sd_notify(3) describes. Does nothing under another service manager.
struct ServiceManager: Service {
    private let socket: String?
    /// How often a sign of life is sent; nil for never.
    private let interval: Duration?

    init(environment: [String: String]) {
        self.socket = environment["NOTIFY_SOCKET"].flatMap { $0.isEmpty ? nil : $0 }
        let isOwn = environment["WATCHDOG_PID"].map { $0 == "\(getpid())" } ?? true
        // Half of the time after which systemd restarts the service.
        self.interval = isOwn ? environment["WATCHDOG_USEC"].flatMap { Int64($0) }.map { .microseconds($0 / 2) } : nil
    }

    /// Sends signs of life until the service shuts down.
    func run() async throws {
        guard let interval = self.interval, self.socket != nil else { return try await gracefulShutdown() }
        try? await cancelWhenGracefulShutdown {
            while true {
                self.send("WATCHDOG=1")
                try await Task.sleep(for: interval)
            }
        }
    }

    func send(_ text: String) {
        guard let socket = self.socket else { return }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(socket.utf8)
        // An abstract socket.
        if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let descriptor = SystemCalls.datagramSocket(AF_UNIX)
        guard descriptor >= 0 else { return }
        defer { SystemCalls.closeFile(descriptor) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
        _ = withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                text.utf8.withContiguousStorageIfAvailable {
                    sendto(descriptor, $0.baseAddress, $0.count, 0, address, length)
                }
            }
        }
    }
}
