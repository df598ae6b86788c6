import CLinux
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The file of ``SharedNotices``, which all processes of the user on this machine read and write.
///
/// It is in memory (tmpfs), so no call waits for a disk, and it does not outlive the boot. It is a cache: if it cannot be
/// made, is damaged or is removed, hosts refuse requests that need not have been sent.
final class NoticeFile: Sendable {
    private let descriptor: CInt
    private let bootID: String

    /// Opens the file in `segdl` below `XDG_RUNTIME_DIR` or, without that, in `/dev/shm/segdl-UID`. Both are of this user only;
    /// a directory or a file that another user could have made is not used.
    ///
    /// - Returns: Nil if there is no such place.
    static func standard(bootID: String) -> NoticeFile? {
        let runtime = ProcessInfo.processInfo.environment["XDG_RUNTIME_DIR"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        if let runtime, let file = NoticeFile(in: runtime, "segdl", isOwn: true, bootID: bootID) { return file }
        return NoticeFile(in: "/dev/shm", "segdl-\(geteuid())", isOwn: false, bootID: bootID)
    }

    /// - Parameters:
    ///   - parent: An existing directory in a tmpfs.
    ///   - name: The name of the directory in it, which is created if it is missing.
    ///   - isOwn: Whether the parent must be of this user only.
    init?(in parent: String, _ name: String, isOwn: Bool, bootID: String) {
        let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
        let outer = SystemCalls.openFile(parent, flags)
        guard outer >= 0 else { return nil }
        defer { SystemCalls.closeFile(outer) }
        guard !isOwn || Self.isTrusted(outer, .directory) else { return nil }
        _ = mkdirat(outer, name, 0o700)
        let directory = openat(outer, name, flags)
        guard directory >= 0 else { return nil }
        defer { SystemCalls.closeFile(directory) }
        guard Self.isTrusted(directory, .directory) else { return nil }
        let file = openat(directory, "notices", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600)
        guard file >= 0 else { return nil }
        guard Self.isTrusted(file, .file), segdl_free_memory(file) >= 0 else {
            SystemCalls.closeFile(file)
            return nil
        }
        self.descriptor = file
        self.bootID = bootID
    }

    private static func isTrusted(_ descriptor: CInt, _ kind: StorageStatus.Kind) -> Bool {
        var buffer = stat()
        guard fstat(descriptor, &buffer) == 0 else { return false }
        let status = StorageStatus(buffer)
        return status.kind == kind && status.ownership.objection(user: geteuid()) == nil
    }

    /// The bytes of the table; empty if it cannot be read.
    func read() -> [UInt8] {
        let length = SharedNotices.recordCount * SharedNotices.recordLength
        return [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            count = max(pread(self.descriptor, buffer.baseAddress, length, 0), 0)
        }
    }

    func table(_ bytes: [UInt8]) -> SharedNotices {
        SharedNotices(decoding: bytes, bootID: self.bootID, now: Self.now)
    }

    /// Writes the record of a notice. Its time is that of ``now``.
    func write(_ notice: HostNotice) {
        guard let (offset, bytes) = self.table(self.read()).record(of: notice) else { return }
        _ = pwrite(self.descriptor, bytes, bytes.count, off_t(offset))
    }

    /// The time since the start of the machine, which all of its processes share.
    static var now: Duration {
        var time = timespec()
        clock_gettime(CLOCK_BOOTTIME, &time)
        return .seconds(Int64(time.tv_sec)) + .nanoseconds(Int64(time.tv_nsec))
    }

    deinit { SystemCalls.closeFile(self.descriptor) }
}
