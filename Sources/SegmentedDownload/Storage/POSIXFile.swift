import CLinux
import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// An open file descriptor. Reads and writes use explicit offsets, so any number of tasks may use it at the same time.
final class POSIXFile: StorageFile {
    private let path: String
    private let descriptor: Int32
    private let isClosed = Latch()

    init(descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit {
        self.close()
    }

    /// A path by which the system finds the open file (proc_pid_fd(5)).
    var descriptorPath: String { "/proc/self/fd/\(self.descriptor)" }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        let count = try POSIXStorage.check("pwrite", self.path) {
            pwrite(self.descriptor, bytes.baseAddress, bytes.count, off_t(offset))
        }
        // POSIX allows a result of zero. Reporting a full disk avoids an endless loop.
        guard count > 0 || bytes.isEmpty else { throw StorageError(call: "pwrite", path: self.path, errno: ENOSPC) }
        return count
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        try POSIXStorage.check("pread", self.path) {
            pread(self.descriptor, buffer.baseAddress, buffer.count, off_t(offset))
        }
    }

    func truncate(to length: Int64) throws(StorageError) {
        try POSIXStorage.check("ftruncate", self.path) { ftruncate(self.descriptor, off_t(length)) }
    }

    func allocate(_ range: Range<Int64>) throws(StorageError) -> Bool {
        // A tmpfs reserves space by clearing memory: 0.25 s for 1 GiB, a third of the time that its download takes. Files
        // that take much of what is free are reserved all the same, so that two of them do not both run out of it.
        let free = segdl_free_memory(self.descriptor)
        guard free < 0 || Int64(range.count) > free / Self.unreservedShare else { return false }
        do throws(StorageError) {
            try POSIXStorage.check("fallocate", self.path) {
                fallocate(self.descriptor, 0, off_t(range.lowerBound), off_t(range.count))
            }
            return true
        } catch  where error.saysUnsupported {
            return false
        }
    }

    /// 8: five long files are fetched at a time by default, and others may come.
    private static let unreservedShare: Int64 = 8

    func firstHole(from start: Int64) throws(StorageError) -> Int64 {
        // 4 is `SEEK_HOLE`. The file offset that `lseek` moves is not used otherwise.
        let offset = lseek(self.descriptor, off_t(start), 4)
        return offset < 0 ? try self.status().length : Int64(offset)
    }

    func data() throws(StorageError) -> [Range<Int64>] {
        let length = try self.status().length
        var data: [Range<Int64>] = []
        var end: Int64 = 0
        while end < length {
            // 3 is `SEEK_DATA`. It fails with `ENXIO` if only a hole follows.
            let start = Int64(lseek(self.descriptor, off_t(end), 3))
            if start < 0 {
                if SystemCalls.errorNumber != ENXIO, data.isEmpty { data = [0..<length] }
                break
            }
            let hole = Int64(lseek(self.descriptor, off_t(start), 4))
            end = hole > start ? min(hole, length) : length
            data.append(start..<end)
        }
        return data
    }

    func isOpenElsewhere() -> Bool {
        // A write lease is granted only if the file is open once. 1024 is `F_SETLEASE`, and 2 releases the lease.
        if fcntl(self.descriptor, 1024, Int32(F_WRLCK)) == 0 {
            _ = fcntl(self.descriptor, 1024, Int32(F_UNLCK))
            return false
        }
        return SystemCalls.errorNumber == EAGAIN
    }

    func synchronize(metadata: Bool) async throws(StorageError) {
        try POSIXStorage.check(metadata ? "fsync" : "fdatasync", self.path) {
            metadata ? fsync(self.descriptor) : fdatasync(self.descriptor)
        }
    }

    func status() throws(StorageError) -> StorageStatus {
        var buffer = stat()
        try POSIXStorage.check("fstat", self.path) { fstat(self.descriptor, &buffer) }
        return StorageStatus(buffer)
    }

    func tryLock() throws(StorageError) -> StorageLock {
        do throws(StorageError) {
            try POSIXStorage.check("flock", self.path) { flock(self.descriptor, LOCK_EX | LOCK_NB) }
            return .taken
        } catch  where error.errno == EWOULDBLOCK {
            return .busy
        } catch  where error.saysUnsupported {
            return .unsupported
        }
    }

    func attribute(_ name: String) -> [UInt8]? {
        var value = [UInt8](repeating: 0, count: 4096)
        let count = fgetxattr(self.descriptor, name, &value, value.count)
        return count < 0 ? nil : Array(value.prefix(count))
    }

    func setAttribute(_ name: String, _ value: [UInt8]) -> Bool {
        // The call is repeated only if a signal interrupts it.
        (try? POSIXStorage.check("fsetxattr", self.path) {
            fsetxattr(self.descriptor, name, value, value.count, 0)
        }) != nil
    }

    func removeAttribute(_ name: String) {
        _ = try? POSIXStorage.check("fremovexattr", self.path) { fremovexattr(self.descriptor, name) }
    }

    func setPermissions(_ permissions: UInt32) throws(StorageError) {
        try POSIXStorage.check("fchmod", self.path) { fchmod(self.descriptor, mode_t(permissions)) }
    }

    func setModified(_ seconds: Int64) throws(StorageError) {
        // `UTIME_OMIT`, a macro that is not imported: the access time is unchanged.
        let times = [
            timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2), timespec(tv_sec: Int(seconds), tv_nsec: 0),
        ]
        try POSIXStorage.check("futimens", self.path) { futimens(self.descriptor, times) }
    }

    func close() {
        guard self.isClosed.raise() else { return }
        // An error of `close` is ignored: data that matters was synced before.
        SystemCalls.closeFile(self.descriptor)
    }
}

extension StorageStatus {
    init(_ buffer: stat) {
        let kind: Kind =
            switch buffer.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .directory
            case S_IFLNK: .link
            default: .other
            }
        self.init(
            kind: kind, length: Int64(buffer.st_size), device: UInt64(buffer.st_dev), inode: UInt64(buffer.st_ino),
            linkCount: UInt64(buffer.st_nlink), allocated: Int64(buffer.st_blocks) * 512,
            modified: Int64(buffer.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(buffer.st_mtim.tv_nsec),
            changed: Int64(buffer.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(buffer.st_ctim.tv_nsec),
            ownership: Ownership(owner: buffer.st_uid, permissions: UInt32(buffer.st_mode & 0o7777))
        )
        self.blockLength = Int64(buffer.st_blksize)
    }
}
