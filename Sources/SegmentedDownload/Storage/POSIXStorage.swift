import CLinux
import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The storage implementation that makes Linux system calls.
package struct POSIXStorage: Storage {
    package let bootID: String
    private let directorySyncs = SharedSync()

    package init() {
        self.bootID =
            Self.readSmallFile("/proc/sys/kernel/random/boot_id")
            .map { String(decoding: $0.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self) } ?? ""
    }

    package func open(_ path: String, _ mode: StorageOpenMode) throws(StorageError) -> any StorageFile {
        let (flags, permissions): (Int32, mode_t) =
            switch mode {
            case .read: (O_RDONLY, 0)
            case .update: (O_RDWR, 0)
            case .create: (O_RDWR | O_CREAT | O_EXCL, 0o666)
            case .createPrivate: (O_RDWR | O_CREAT | O_EXCL, 0o600)
            // Linux appends to such a file and ignores the offset of `pwrite` (pwrite(2), section BUGS).
            case .append: (O_RDWR | O_CREAT | O_APPEND, 0o600)
            }
        let descriptor = try Self.check("open", path) {
            Glibc.open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, permissions)
        }
        return POSIXFile(descriptor: descriptor, path: path)
    }

    package func status(of path: String) throws(StorageError) -> StorageStatus? {
        try Self.status("lstat", path) { lstat(path, $0) }
    }

    package func target(of path: String) throws(StorageError) -> StorageStatus? {
        try Self.status("stat", path) { stat(path, $0) }
    }

    private static func status(
        _ call: String, _ path: String, _ body: (UnsafeMutablePointer<stat>) -> Int32
    ) throws(StorageError) -> StorageStatus? {
        var buffer = stat()
        do throws(StorageError) {
            _ = try Self.check(call, path) { body(&buffer) }
        } catch  where error.errno == ENOENT {
            return nil
        }
        return StorageStatus(buffer)
    }

    package func makeDirectory(_ path: String, isPrivate: Bool) throws(StorageError) {
        if try self.target(of: path)?.kind == .directory { return }
        if let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")), slash > path.startIndex {
            try self.makeDirectory(String(path[..<slash]), isPrivate: isPrivate)
        }
        do throws(StorageError) {
            _ = try Self.check("mkdir", path) { mkdir(path, isPrivate ? 0o700 : 0o777) }
        } catch  where error.errno == EEXIST && (try? self.target(of: path))??.kind == .directory {
            // Another process created it first.
        }
    }

    package func names(in directory: String) throws(StorageError) -> [String] {
        guard let stream = opendir(directory) else {
            throw StorageError(call: "opendir", path: directory, errno: Glibc.errno)
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        return names
    }

    package func checkWritable(directory: String) throws(StorageError) {
        _ = try Self.check("access", directory) { access(directory, W_OK | X_OK) }
    }

    package func freeSpace(in directory: String) throws(StorageError) -> Int64 {
        var buffer = statvfs()
        _ = try Self.check("statvfs", directory) { statvfs(directory, &buffer) }
        let (bytes, overflow) = UInt64(buffer.f_bavail).multipliedReportingOverflow(by: UInt64(buffer.f_frsize))
        return overflow ? .max : Int64(clamping: bytes)
    }

    package func rename(_ path: String, to target: String, replacing: Bool) throws(StorageError) {
        guard !replacing else {
            _ = try Self.check("rename", target) { Glibc.rename(path, target) }
            return
        }
        do throws(StorageError) {
            _ = try Self.check("rename", target) {
                // 1 is `RENAME_NOREPLACE`.
                renameat2(AT_FDCWD, path, AT_FDCWD, target, 1)
            }
        } catch  where error.errno == EINVAL || error.errno == ENOSYS {
            // The file system does not support `RENAME_NOREPLACE`. `link` does not replace a file either.
            try self.link(path, to: target)
            try self.remove(path)
        }
    }

    /// Makes a hard link. FAT, exFAT and many FUSE file systems have none and report `EPERM`, among others; so does a
    /// system that requires a privilege for links.
    private func link(_ path: String, to target: String) throws(StorageError) {
        do throws(StorageError) {
            _ = try Self.check("link", target) { Glibc.link(path, target) }
        } catch  where [EPERM, EOPNOTSUPP, ENOSYS, EINVAL, EMLINK].contains(error.errno) {
            throw StorageError(
                call: error.call, path: error.path, errno: error.errno, condition: .unsupported, text: error.text)
        }
    }

    package func remove(_ path: String) throws(StorageError) {
        do throws(StorageError) {
            _ = try Self.check("unlink", path) { unlink(path) }
        } catch  where error.errno == ENOENT {
            // Already removed.
        }
    }

    package func synchronize(directory: String) async throws(StorageError) {
        try await self.directorySyncs.run(directory) { () async throws(StorageError) in
            try await Self.synchronizeNow(directory)
        }
    }

    private static func synchronizeNow(_ directory: String) async throws(StorageError) {
        let descriptor: CInt
        do throws(StorageError) {
            descriptor = try Self.check("open", directory) {
                Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            }
        } catch  where error.errno == EACCES {
            // A directory may be writable but not readable; it cannot be opened and so cannot be synced.
            return
        }
        let file = POSIXFile(descriptor: descriptor, path: directory)
        defer { file.close() }
        do throws(StorageError) {
            try await file.synchronize(metadata: true)
        } catch  where [EINVAL, EOPNOTSUPP, ENOSYS, ENOTTY].contains(error.errno) {
            // The file system cannot sync directories.
        }
    }

    package var user: UInt32 { geteuid() }

    package func lockHolder(of status: StorageStatus) -> Int32? {
        // Retried, because the kernel returns the list in pages and lines may be missed when other locks come and go.
        for _ in 0..<Self.lockListReadsMax {
            if let holder = Self.lockHolder(inode: status.inode) { return holder }
        }
        return nil
    }

    private static let lockListReadsMax = 3

    private static func lockHolder(inode: UInt64) -> Int32? {
        guard let bytes = Self.readSmallFile("/proc/locks") else { return nil }
        let suffix = ":\(inode)"
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            let fields = line.split(separator: " ", omittingEmptySubsequences: true)
            // 1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF
            if fields.count >= 6, fields[1] == "FLOCK", fields[5].hasSuffix(suffix) {
                return Int32(fields[4])
            }
        }
        return nil
    }

    /// Reads a `/proc` file, whose reported length is zero.
    private static func readSmallFile(_ path: String) -> [UInt8]? {
        guard let descriptor = try? Self.check("open", path, { Glibc.open(path, O_RDONLY | O_CLOEXEC) }) else {
            return nil
        }
        defer { Glibc.close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while let count = try? Self.check("read", path, { Int32(read(descriptor, &buffer, buffer.count)) }), count > 0 {
            bytes += buffer.prefix(Int(count))
        }
        return bytes
    }

    /// Makes a system call that returns −1 on error, and repeats it if a signal interrupts it.
    @discardableResult
    static func check<Answer: SignedInteger>(
        _ call: String, _ path: String, _ body: () -> Answer
    ) throws(StorageError) -> Answer {
        while true {
            let answer = body()
            if answer >= 0 { return answer }
            let number = Glibc.errno
            if number == EINTR { continue }
            throw StorageError(call: call, path: path, errno: number)
        }
    }
}

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

    func allocate(_ length: Int64) throws(StorageError) -> Bool {
        // A tmpfs reserves space by clearing memory: 0.25 s for 1 GiB, a third of the time that its download takes.
        guard segdl_is_in_memory(self.descriptor) == 0 else { return false }
        do throws(StorageError) {
            try POSIXStorage.check("fallocate", self.path) { fallocate(self.descriptor, 0, 0, off_t(length)) }
            return true
        } catch  where error.errno == EOPNOTSUPP || error.errno == ENOSYS || error.errno == EINVAL {
            return false
        }
    }

    func firstHole() throws(StorageError) -> Int64 {
        // 4 is `SEEK_HOLE`. The file offset that `lseek` moves is not used otherwise.
        let offset = lseek(self.descriptor, 0, 4)
        return offset < 0 ? try self.status().length : Int64(offset)
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
        } catch  where [ENOSYS, ENOLCK, EOPNOTSUPP].contains(error.errno) {
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
        _ = Glibc.close(self.descriptor)
    }
}

extension StorageStatus {
    fileprivate init(_ buffer: stat) {
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
            ownership: Ownership(owner: buffer.st_uid, permissions: UInt32(buffer.st_mode & 0o7777))
        )
    }
}

extension StorageError {
    fileprivate init(call: String, path: String, errno number: Int32) {
        let condition: Condition =
            switch number {
            case ENOENT: .notFound
            case EEXIST: .exists
            case EACCES, EPERM: .permission
            case EROFS: .readOnly
            case ENOSPC, EDQUOT, EFBIG: .noSpace
            case ELOOP: .isLink
            case EISDIR, ENOTDIR: .isDirectory
            case ENAMETOOLONG: .nameTooLong
            case EMFILE, ENFILE: .tooManyFiles
            default: .other
            }
        self.init(
            call: call, path: path, errno: number, condition: condition, text: String(cString: strerror(number)))
    }
}
