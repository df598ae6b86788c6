import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The content of a security-relevant file, together with its owner and permissions.
///
/// All are read through one descriptor, so a file renamed over the path meanwhile cannot mix the content of one file
/// with the permissions of another.
package struct GuardedFile: Hashable, Sendable {
    package let bytes: [UInt8]
    private let path: String
    private let owner: uid_t
    private let mode: mode_t

    /// 1 MiB: many times the longest configuration. The limit stops an endless device file.
    private static let lengthMax = 1 << 20

    /// Reads a file.
    ///
    /// - Throws: ``DownloadError`` with code `file` if it cannot be read or is longer than 1 MiB.
    package init(contentsOf path: String) throws(DownloadError) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard descriptor >= 0 else { throw Self.unreadable(path) }
        defer { close(descriptor) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0 else { throw Self.unreadable(path) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(descriptor, &piece, piece.count)
            if count == 0 { break }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw Self.unreadable(path)
            }
            bytes += piece[..<count]
            guard bytes.count <= Self.lengthMax else {
                throw DownloadError(.file, "\(path.printable) is longer than \(Self.lengthMax) bytes")
            }
        }
        self.bytes = bytes
        self.path = path
        self.owner = facts.st_uid
        // A terminal is writable by others, but what is read from it was typed by the user.
        self.mode = facts.st_mode & S_IFMT == S_IFCHR ? 0o600 : facts.st_mode & 0o777
    }

    /// Whether the group or others have any access to the file.
    package var isShared: Bool { self.mode & 0o077 != 0 }

    /// Requires that only the effective user and root can have written the file.
    ///
    /// - Parameter word: The path quoted for a shell, used in hints.
    /// - Throws: ``DownloadError`` with code `exists` if another user owns the file or may write to it.
    package func requireTrustworthy(as word: String) throws(DownloadError) {
        let user = geteuid()
        guard self.owner == user || self.owner == 0 else {
            throw DownloadError(
                .exists,
                "\(self.path.printable) belongs to uid \(self.owner), neither to you (uid \(user)) nor to root, so it is not used",
                hint: "If it is yours: chown \(user) \(word), and chmod go-w \(word)")
        }
        guard self.mode & 0o022 == 0 else {
            let octal = String(self.mode, radix: 8)
            let writers = [(0o020, "its group"), (0o002, "others")].filter { self.mode & $0.0 != 0 }.map(\.1)
            throw DownloadError(
                .exists,
                "\(self.path.printable) can be written to by \(writers.joined(separator: " and ")) (mode \(octal)), so it is not used",
                hint: "chmod go-w \(word)")
        }
    }

    private static func unreadable(_ path: String) -> DownloadError {
        let number = errno
        return DownloadError(.file, "\(path.printable): \(String(cString: strerror(number)))", errno: number)
    }
}
