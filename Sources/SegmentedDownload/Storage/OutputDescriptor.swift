import SegmentedDownloadCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

/// An open descriptor, such as standard output, that a file's bytes are written to.
///
/// The reader at the other end may be slow or stop reading. A write can always be interrupted.
final class OutputDescriptor: InOrderOutput {
    private enum Kind {
        /// A pipe, reopened so that `O_NONBLOCK` does not affect other processes that write to it.
        case pipe(Int32)
        case socket
        /// A file or a terminal, which accepts all bytes, or a descriptor of our own that does not block.
        case other
    }

    /// 10 ms: the longest `poll` for a reader. A reader that reads continuously takes less.
    private static let patience: Int32 = 10

    /// 50 ms: how long the task sleeps if the reader has read nothing meanwhile.
    private static let pause: Duration = .milliseconds(50)

    private let descriptor: Int32
    /// Whether the descriptor is closed with this object.
    private let isOwned: Bool
    private let kind: Kind
    private let clock: any EngineClock
    private let count = Atomic<Int64>(0)

    init(_ descriptor: Int32, clock: any EngineClock) {
        self.descriptor = descriptor
        self.isOwned = false
        self.clock = clock
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            self.kind = .other
            return
        }
        switch status.st_mode & S_IFMT {
        case S_IFIFO:
            let own = open("/proc/self/fd/\(descriptor)", O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            self.kind = own >= 0 ? .pipe(own) : .other
        case S_IFSOCK: self.kind = .socket
        default: self.kind = .other
        }
    }

    /// An output for a descriptor that no other process has, which does not block if it is a pipe. It is closed with this object.
    init(owning descriptor: Int32, clock: any EngineClock) {
        self.descriptor = descriptor
        self.isOwned = true
        self.clock = clock
        self.kind = .other
    }

    deinit {
        if case .pipe(let own) = self.kind { SystemCalls.closeFile(own) }
        if self.isOwned { SystemCalls.closeFile(self.descriptor) }
    }

    /// Does nothing: a write that waits asks at intervals.
    func wake() {}

    var hasWritten: Bool { self.count.load(ordering: .relaxed) > 0 }

    /// - Throws: ``DownloadError`` with code `file` if the descriptor cannot be written, such as `EPIPE` after the reader has
    ///   closed it; `space` if the disk is full; `cancelled` once `isWanted` returns `false`.
    func write(_ bytes: UnsafeRawBufferPointer, while isWanted: () -> Bool) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            guard isWanted() else { throw DownloadError(.cancelled, "writing was interrupted") }
            let written = self.writeOnce(UnsafeRawBufferPointer(rebasing: rest))
            if written >= 0 {
                rest = rest.dropFirst(written)
                self.count.add(Int64(written), ordering: .relaxed)
            } else if errno == EAGAIN {
                var asked = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
                // For a slow reader the task sleeps, so that the thread is free for others.
                if poll(&asked, 1, Self.patience) == 0 {
                    try? await self.clock.sleep(until: self.clock.now + Self.pause)
                }
            } else if errno != EINTR {
                throw Self.failure(errno)
            }
        }
    }

    private func writeOnce(_ bytes: UnsafeRawBufferPointer) -> Int {
        switch self.kind {
        case .pipe(let own): SystemCalls.writeBytes(own, bytes)
        case .socket: send(self.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        case .other: SystemCalls.writeBytes(self.descriptor, bytes)
        }
    }

    private static func failure(_ code: Int32) -> DownloadError {
        let text = code == EPIPE ? "the reader has closed it" : String(cString: strerror(code))
        let isFull = [ENOSPC, EDQUOT, EFBIG].contains(code)
        return DownloadError(isFull ? .space : .file, "the output cannot be written: \(text)", errno: code)
    }
}
