import SegmentedDownload
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The directory of a file that only its owner may read and write.
enum GuardedDirectory {
    /// Creates the file, and its directory with mode 0700, if they are missing, and checks that they belong to this user
    /// and that no other user can write to them. The file gets mode 0600.
    ///
    /// - Throws: ``DownloadError`` with code `file`.
    static func prepare(for path: FilePath) throws(DownloadError) {
        let directory = path.removingLastComponent()
        if !directory.isEmpty { try Self.makeDirectory(directory) }
        // Before SQLite opens it: its own files take the mode of this one.
        let descriptor = open(path.string, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.error("open", path) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.error("fstat", path) }
        guard status.st_uid == geteuid(), status.st_mode & S_IFMT == S_IFREG else {
            throw DownloadError(.file, "the queue \(path.string) is not a file of this user")
        }
        guard fchmod(descriptor, 0o600) == 0 else { throw Self.error("fchmod", path) }
    }

    private static func makeDirectory(_ path: FilePath) throws(DownloadError) {
        if mkdir(path.string, 0o700) != 0 {
            switch errno {
            case EEXIST: break
            case ENOENT where path.components.count > 1:
                try Self.makeDirectory(path.removingLastComponent())
                guard mkdir(path.string, 0o700) == 0 || errno == EEXIST else { throw Self.error("mkdir", path) }
            default: throw Self.error("mkdir", path)
            }
        }
        var status = stat()
        guard stat(path.string, &status) == 0 else { throw Self.error("stat", path) }
        // A sticky directory such as /tmp lets other users create files, but not replace ours.
        let isShared = status.st_mode & (S_IWGRP | S_IWOTH) != 0 && status.st_mode & S_ISVTX == 0
        guard status.st_mode & S_IFMT == S_IFDIR, !isShared else {
            throw DownloadError(
                .file, "other users can write to the directory \(path.string), in which the queue is",
                hint: "Run: chmod go-w \(path.string)")
        }
    }

    private static func error(_ call: String, _ path: FilePath) -> DownloadError {
        let number = errno
        return DownloadError(
            .file, "\(call) failed on the queue's \(path.string): \(String(cString: strerror(number)))", errno: number)
    }
}
