package import SegmentedDownloadCore

/// The file system calls that the library makes, one method for each.
///
/// The order of calls that prevents data loss is decided in ``PartialFile``. Calls block the thread. Syncs are `async`
/// for the simulated disk, which advances a simulated clock.
package protocol Storage: Sendable {
    /// Opens a regular file. A symbolic link as the last component is an error (`O_NOFOLLOW`).
    func open(_ path: String, _ mode: StorageOpenMode) throws(StorageError) -> any StorageFile

    /// Returns this storage, confined to a directory.
    ///
    /// It accepts the directory, paths in it, and the directories that contain it. A path elsewhere throws an error with
    /// condition `outside`, as does a symbolic link between the directory and the path's last component.
    func confined(to directory: String) -> any Storage

    /// The status of a path, of the link itself if it is a symbolic link; `nil` if nothing exists (`lstat`).
    func status(of path: String) throws(StorageError) -> StorageStatus?

    /// The status of a path with symbolic links followed; `nil` if nothing exists (`stat`).
    func target(of path: String) throws(StorageError) -> StorageStatus?

    /// Creates a directory and its missing parents (`mkdir`).
    ///
    /// - Parameter isPrivate: Whether those that are created are accessible to the owner only. If not, the umask
    ///   decides.
    func makeDirectory(_ path: String, isPrivate: Bool) throws(StorageError)

    /// The names in a directory, unordered (`readdir`).
    func names(in directory: String) throws(StorageError) -> [String]

    /// The names in a directory, unordered; `nil` if there are more than `max` (`readdir`).
    func names(in directory: String, max: Int) throws(StorageError) -> [String]?

    /// Throws if files cannot be created in the directory (`access`).
    func checkWritable(directory: String) throws(StorageError)

    /// The number of bytes that this process may still write to a directory's file system (`statvfs`).
    func freeSpace(in directory: String) throws(StorageError) -> Int64

    /// The permission bits that `open` gives a new file with this path: those of the umask, or of the directory's default
    /// access control list. `nil` if they are unknown, or the storage has none of its own.
    func permissionsOfNewFile(at path: String) -> UInt32?

    /// Renames a file. Without `replacing` an existing target is an error (`renameat2` with `RENAME_NOREPLACE`); the condition
    /// is `unsupported` if the file system cannot do that. Every file system allows
    /// ``renameExclusively(_:to:keepsIdentity:trial:)``.
    func rename(_ path: String, to target: String, replacing: Bool) throws(StorageError)

    /// Gives a file a second name (`link`). An existing target is an error. On some file systems the file has another
    /// identity under its second name.
    func link(_ path: String, to target: String) throws(StorageError)

    /// What was found out about the hard links of file systems.
    var linkFacts: LinkFacts { get }

    /// Opens a new file without a name, for reading and writing (`O_TMPFILE`). It is gone once it is closed, unless it got
    /// a name meanwhile. The umask applies.
    ///
    /// - Parameter path: A path in the directory that the file is to be in.
    /// - Returns: `nil` if the file system has no such files.
    func openUnnamed(for path: String) throws(StorageError) -> (any StorageFile)?

    /// Gives an unnamed file of this storage a name in its directory (`linkat`). An existing name is an error; the
    /// condition is `unsupported` if the system does not allow it.
    func name(_ file: any StorageFile, _ path: String) throws(StorageError)

    /// Removes a file. A missing file is not an error (`unlink`).
    func remove(_ path: String) throws(StorageError)

    /// Removes a directory if it is empty, and has no effect if it is not (`rmdir`).
    func removeDirectory(_ path: String) throws(StorageError)

    /// Makes renames and removals in a directory durable (`fsync`).
    func synchronize(directory: String) async throws(StorageError)

    /// Whether the storage keeps files. If not, there is no manifest.
    var keepsFiles: Bool { get }

    /// An identifier of the current boot; empty if the system provides none.
    var bootID: String { get }

    /// The effective user (`geteuid`).
    var user: UInt32 { get }

    /// The process that holds a file's lock, if the system reports it (`/proc/locks`).
    func lockHolder(of status: StorageStatus) -> Int32?
}

