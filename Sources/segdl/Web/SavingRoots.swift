import CLinux
import SegmentedDownload
import SegmentedDownloadCore

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The directories in which clients that connect over TCP may save files.
struct SavingRoots: Hashable, Sendable {
    /// Absolute and without `.` and `..`.
    let directories: [FilePath]

    /// The destination, if it is in one of the directories. A name that is no safe file name is changed as names from servers
    /// are.
    ///
    /// - Throws: ``DownloadError`` with code `policy` if it is elsewhere, or a symbolic link leads elsewhere.
    func checked(_ destination: DownloadRequest.Destination) throws(DownloadError) -> DownloadRequest.Destination {
        switch destination {
        case .file(let path):
            guard let last = path.lastComponent, let name = SafeFilename(untrusted: last.string) else {
                throw DownloadError(.policy, "the file's name is not allowed")
            }
            return .file(try self.checked(path.removingLastComponent()).appending(name.value))
        case .directory(let path, let template): return .directory(try self.checked(path), name: template)
        case .descriptor: throw DownloadError(.usage, "a download of the service needs a file")
        }
    }

    private func checked(_ directory: FilePath) throws(DownloadError) -> FilePath {
        let directory = directory.lexicallyNormalized()
        for root in self.directories where directory.starts(with: root) {
            let below = Array(directory.components.dropFirst(root.components.count))
            for component in below {
                guard let safe = SafeFilename(untrusted: component.string), safe.value == component.string else {
                    throw DownloadError(
                        .policy, "the directory \(component.string.shown) is not allowed",
                        hint: "Choose a name without hidden or special characters")
                }
            }
            try Self.check(below.map(\.string), in: root)
            return directory
        }
        throw DownloadError(
            .policy, "\(directory.string.shown) is outside of the directories in which clients may save files",
            hint: "Allow more with segdl daemon --rpc-root DIR")
    }

    /// Follows the directories that exist with openat2(2), which refuses symbolic links and what leads out of the root.
    private static func check(_ components: [String], in root: FilePath) throws(DownloadError) {
        let start = SystemCalls.openFile(root.string, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        // What does not exist yet leads nowhere.
        guard start >= 0 else {
            if errno == ENOENT { return }
            throw DownloadError(.file, "cannot open \(root.string.shown)", errno: errno)
        }
        defer { SystemCalls.closeFile(start) }
        var count = components.count
        while count > 0 {
            let path = components[..<count].joined(separator: "/")
            let found = segdl_open_beneath(start, path)
            if found >= 0 {
                SystemCalls.closeFile(found)
                return
            }
            guard errno == ENOENT else {
                throw DownloadError(
                    .policy,
                    "\(path.shown) in \(root.string.shown) is no directory, or a symbolic link leads elsewhere",
                    errno: errno)
            }
            count -= 1
        }
    }
}
