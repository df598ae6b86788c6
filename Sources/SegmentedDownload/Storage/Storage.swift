package import SegmentedDownloadCore

/// The door to the disk: the file system calls the library makes, no more and no cleverer.
///
/// Everything that orders these calls so that nothing is lost stands above, in ``PartialFile``. Calls block; that syncs are
/// `async` is for disks that only pretend, and pass the time otherwise.
package protocol Storage: Sendable {
    /// Opens a regular file, never through a symbolic link at its last component (`O_NOFOLLOW`).
    func open(_ path: String, _ mode: StorageOpenMode) throws(StorageError) -> any StorageFile

    /// What a path names, itself if it is a symbolic link; absent if nothing (`lstat`).
    func status(of path: String) throws(StorageError) -> StorageStatus?

    /// What a path names, links followed; absent if nothing (`stat`).
    func target(of path: String) throws(StorageError) -> StorageStatus?

    /// Creates a directory and those above it that are missing.
    func makeDirectory(_ path: String) throws(StorageError)

    /// The names in a directory, in no order.
    func names(in directory: String) throws(StorageError) -> [String]

    /// Fails if files cannot be created in the directory (`access`).
    func checkWritable(directory: String) throws(StorageError)

    /// Bytes this process may still write to the file system of a directory (`statvfs`).
    func freeSpace(in directory: String) throws(StorageError) -> Int64

    /// Renames; without `replacing` an existing target is an error (`renameat2` with `RENAME_NOREPLACE`, or `link`). Fails as
    /// `unsupported` where the file system has no call that does not replace.
    func rename(_ path: String, to target: String, replacing: Bool) throws(StorageError)

    /// Removes a file; one that is not there is no error (`unlink`).
    func remove(_ path: String) throws(StorageError)

    /// Makes renames and removals in a directory durable (`fsync` on it).
    func synchronize(directory: String) async throws(StorageError)

    /// Whether anything is there afterwards: else no manifest is kept.
    var keepsFiles: Bool { get }

    /// Names the current boot, as far as the system does.
    var bootID: String { get }

    /// The user as whom this process makes files (`geteuid`).
    var user: UInt32 { get }

    /// The process that holds a file's lock, where the system tells (`/proc/locks`).
    func lockHolder(of status: StorageStatus) -> Int32?
}

/// An open file. Offsets and counts are bytes.
package protocol StorageFile: Sendable {
    /// Writes at an offset and returns how many bytes were taken, at least one (`pwrite`).
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) -> Int

    /// Reads at an offset and returns how many bytes there were, zero at the end (`pread`).
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int

    /// Sets the file's length (`ftruncate`).
    func truncate(to length: Int64) throws(StorageError)

    /// Reserves space for `0..<length`; false where the file system cannot (`fallocate`, never its emulation, which writes zeros).
    func allocate(_ length: Int64) throws(StorageError) -> Bool

    /// Where the first hole is, or the file's length; where the file system does not say, the length (`lseek`).
    func firstHole() throws(StorageError) -> Int64

    /// Makes written data durable; with `metadata` times and attributes too (`fdatasync`, `fsync`).
    func synchronize(metadata: Bool) async throws(StorageError)

    func status() throws(StorageError) -> StorageStatus

    /// Takes the file's exclusive lock if it is free (`flock`).
    func tryLock() throws(StorageError) -> StorageLock

    /// An extended attribute's value, absent if there is none or the file system has none.
    func attribute(_ name: String) -> [UInt8]?

    /// Sets an extended attribute; false where that fails, for whatever reason: no file depends on its attributes.
    func setAttribute(_ name: String, _ value: [UInt8]) throws(StorageError) -> Bool

    /// Takes an extended attribute away, as far as the file system does that.
    func removeAttribute(_ name: String) throws(StorageError)

    /// Sets who may read and write it (`fchmod`).
    func setPermissions(_ permissions: UInt32) throws(StorageError)

    /// Has the content last changed so many seconds after 1970 (`futimens`).
    func setModified(_ seconds: Int64) throws(StorageError)

    /// Closes the file. Closing twice is no error.
    func close()
}

/// What came of trying to lock a file.
package enum StorageLock: Hashable, Sendable {
    /// This process holds the lock.
    case taken
    /// Another process holds it.
    case busy
    /// The file system has no locks.
    case unsupported
}

