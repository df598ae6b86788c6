import Dispatch
import Synchronization

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Writes text to a descriptor, in order, from a queue of its own.
///
/// A reader that sleeps or a terminal that was stopped holds up neither downloads nor signals: what waits is bounded,
/// and past that what can be spared is dropped.
final class LineSink: Sendable {
    private struct State {
        var pending = 0
        /// The system's error number for why no more can be written: what comes is thrown away.
        var failure: CInt?
    }

    /// Some hundred kilobytes of lines: minutes of progress for a reader that is late.
    private static let pendingMax = 1024

    private let descriptor: CInt
    private let queue: DispatchQueue
    private let state = Mutex(State())

    init(descriptor: CInt) {
        self.descriptor = descriptor
        self.queue = DispatchQueue(label: "segdl.line-sink.\(descriptor)")
    }

    /// - Parameter isSpare: whether the text may be dropped when too much waits.
    func send(_ text: String, isSpare: Bool = false) {
        let isTaken = self.state.withLock { state in
            guard state.failure == nil, !isSpare || state.pending < Self.pendingMax else { return false }
            state.pending += 1
            return true
        }
        guard isTaken else { return }
        self.queue.async {
            let failure = self.failure ?? self.write(text)
            self.state.withLock { state in
                state.pending -= 1
                state.failure = failure
            }
        }
    }

    /// Returns when all that was sent is written, or the time is up.
    func drain(within limit: Duration? = nil) {
        let done = DispatchSemaphore(value: 0)
        self.queue.async { done.signal() }
        _ = done.wait(timeout: limit.map { .now() + Seconds($0).value } ?? .distantFuture)
    }

    /// Why something could not be written: `EPIPE` if the reader has gone.
    var failure: CInt? { self.state.withLock { $0.failure } }

    /// Nil once all is written, else the system's error number.
    private func write(_ text: String) -> CInt? {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { SystemCalls.writeBytes(self.descriptor, $0) }
            if count >= 0 {
                bytes = bytes.dropFirst(count)
            } else if errno == EAGAIN {
                var descriptor = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&descriptor, 1, -1)
            } else if errno != EINTR {
                return errno
            }
        }
        return nil
    }
}
