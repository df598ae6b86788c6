import SegmentedDownload
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A database file that only its owner may read and write, in a directory in which nobody else can replace it.
enum QueueFile {
    /// SQLite's files beside the database. It reads one that another user has put there.
    private static let companions = ["-wal", "-shm", "-journal"]

    /// Creates the file with mode 0600, and its directories with mode 0700, if they are missing. Checks that all belong
    /// to this user and that no other user can write to them.
    ///
    /// An existing file is not opened: closing it would end the locks that SQLite holds on it in this process
    /// (https://sqlite.org/howtocorrupt.html, section 2.2).
    ///
    /// - Throws: ``DownloadError`` with code `file`.
    static func prepare(_ path: FilePath) throws(DownloadError) {
        let directory = path.removingLastComponent()
        try self.makeDirectory(directory)
        try self.checkDirectory(directory)
        for companion in self.companions { _ = try self.exists(FilePath(path.string + companion)) }
        guard try !self.exists(path) else { return }
        let descriptor = open(path.string, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw self.error("open", path) }
        close(descriptor)
        try self.sync(directory)
    }

    /// Keeps other users from reading a database that an earlier program left readable.
    ///
    /// - Throws: ``DownloadError`` with code `file`.
    static func guardMode(_ path: FilePath) throws(DownloadError) {
        for name in [path.string] + self.companions.map({ path.string + $0 }) {
            guard chmod(name, 0o600) == 0 || errno == ENOENT else { throw self.error("chmod", FilePath(name)) }
        }
    }

    /// Whether the file exists. Throws if it is not a file of this user.
    private static func exists(_ path: FilePath) throws(DownloadError) -> Bool {
        var status = stat()
        guard lstat(path.string, &status) == 0 else {
            if errno == ENOENT { return false }
            throw self.error("lstat", path)
        }
        guard status.st_uid == geteuid(), status.st_mode & S_IFMT == S_IFREG, status.st_mode & 0o022 == 0 else {
            throw DownloadError(
                .file, "\(path.string) is not a file that only this user can write to",
                hint: "Remove it if it is not yours")
        }
        return true
    }

    private static func makeDirectory(_ path: FilePath) throws(DownloadError) {
        guard mkdir(path.string, 0o700) != 0 else { return try self.sync(path.removingLastComponent()) }
        switch errno {
        case EEXIST: return
        case ENOENT where path.components.count > 1:
            try self.makeDirectory(path.removingLastComponent())
            guard mkdir(path.string, 0o700) == 0 || errno == EEXIST else { throw self.error("mkdir", path) }
            try self.sync(path.removingLastComponent())
        default: throw self.error("mkdir", path)
        }
    }

    /// A sticky directory such as /tmp is refused too: another user could create SQLite's other files in it first.
    private static func checkDirectory(_ path: FilePath) throws(DownloadError) {
        var status = stat()
        guard stat(path.string, &status) == 0 else { throw self.error("stat", path) }
        guard status.st_mode & S_IFMT == S_IFDIR, [0, geteuid()].contains(status.st_uid) else {
            throw DownloadError(.file, "\(path.string) is not a directory of this user")
        }
        guard status.st_mode & 0o022 == 0 else {
            throw DownloadError(
                .file, "other users can write to the directory \(path.string), in which the queue is",
                hint: "Run: chmod go-w \(path.string)")
        }
    }

    // MARK: Damage

    /// The name of a file that says that the database is damaged.
    private static func marker(_ path: FilePath) -> String { path.string + "-damaged" }

    static func isMarked(_ path: FilePath) -> Bool { access(self.marker(path), F_OK) == 0 }

    /// Records that the database is damaged. If that fails, the next start may find out by itself.
    static func mark(_ path: FilePath) {
        let descriptor = open(self.marker(path), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        if descriptor >= 0 { close(descriptor) }
    }

    static func unmark(_ path: FilePath) { unlink(self.marker(path)) }

    /// The path at which the replacement of a database is made. What an interrupted attempt left there is deleted.
    ///
    /// - Throws: ``DownloadError`` with code `file`.
    static func newDraft(of path: FilePath) throws(DownloadError) -> FilePath {
        let draft = path.string + "-draft"
        for suffix in [""] + self.companions {
            guard unlink(draft + suffix) == 0 || errno == ENOENT else {
                throw self.error("unlink", FilePath(draft + suffix))
            }
        }
        return FilePath(draft)
    }

    /// The name of a replacement that is complete.
    private static func replacement(_ path: FilePath) -> String { path.string + "-replacement" }

    /// Puts a closed database in the place of another one, which gets a name with the date.
    ///
    /// - Returns: The new path of the other one.
    /// - Throws: ``DownloadError`` with code `file`. Then the next call of ``finishExchange(_:)`` completes it, or the other
    ///   one is where it was.
    static func exchange(_ path: FilePath, for draft: FilePath) throws(DownloadError) -> FilePath {
        let target = try self.freeName(path)
        // Links, so that no moment is without it. With its log, which may have the latest changes.
        for suffix in self.companions + [""] {
            guard link(path.string + suffix, target + suffix) == 0 || errno == ENOENT else {
                throw self.error("link", FilePath(target + suffix))
            }
        }
        try self.sync(path.removingLastComponent())
        guard rename(draft.string, self.replacement(path)) == 0 else { throw self.error("rename", draft) }
        try self.finishExchange(path)
        return FilePath(target)
    }

    /// Completes an exchange that a kill interrupted: the other database has its second name already.
    ///
    /// - Throws: ``DownloadError`` with code `file`.
    static func finishExchange(_ path: FilePath) throws(DownloadError) {
        guard access(self.replacement(path), F_OK) == 0 else { return }
        try self.sync(path.removingLastComponent())
        // First the log of the other one, which SQLite would apply to the replacement.
        for suffix in self.companions {
            guard unlink(path.string + suffix) == 0 || errno == ENOENT else {
                throw self.error("unlink", FilePath(path.string + suffix))
            }
        }
        try self.sync(path.removingLastComponent())
        guard rename(self.replacement(path), path.string) == 0 else { throw self.error("rename", path) }
        self.unmark(path)
        try self.sync(path.removingLastComponent())
    }

    /// A name with the date that no file has.
    private static func freeName(_ path: FilePath) throws(DownloadError) -> String {
        var now = time(nil)
        var date = tm()
        gmtime_r(&now, &date)
        var text = [CChar](repeating: 0, count: 32)
        strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &date)
        let digits = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let stem = "\(path.string).damaged-\(digits)"
        var (target, number) = (stem, 1)
        while try self.exists(FilePath(target)) {
            number += 1
            target = "\(stem)-\(number)"
        }
        return target
    }

    /// Appends to a private file beside a database. Errors are ignored.
    static func append(_ bytes: [UInt8], to path: String) {
        guard !bytes.isEmpty else { return }
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        fdatasync(descriptor)
    }

    private static func sync(_ directory: FilePath) throws(DownloadError) {
        let descriptor = open(directory.string, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw self.error("open", directory) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw self.error("fsync", directory) }
    }

    private static func error(_ call: String, _ path: FilePath) -> DownloadError {
        let number = errno
        return DownloadError(
            .file, "\(call) failed on the queue's \(path.string): \(String(cString: strerror(number)))", errno: number)
    }
}