/// An open file. Offsets and counts are bytes.
package protocol StorageFile: Sendable {
    /// Writes at an offset and returns the number of bytes written, at least one (`pwrite`).
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) -> Int

    /// Reads at an offset and returns the number of bytes read, zero at the end (`pread`).
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int

    /// Writes what earlier calls of ``write(_:at:)`` have kept in memory of a range, and may write more than that.
    func writeHeldBack(in range: Range<Int64>) throws(StorageError)

    /// Sets the file's length (`ftruncate`).
    func truncate(to length: Int64) throws(StorageError)

    /// Reserves space for a range, and lengthens the file to its end if necessary (`fallocate`, never its emulation, which
    /// writes zeros).
    ///
    /// - Returns: Whether the file system supports it at little cost.
    func allocate(_ range: Range<Int64>) throws(StorageError) -> Bool

    /// The offset of the first hole at or after an offset; the file's length if there is none or the file system does not
    /// report holes (`lseek`).
    func firstHole(from offset: Int64) throws(StorageError) -> Int64

    /// The parts of the file that are not holes, ordered and disjoint; all of it if the file system does not report holes
    /// (`lseek`).
    func data() throws(StorageError) -> [Range<Int64>]

    /// Whether the file is also open elsewhere, as far as the system tells (`fcntl` with `F_SETLEASE`).
    func isOpenElsewhere() -> Bool

    /// Makes written data durable (`fdatasync`); with `metadata`, also times and attributes (`fsync`).
    func synchronize(metadata: Bool) async throws(StorageError)

    func status() throws(StorageError) -> StorageStatus

    /// Takes the file's exclusive lock if it is free (`flock`).
    func tryLock() throws(StorageError) -> StorageLock

    /// The value of an extended attribute; `nil` if it does not exist or is not supported (`fgetxattr`).
    func attribute(_ name: String) -> [UInt8]?

    /// Sets an extended attribute (`fsetxattr`).
    ///
    /// - Returns: Whether it was set. Attributes are optional, so a failure is not an error.
    func setAttribute(_ name: String, _ value: [UInt8]) throws(StorageError) -> Bool

    /// Removes an extended attribute if possible (`fremovexattr`).
    func removeAttribute(_ name: String) throws(StorageError)

    /// Sets the permission bits (`fchmod`).
    func setPermissions(_ permissions: UInt32) throws(StorageError)

    /// Sets the modification time in seconds since 1970 (`futimens`).
    func setModified(_ seconds: Int64) throws(StorageError)

    /// Closes the file. Closing it twice is allowed.
    func close()
}

/// The result of trying to lock a file.
package enum StorageLock: Hashable, Sendable {
    /// This process holds the lock.
    case taken
    /// Another process holds it.
    case busy
    /// The file system has no locks.
    case unsupported
}

package enum StorageOpenMode: Hashable, Sendable {
    /// For reading only.
    case read
    /// For reading and writing an existing file.
    case update
    /// Like `update`. What is written is durable when a write returns, and nothing beside it is written (`O_DSYNC`).
    case through
    /// For reading and writing a new file; fails if it exists. The umask applies.
    case create
    /// Like `create`, accessible to the owner only.
    case createPrivate
    /// For reading, and for writing at the file's end, which it has at that moment; the offset of a write is ignored
    /// (`O_APPEND`). The file is created, accessible to the owner only, if it does not exist.
    case append
}

package struct StorageStatus: Hashable, Sendable {
    package enum Kind: Hashable, Sendable { case file, directory, link, other }

    package var kind: Kind
    package var length: Int64
    package var device: UInt64
    package var inode: UInt64
    package var linkCount: UInt64
    /// The space reserved on disk, in bytes.
    package var allocated: Int64
    /// The modification time in nanoseconds since 1970. Programs may set it.
    package var modified: Int64
    /// The time of the last change of content, attributes or name in nanoseconds since 1970 (`ctime`). Programs cannot set it.
    package var changed: Int64
    package var ownership: Ownership
    /// The length of writes that the file system prefers, in bytes (`st_blksize`).
    package var blockLength: Int64 = 4096

    package init(
        kind: Kind, length: Int64, device: UInt64, inode: UInt64, linkCount: UInt64, allocated: Int64, modified: Int64,
        changed: Int64, ownership: Ownership = Ownership(owner: 0, permissions: 0o600)
    ) {
        self.ownership = ownership
        self.kind = kind
        self.length = length
        self.device = device
        self.inode = inode
        self.linkCount = linkCount
        self.allocated = allocated
        self.modified = modified
        self.changed = changed
    }

    /// Whether both are one file with the same length and modification time. The allocation may differ.
    package func isSame(as other: StorageStatus) -> Bool {
        self.isSameFile(as: other) && self.length == other.length && self.modified == other.modified
    }

    /// Whether both are one file that was not changed in between, as far as the resolution of its times tells.
    package func isUnchanged(since other: StorageStatus) -> Bool {
        self.isSame(as: other) && self.changed == other.changed
    }

    /// Whether both have the same identity, under any name.
    package func isSameFile(as other: StorageStatus) -> Bool { self.identity == other.identity }

    package var identity: FileIdentity { FileIdentity(device: self.device, inode: self.inode) }
}

/// The device and inode number of a file (`stat(2)`). The number may be reused once the file is deleted.
package struct FileIdentity: Hashable, Sendable {
    package let device: UInt64
    package let inode: UInt64
}

extension Manifest.Header {
    /// The identity of the part that the manifest was written for.
    var partIdentity: FileIdentity { FileIdentity(device: self.device, inode: self.inode) }
}