package enum StorageOpenMode: Hashable, Sendable {
    /// Reading only.
    case read
    /// Reading and writing an existing file.
    case update
    /// A file that must not exist yet, readable as the user's mask says.
    case create
    /// As `create`, readable by its owner only.
    case createPrivate
}

package struct StorageStatus: Hashable, Sendable {
    package enum Kind: Hashable, Sendable { case file, directory, link, other }

    package var kind: Kind
    package var length: Int64
    package var device: UInt64
    package var inode: UInt64
    package var linkCount: UInt64
    /// Bytes of the disk that are reserved for it already.
    package var allocated: Int64
    /// When the content was last changed, in nanoseconds since 1970.
    package var modified: Int64
    package var ownership: Ownership

    package init(
        kind: Kind, length: Int64, device: UInt64, inode: UInt64, linkCount: UInt64, allocated: Int64, modified: Int64,
        ownership: Ownership = Ownership(owner: 0, permissions: 0o600)
    ) {
        self.ownership = ownership
        self.kind = kind
        self.length = length
        self.device = device
        self.inode = inode
        self.linkCount = linkCount
        self.allocated = allocated
        self.modified = modified
    }

    /// Whether it is the same file with the same content. Where its blocks are may be decided later.
    package func isSame(as other: StorageStatus) -> Bool {
        self.isSameFile(as: other) && self.length == other.length && self.modified == other.modified
    }

    /// Whether both were found out about one file, by any of its names.
    package func isSameFile(as other: StorageStatus) -> Bool { self.identity == other.identity }

    package var identity: FileIdentity { FileIdentity(device: self.device, inode: self.inode) }
}

/// Which file it is among all that exist at one moment (`stat(2)`): a number that is free again once the file is deleted.
package struct FileIdentity: Hashable, Sendable {
    package let device: UInt64
    package let inode: UInt64
}

extension Manifest.Header {
    /// The part file that the manifest was written for.
    var partIdentity: FileIdentity { FileIdentity(device: self.device, inode: self.inode) }
}

/// A system call that failed.
package struct StorageError: Error, Hashable, Sendable {
    package enum Condition: Hashable, Sendable {
        case notFound, exists, permission, readOnly, noSpace, isLink, isDirectory, nameTooLong, tooManyFiles
        /// The file system has no such call.
        case unsupported
        case other
    }

    package let call: String
    package let path: String
    package let errno: Int32
    package let condition: Condition
    /// The system's words for the number.
    package let text: String

    package init(call: String, path: String, errno: Int32, condition: Condition, text: String) {
        self.call = call
        self.path = path
        self.errno = errno
        self.condition = condition
        self.text = text
    }

    /// The same as a failure to report.
    package var failure: Failure {
        let code: Failure.Code =
            switch self.condition {
            case .noSpace: .space
            case .exists, .isLink, .isDirectory: .exists
            case .notFound, .permission, .readOnly, .nameTooLong, .tooManyFiles, .unsupported, .other: .file
            }
        let hint: String? =
            switch self.condition {
            case .noSpace: "Free some space and run the same command again"
            case .permission, .readOnly: "Choose another directory with -d"
            case .nameTooLong: "Choose a shorter name with -o"
            case .tooManyFiles: "Raise the limit with ulimit -n, or use fewer segments"
            case .notFound, .exists, .isLink, .isDirectory, .unsupported, .other: nil
            }
        return Failure(
            code, "\(self.call) \(self.path.printable): \(self.text)", hint: hint, errno: self.errno)
    }
}

extension Storage {
    package var keepsFiles: Bool { true }

    /// Fails unless the file is the user's own and nobody else may write to it.
    func checkTrust(_ status: StorageStatus, _ path: String) throws(Failure) {
        if let failure = status.ownership.failure(user: self.user, path: path) { throw failure }
    }
}

extension StorageFile {
    /// Writes all of it, however often the system takes less.
    package func writeFully(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) {
        var written = 0
        while written < bytes.count {
            written += try self.write(UnsafeRawBufferPointer(rebasing: bytes[written...]), at: offset + Int64(written))
        }
    }

    /// Reads until the buffer is full or the file ends; returns the count.
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

    /// The whole file, up to a limit.
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
