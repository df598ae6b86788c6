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
    package let linkFacts = LinkFacts()
    private let directorySyncs = SharedSync()
    /// The directory that all paths must be in; nil for any path.
    private var root: StorageRoot?

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
            case .through: (O_RDWR | O_DSYNC, 0)
            case .create: (O_RDWR | O_CREAT | O_EXCL, 0o666)
            case .createPrivate: (O_RDWR | O_CREAT | O_EXCL, 0o600)
            // Linux appends to such a file and ignores the offset of `pwrite` (pwrite(2), section BUGS).
            case .append: (O_RDWR | O_CREAT | O_APPEND, 0o600)
            }
        let descriptor = try self.at(path) { (directory, name) throws(StorageError) in
            try Self.check("open", path) {
                openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, permissions)
            }
        }
        return POSIXFile(descriptor: descriptor, path: path)
    }

    package func confined(to directory: String) -> any Storage {
        var storage = self
        storage.root = StorageRoot(path: directory)
        return storage
    }

    /// Calls `body` with the directory and the name by which a path is reached: with the path itself if it may be
    /// anywhere.
    private func at<Answer>(
        _ path: String, _ body: (CInt, String) throws(StorageError) -> Answer
    ) throws(StorageError) -> Answer {
        guard let root, !root.isBelow(path) else { return try body(AT_FDCWD, path) }
        let paths = DestinationPaths(path: path)
        let directory = try root.open(paths.directory, O_PATH)
        defer { SystemCalls.closeFile(directory) }
        return try body(directory, paths.name)
    }

    /// The same for two paths.
    private func at(
        _ path: String, and other: String, _ body: (CInt, String, CInt, String) throws(StorageError) -> Void
    ) throws(StorageError) {
        try self.at(path) { (directory, name) throws(StorageError) in
            try self.at(other) { (otherDirectory, otherName) throws(StorageError) in
                try body(directory, name, otherDirectory, otherName)
            }
        }
    }

    /// Opens a directory itself.
    private func openDirectory(
        _ path: String, for call: String = "open", _ access: CInt = O_RDONLY
    ) throws(StorageError) -> CInt {
        guard let root, !root.isBelow(path) else {
            return try Self.check(call, path) { SystemCalls.openFile(path, access | O_DIRECTORY | O_CLOEXEC) }
        }
        return try root.open(path, access)
    }

    package func status(of path: String) throws(StorageError) -> StorageStatus? {
        try self.status("lstat", path, AT_SYMLINK_NOFOLLOW)
    }

    package func target(of path: String) throws(StorageError) -> StorageStatus? {
        try self.status("stat", path, 0)
    }

    private func status(
        _ call: String, _ path: String, _ flags: CInt
    ) throws(StorageError) -> StorageStatus? {
        var buffer = stat()
        do throws(StorageError) {
            try self.at(path) { (directory, name) throws(StorageError) in
                _ = try Self.check(call, path) { fstatat(directory, name, &buffer, flags) }
            }
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
            try self.at(path) { (directory, name) throws(StorageError) in
                _ = try Self.check("mkdir", path) { Self.mkdir(directory, name, isPrivate ? 0o700 : 0o777) }
            }
        } catch  where error.errno == EEXIST && (try? self.target(of: path))??.kind == .directory {
            // Another process created it first.
        }
    }

    package func names(in directory: String) throws(StorageError) -> [String] {
        try self.names(in: directory, max: .max) ?? []
    }

    package func names(in directory: String, max: Int) throws(StorageError) -> [String]? {
        let descriptor = try self.openDirectory(directory, for: "opendir")
        guard let stream = fdopendir(descriptor) else {
            let number = SystemCalls.errorNumber
            SystemCalls.closeFile(descriptor)
            throw StorageError(call: "opendir", path: directory, errno: number)
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            guard names.count < max else { return nil }
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        return names
    }

    package func checkWritable(directory: String) throws(StorageError) {
        try self.at(directory) { (parent, name) throws(StorageError) in
            _ = try Self.check("access", directory) { Self.access(parent, name, W_OK | X_OK) }
        }
    }

    package func freeSpace(in directory: String) throws(StorageError) -> Int64 {
        var buffer = statvfs()
        if self.root == nil {
            _ = try Self.check("statvfs", directory) { statvfs(directory, &buffer) }
        } else {
            let descriptor = try self.openDirectory(directory, O_PATH)
            defer { SystemCalls.closeFile(descriptor) }
            _ = try Self.check("statvfs", directory) { fstatvfs(descriptor, &buffer) }
        }
        let (bytes, overflow) = UInt64(buffer.f_bavail).multipliedReportingOverflow(by: UInt64(buffer.f_frsize))
        return overflow ? .max : Int64(clamping: bytes)
    }

    package func rename(_ path: String, to target: String, replacing: Bool) throws(StorageError) {
        do throws(StorageError) {
            try self.at(path, and: target) { (from, name, to, newName) throws(StorageError) in
                _ = try Self.check("rename", target) {
                    // 1 is `RENAME_NOREPLACE`.
                    replacing
                        ? Self.rename(from, name, to, newName) : renameat2(from, name, to, newName, 1)
                }
            }
        } catch  where !replacing && error.saysUnsupported {
            throw error.with(.unsupported)
        }
    }

    package func link(_ path: String, to target: String) throws(StorageError) {
        try self.at(path, and: target) { (from, name, to, newName) throws(StorageError) in
            _ = try Self.check("link", target) { Self.link(from, name, to, newName) }
        }
    }

    package func openUnnamed(for path: String) -> (any StorageFile)? {
        let directory = DestinationPaths(path: path).directory
        do throws(StorageError) {
            // `O_TMPFILE`, a macro that is not imported.
            let flags = 0o20_000_000 | O_DIRECTORY | O_RDWR | O_CLOEXEC
            guard self.root != nil else {
                let descriptor = try Self.check("open", directory) { SystemCalls.openFile(directory, flags, 0o666) }
                return POSIXFile(descriptor: descriptor, path: path)
            }
            let parent = try self.openDirectory(directory, O_PATH)
            defer { SystemCalls.closeFile(parent) }
            let descriptor = try Self.check("open", directory) { openat(parent, ".", flags, 0o666) }
            return POSIXFile(descriptor: descriptor, path: path)
        } catch {
            // What is refused for another reason than that there is no `O_TMPFILE` is refused again when the part is created.
            return nil
        }
    }

    package func permissionsOfNewFile(at path: String) -> UInt32? {
        if let file = self.openUnnamed(for: path) {
            defer { file.close() }
            return try? file.status().ownership.permissions
        }
        return Self.umask.map { 0o666 & ~$0 }
    }

    /// The process's umask. `umask(2)` cannot read it without changing it for all threads.
    private static var umask: UInt32? {
        let lines = Self.readSmallFile("/proc/self/status")?.split(separator: UInt8(ascii: "\n")) ?? []
        let line = lines.lazy.map { String(decoding: $0, as: UTF8.self) }.first { $0.hasPrefix("Umask:") }
        return line.flatMap { UInt32($0.dropFirst("Umask:".count).drop(while: \.isWhitespace), radix: 8) }
    }

    package func name(_ file: any StorageFile, _ path: String) throws(StorageError) {
        guard let file = file as? POSIXFile else { preconditionFailure("the file is another storage's") }
        do throws(StorageError) {
            try self.at(path) { (directory, name) throws(StorageError) in
                _ = try Self.check("linkat", path) {
                    linkat(AT_FDCWD, file.descriptorPath, directory, name, AT_SYMLINK_FOLLOW)
                }
            }
        } catch  where error.condition != .exists {
            // Without `/proc`, or by order of the system, no link can be made. What is refused for another reason is refused
            // again when the part is created.
            throw error.with(.unsupported)
        }
    }

    package func remove(_ path: String) throws(StorageError) {
        do throws(StorageError) {
            try self.at(path) { (directory, name) throws(StorageError) in
                _ = try Self.check("unlink", path) { Self.unlink(directory, name) }
            }
        } catch  where error.errno == ENOENT {
            // Already removed.
        }
    }

    package func removeDirectory(_ path: String) throws(StorageError) {
        do throws(StorageError) {
            try self.at(path) { (directory, name) throws(StorageError) in
                // 0x200 is `AT_REMOVEDIR`.
                _ = try Self.check("rmdir", path) { unlinkat(directory, name, 0x200) }
            }
        } catch  where [ENOENT, ENOTEMPTY, EEXIST].contains(error.errno) {
            // It is gone, or has other files.
        }
    }

    package func synchronize(directory: String) async throws(StorageError) {
        try await self.directorySyncs.run(directory) { () async throws(StorageError) in
            try await self.synchronizeNow(directory)
        }
    }

    private func synchronizeNow(_ directory: String) async throws(StorageError) {
        let descriptor: CInt
        do throws(StorageError) {
            descriptor = try self.openDirectory(directory)
        } catch  where error.errno == EACCES {
            // A directory may be writable but not readable; it cannot be opened and so cannot be synced.
            return
        }
        let file = POSIXFile(descriptor: descriptor, path: directory)
        defer { file.close() }
        do throws(StorageError) {
            try await file.synchronize(metadata: true)
        } catch  where error.saysUnsupported {
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
        guard let descriptor = try? Self.check("open", path, { SystemCalls.openFile(path, O_RDONLY | O_CLOEXEC) })
        else {
            return nil
        }
        defer { SystemCalls.closeFile(descriptor) }
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
            let number = SystemCalls.errorNumber
            if number == EINTR { continue }
            throw StorageError(call: call, path: path, errno: number)
        }
    }
}

