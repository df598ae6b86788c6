import CLinux
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The lock that one service of this user holds while it runs. The kernel releases it when the process ends.
struct ServiceLock: Sendable {
    private let descriptor: CInt

    /// - Throws: ``ServiceFailure`` if another process has the lock.
    init(_ path: String) throws(ServiceFailure) {
        let descriptor = SystemCalls.openFile(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw ServiceFailure("cannot open", path, errno: errno) }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let number = errno
            defer { SystemCalls.closeFile(descriptor) }
            guard number == EWOULDBLOCK else { throw ServiceFailure("cannot lock", path, errno: number) }
            throw ServiceFailure(
                "the service already runs, as process \(Self.owner(descriptor) ?? "unknown")",
                hint: "To end it: segdl stop")
        }
        self.descriptor = descriptor
        // Only for the message above.
        ftruncate(descriptor, 0)
        _ = "\(getpid())\n".utf8.withContiguousStorageIfAvailable {
            pwrite(descriptor, $0.baseAddress, $0.count, 0)
        }
    }

    private static func owner(_ descriptor: CInt) -> String? {
        withUnsafeTemporaryAllocation(byteCount: 16, alignment: 1) { buffer in
            let count = pread(descriptor, buffer.baseAddress, buffer.count, 0)
            guard count > 0 else { return nil }
            let text = String(decoding: UnsafeRawBufferPointer(rebasing: buffer[..<count]), as: UTF8.self)
            return Int(text.filter { !$0.isWhitespace }).map { "\($0)" }
        }
    }

    /// Whether no service has the lock.
    static func isFree(_ path: String) -> Bool {
        let descriptor = SystemCalls.openFile(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return true }
        defer { SystemCalls.closeFile(descriptor) }
        return flock(descriptor, LOCK_SH | LOCK_NB) == 0
    }

    func release() { SystemCalls.closeFile(self.descriptor) }
}
