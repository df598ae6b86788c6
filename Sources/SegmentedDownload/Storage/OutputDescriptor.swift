import SegmentedDownloadCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

/// An open descriptor, such as standard output, that a file's bytes are handed on to.
///
/// Whoever reads at its other end may be slow, or stop for good: nothing waits for him longer than it wants.
final class OutputDescriptor: Sendable {
    private enum Kind {
        /// A pipe, opened once more so that it need not block us, nor whoever else writes to it.
        case pipe(Int32)
        case socket
        /// A file or a terminal: these take what they get.
        case other
    }

    /// How long a reader is waited for at once, in milliseconds: one that reads all the time takes less.
    private static let patience: Int32 = 10

    /// How long one is left alone that took nothing in that time.
    private static let pause: Duration = .milliseconds(50)

    private let descriptor: Int32
    private let kind: Kind
    private let count = Atomic<Int64>(0)

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
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

    deinit {
        if case .pipe(let own) = self.kind { close(own) }
    }

    /// Whether anything was written.
    var hasWritten: Bool { self.count.load(ordering: .relaxed) > 0 }

    /// Writes all of the bytes.
    ///
    /// - Parameter isWanted: asked now and then while the reader keeps us waiting.
    /// - Throws: ``Failure`` with code `file` if it cannot be written, `EPIPE` among others where the reader is gone; `cancelled` once
    ///   it is not wanted any more.
    func write(_ bytes: UnsafeRawBufferPointer, while isWanted: () -> Bool) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            guard isWanted() else { throw Failure(.cancelled, "writing was interrupted") }
            let written = self.writeOnce(UnsafeRawBufferPointer(rebasing: rest))
            if written >= 0 {
                rest = rest.dropFirst(written)
                self.count.add(Int64(written), ordering: .relaxed)
            } else if errno == EAGAIN {
                var asked = pollfd(fd: self.descriptor, events: Int16(POLLOUT), revents: 0)
                // A reader that takes its time is not waited for by a thread that others need.
                if poll(&asked, 1, Self.patience) == 0 { try? await Task.sleep(for: Self.pause) }
            } else if errno != EINTR {
                throw Self.failure(errno)
            }
        }
    }

    private func writeOnce(_ bytes: UnsafeRawBufferPointer) -> Int {
        switch self.kind {
        case .pipe(let own): Glibc.write(own, bytes.baseAddress, bytes.count)
        case .socket: send(self.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
        case .other: Glibc.write(self.descriptor, bytes.baseAddress, bytes.count)
        }
    }

    private static func failure(_ code: Int32) -> Failure {
        let text = code == EPIPE ? "nobody reads it any more" : String(cString: strerror(code))
        let isFull = [ENOSPC, EDQUOT, EFBIG].contains(code)
        return Failure(isFull ? .space : .file, "the output cannot be written: \(text)", errno: code)
    }
}
