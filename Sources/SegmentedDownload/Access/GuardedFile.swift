import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A file that decides what is sent to servers, read together with the facts about who else can read it or write to it.
///
/// Content and facts are of one open file: a file renamed over the path in between cannot have the one without the other.
package struct GuardedFile: Hashable, Sendable {
    package let bytes: [UInt8]
    private let path: String
    private let owner: uid_t
    private let mode: mode_t

    /// 1 MiB: many times the longest configuration; a device without end is not read into memory.
    private static let lengthMax = 1 << 20

    /// - Throws: ``DownloadError`` with code `file` if it cannot be read.
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
        // Others can write to a terminal, but what is read from it was typed.
        self.mode = facts.st_mode & S_IFMT == S_IFCHR ? 0o600 : facts.st_mode & 0o777
    }

    /// Whether its group or others have any access to it.
    package var isShared: Bool { self.mode & 0o077 != 0 }

    /// Requires that nobody but the effective user and root can have written it.
    ///
    /// - Parameter word: the path as a shell takes it.
    /// - Throws: ``DownloadError`` with code `exists`.
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