/// A system call that failed.
package struct StorageError: Error, Hashable, Sendable {
    package enum Condition: Hashable, Sendable {
        case notFound, exists, permission, readOnly, noSpace, isLink, isDirectory, nameTooLong, tooManyFiles
        /// The path is not in the directory to which the storage is confined.
        case outside
        /// The file system does not support the call.
        case unsupported
        case other
    }

    package let call: String
    package let path: String
    package let errno: Int32
    package let condition: Condition
    /// The system's message for the error number.
    package let text: String

    package init(call: String, path: String, errno: Int32, condition: Condition, text: String) {
        self.call = call
        self.path = path
        self.errno = errno
        self.condition = condition
        self.text = text
    }

    /// The error in the form that the engine reports.
    package var failure: DownloadError {
        let code: DownloadError.Code =
            switch self.condition {
            case .noSpace: .space
            case .exists, .isLink, .isDirectory: .exists
            case .outside: .policy
            case .notFound, .permission, .readOnly, .nameTooLong, .tooManyFiles, .unsupported, .other: .file
            }
        var hint: String?
        var remedy: Remedy?
        switch self.condition {
        case .noSpace: hint = "Free some space; the same request resumes the download"
        case .permission, .readOnly: remedy = .chooseDirectory
        case .nameTooLong: remedy = .shortenName
        case .tooManyFiles: hint = "Raise RLIMIT_NOFILE (ulimit -n), or lower the number of connections"
        case .notFound, .exists, .isLink, .isDirectory, .outside, .unsupported, .other: break
        }
        return DownloadError(
            code, "\(self.call) \(self.path.printable): \(self.text)", hint: hint, remedy: remedy, errno: self.errno)
    }
}

extension Storage {
    package var keepsFiles: Bool { true }

    package func names(in directory: String, max: Int) throws(StorageError) -> [String]? {
        let names = try self.names(in: directory)
        return names.count > max ? nil : names
    }

    /// No effect: a storage may keep empty directories.
    package func removeDirectory(_ path: String) {}

    /// `nil`: a storage need not have an umask.
    package func permissionsOfNewFile(at path: String) -> UInt32? { nil }

    /// `nil`: a storage need not have files without a name.
    package func openUnnamed(for path: String) -> (any StorageFile)? { nil }

    package func name(_ file: any StorageFile, _ path: String) throws(StorageError) {
        throw StorageError(
            call: "linkat", path: path, errno: 0, condition: .unsupported, text: "there are no files without a name")
    }

    package func link(_ path: String, to target: String) throws(StorageError) {
        throw StorageError(
            call: "link", path: target, errno: 0, condition: .unsupported, text: "there are no hard links")
    }

    /// Nothing: a storage without hard links has no facts about them.
    package var linkFacts: LinkFacts { LinkFacts() }

    /// The storage itself: one without symbolic links has no way out of a directory.
    package func confined(to directory: String) -> any Storage { self }

    /// Creates a directory and its missing parents, with permissions that the umask decides.
    package func makeDirectory(_ path: String) throws(StorageError) {
        try self.makeDirectory(path, isPrivate: false)
    }
}

extension StorageFile {
    /// Reserves space for `0..<length`.
    package func allocate(_ length: Int64) throws(StorageError) -> Bool { try self.allocate(0..<length) }

    /// The offset of the first hole.
    package func firstHole() throws(StorageError) -> Int64 { try self.firstHole(from: 0) }

    /// All of the file: a storage need not have holes.
    package func data() throws(StorageError) -> [Range<Int64>] {
        let length = try self.status().length
        return length > 0 ? [0..<length] : []
    }

    /// No effect: a storage need not hold bytes back.
    package func writeHeldBack(in range: Range<Int64>) {}

    package func isOpenElsewhere() -> Bool { false }

    /// Writes all of the bytes, in several calls if necessary.
    package func writeFully(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) {
        var written = 0
        while written < bytes.count {
            written += try self.write(UnsafeRawBufferPointer(rebasing: bytes[written...]), at: offset + Int64(written))
        }
    }

    /// Reads until the buffer is full or the file ends, and returns the number of bytes read.
    package func readFully(
        into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
    ) throws(StorageError) -> Int {
        var count = 0
        while count < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let read = try self.read(into: rest, at: offset + Int64(count))
            if read == 0 { break }
            count += read
        }
        return count
    }

    func writeFully(_ bytes: [UInt8], at offset: Int64) throws(StorageError) {
        let result: Result<Void, StorageError> = bytes.withUnsafeBytes { buffer in
            do throws(StorageError) {
                return .success(try self.writeFully(buffer, at: offset))
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    /// The file's content, up to a number of bytes.
    package func contents(limit: Int) throws(StorageError) -> [UInt8] {
        let length = min(Int(clamping: try self.status().length), limit)
        var bytes = [UInt8](repeating: 0, count: length)
        let result: Result<Int, StorageError> = bytes.withUnsafeMutableBytes { buffer in
            do throws(StorageError) {
                return .success(try self.readFully(into: buffer, at: 0))
            } catch {
                return .failure(error)
            }
        }
        return Array(bytes.prefix(try result.get()))
    }
}
