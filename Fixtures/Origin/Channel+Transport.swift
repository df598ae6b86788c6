import NIOCore
import NIOSSL

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// Endings of a connection that TCP has and TLS does not. All run on the channel's event loop.
extension Channel {
    /// Closes below TLS, without a `close_notify`.
    func closeTransport() {
        if let context = try? self.pipeline.syncOperations.context(handlerType: NIOSSLServerHandler.self) {
            context.close(promise: nil)
        } else {
            self.close(promise: nil)
        }
    }

    /// Closes with an RST.
    func resetTransport() {
        (self as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in }
        self.closeTransport()
    }

    /// Bytes that the peer's system has not acknowledged; zero where this is unavailable.
    var unacknowledgedCount: Int {
        #if os(Linux)
            self.withSocket { socket in
                var count: CInt = 0
                return ioctl(socket, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
            } ?? 0
        #else
            0
        #endif
    }

    /// Sets close-on-exec, which NIO does not.
    ///
    /// Otherwise a client that a test starts would keep the origin's sockets open: no FIN, no RST, and a port in use.
    func closeOnExec() {
        _ = self.withSocket { fcntl($0, F_SETFD, FD_CLOEXEC) }
    }

    private func withSocket<Value>(_ body: (CInt) -> Value) -> Value? {
        try? self.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self, body)
    }
}

enum WallClock {
    static func unixSeconds() -> Int64 {
        Int64(time(nil))
    }
}
