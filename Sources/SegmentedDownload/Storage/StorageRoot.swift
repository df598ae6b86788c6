import CLinux
import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A directory that paths must be in, without a symbolic link on the way.
///
/// Every call opens the path's directory anew, so a link that another process puts there in the meantime leads nowhere.
struct StorageRoot: Hashable, Sendable {
    /// Absolute, without `.` and `..`. Symbolic links in this path are followed.
    let path: String

    /// Whether this directory is a path or lies below it. Such paths were chosen together with the directory.
    func isBelow(_ path: String) -> Bool { Self.path(self.path, isIn: path) }

    /// Compared by bytes: texts with different bytes can be equal, and a slash with a combining accent is another
    /// `Character`.
    private static func path(_ path: String, isIn directory: String) -> Bool {
        guard path.utf8.starts(with: directory.utf8) else { return false }
        let rest = path.utf8.dropFirst(directory.utf8.count)
        return directory == "/" || rest.isEmpty || rest.first == UInt8(ascii: "/")
    }

    /// Opens a directory in this one (`openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`), or this one.
    ///
    /// - Parameter access: `O_PATH` or `O_RDONLY`.
    /// - Throws: ``StorageError`` with condition `outside` if the directory is elsewhere, or if a symbolic link is on the
    ///   way to it.
    func open(_ directory: String, _ access: CInt) throws(StorageError) -> CInt {
        let flags = access | O_DIRECTORY | O_CLOEXEC
        guard Self.path(directory, isIn: self.path) else { throw self.outside(directory, EXDEV) }
        let below = directory.utf8.dropFirst(self.path.utf8.count).drop { $0 == UInt8(ascii: "/") }
        guard !below.isEmpty else {
            return try POSIXStorage.check("open", self.path) { SystemCalls.openFile(self.path, flags) }
        }
        let start = try POSIXStorage.check("open", self.path) {
            SystemCalls.openFile(self.path, O_PATH | O_DIRECTORY | O_CLOEXEC)
        }
        defer { SystemCalls.closeFile(start) }
        do throws(StorageError) {
            return try POSIXStorage.check("openat2", directory) {
                segdl_open_beneath(start, String(Substring(below)), flags)
            }
        } catch  where [ELOOP, EXDEV, ENOTDIR].contains(error.errno) {
            throw self.outside(directory, error.errno)
        }
    }

    private func outside(_ directory: String, _ number: CInt) -> StorageError {
        StorageError(
            call: "openat2", path: directory, errno: number, condition: .outside,
            text: "it is not in \(self.path.printable), or a symbolic link or a file is on the way")
    }
}
