import Dispatch
import SegmentedDownload
import Synchronization

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Writes text to a descriptor, in order, from a queue of its own.
///
/// A slow reader or a stopped terminal delays neither downloads nor signals. The queue is bounded: when it is full,
/// text that may be dropped is dropped.
final class LineSink: Sendable {
    private struct State {
        var pending = 0
        /// The error number of a failed write. Later text is discarded.
        var failure: CInt?
    }

    /// 1024 texts, some hundred kilobytes: minutes of progress.
    private static let pendingMax = 1024

    private let descriptor: CInt
    private let queue: DispatchQueue
    private let prepare: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameter prepare: Is called before each text is written.
    init(descriptor: CInt, prepare: @escaping @Sendable () -> Void = {}) {
        self.descriptor = descriptor
        self.prepare = prepare
        self.queue = DispatchQueue(label: "segdl.line-sink.\(descriptor)")
    }

    /// - Parameter isSpare: Whether the text may be dropped if the queue is full.
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

    /// Waits until all text is written or the time is over.
    func drain(within limit: Duration? = nil) {
        let done = DispatchSemaphore(value: 0)
        self.queue.async { done.signal() }
        _ = done.wait(timeout: limit.map { .now() + Seconds($0).value } ?? .distantFuture)
    }

    /// The error number of a failed write: `EPIPE` if the reader closed the pipe.
    var failure: CInt? { self.state.withLock { $0.failure } }

    /// Returns the error number, or nil if everything is written.
    private func write(_ text: String) -> CInt? {
        self.prepare()
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
