import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The listening Unix socket of the service.
struct ServiceSocket: Sendable {
    /// Non-blocking.
    let descriptor: CInt
    private let path: String
    /// Identifies the file, so that a replaced one is not deleted. Nil for a socket of the service manager.
    private let file: FileFacts.Number?

    /// Listens on a path in a directory that only this user can use. The caller holds the service's lock.
    ///
    /// A socket that a killed service left is replaced. One on which a process still listens is not.
    ///
    /// - Throws: ``ServiceFailure``.
    init(at path: String) throws(ServiceFailure) {
        let address = try Self.address(path)
        if let facts = FileFacts(path) {
            guard facts.isSocket, facts.owner == geteuid() else {
                throw ServiceFailure("\(path.shown) is not a socket of this user", hint: "Move it away")
            }
            guard !Self.answers(address) else {
                throw ServiceFailure("another process listens on \(path.shown)", hint: "End it")
            }
            unlink(path)
        }
        let descriptor = Self.open()
        guard descriptor >= 0 else { throw ServiceFailure("cannot create the socket", path, errno: errno) }
        // Bound under this mode: there is no moment at which others could connect.
        let mask = umask(0o177)
        let isBound = Self.withAddress(address) { bind(descriptor, $0, $1) } == 0
        umask(mask)
        guard isBound, listen(descriptor, Self.backlog) == 0, let facts = FileFacts(path) else {
            let number = errno
            SystemCalls.closeFile(descriptor)
            throw ServiceFailure("cannot listen on", path, errno: number)
        }
        self.descriptor = descriptor
        self.path = path
        self.file = facts.number
    }

    /// 128 connections may wait to be accepted.
    private static let backlog: CInt = 128

    /// The socket that systemd passes to a service it starts on demand (sd_listen_fds(3)); nil if there is none.
    init?(inherited environment: [String: String]) {
        guard environment["LISTEN_PID"] == "\(getpid())", environment["LISTEN_FDS"] == "1" else { return nil }
        self.descriptor = 3
        self.path = ""
        self.file = nil
        _ = fcntl(3, F_SETFD, FD_CLOEXEC)
        _ = fcntl(3, F_SETFL, fcntl(3, F_GETFL) | O_NONBLOCK)
    }

    /// Deletes the file, unless it was replaced. The listener closes the descriptor.
    func remove() {
        if let file, FileFacts(self.path)?.number == file { unlink(self.path) }
    }

    /// Whether a process accepts connections on the path.
    static func answers(_ path: String) -> Bool {
        guard let address = try? Self.address(path) else { return false }
        return Self.answers(address)
    }

    private static func answers(_ address: sockaddr_un) -> Bool {
        let descriptor = Self.open()
        guard descriptor >= 0 else { return false }
        defer { SystemCalls.closeFile(descriptor) }
        // EAGAIN: the queue of connections is full, so somebody listens.
        return Self.withAddress(address) { connect(descriptor, $0, $1) } == 0 || errno == EAGAIN
    }

    private static func open() -> CInt {
        #if canImport(Musl)
            socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
        #else
            socket(
                AF_UNIX,
                CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
        #endif
    }

    private static func address(_ path: String) throws(ServiceFailure) -> sockaddr_un {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let lengthMax = MemoryLayout.size(ofValue: address.sun_path) - 1
        guard path.utf8.count <= lengthMax else {
            throw ServiceFailure(
                "the socket's path \(path.shown) has more than \(lengthMax) bytes",
                hint: "Set XDG_RUNTIME_DIR to a shorter path")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        return address
    }

    private static func withAddress(
        _ address: sockaddr_un, _ body: (UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) -> CInt {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