/// Calls relative to an open directory, or for a path. A path is passed to the older system call, whose name fault
/// injection and the filters of sandboxes use.
extension POSIXStorage {
    private static func mkdir(_ directory: CInt, _ name: String, _ permissions: mode_t) -> CInt {
        directory == AT_FDCWD ? SystemCalls.makeDirectory(name, permissions) : mkdirat(directory, name, permissions)
    }

    private static func access(_ directory: CInt, _ name: String, _ mode: CInt) -> CInt {
        directory == AT_FDCWD ? SystemCalls.checkAccess(name, mode) : faccessat(directory, name, mode, 0)
    }

    private static func unlink(_ directory: CInt, _ name: String) -> CInt {
        directory == AT_FDCWD ? SystemCalls.removeName(name) : unlinkat(directory, name, 0)
    }

    private static func rename(_ from: CInt, _ name: String, _ to: CInt, _ newName: String) -> CInt {
        from == AT_FDCWD && to == AT_FDCWD ? SystemCalls.renameFile(name, newName) : renameat(from, name, to, newName)
    }

    private static func link(_ from: CInt, _ name: String, _ to: CInt, _ newName: String) -> CInt {
        from == AT_FDCWD && to == AT_FDCWD ? SystemCalls.linkFile(name, newName) : linkat(from, name, to, newName, 0)
    }
}

extension StorageError {
    /// Whether the file system or the kernel lacks the call, a flag of it, or what it does.
    ///
    /// Asked only about calls that this program makes with valid arguments, so that `EINVAL` says nothing else.
    var saysUnsupported: Bool { [ENOSYS, EOPNOTSUPP, EINVAL, ENOTTY, ENOLCK].contains(self.errno) }

    /// The same error with another condition.
    fileprivate func with(_ condition: Condition) -> StorageError {
        StorageError(call: self.call, path: self.path, errno: self.errno, condition: condition, text: self.text)
    }

    init(call: String, path: String, errno number: Int32) {
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
