import SegmentedDownload
import SystemPackage

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Replaces destinations that cannot hold a part file, such as a FIFO or `/dev/null`, by descriptors. Their bytes are
/// written in order, as for `-o -`.
struct StreamDestinations {
    /// The FIFOs that were opened. Bytes of two files would be mixed in one.
    private var pipes: Set<FileFacts.Number> = []

    /// The request with a descriptor as its destination, if its file is a FIFO, a character device or an open
    /// descriptor of the process, such as `/dev/fd/3`. A FIFO is opened once another process reads it.
    ///
    /// - Throws: ``DownloadError`` with code `file` if the destination cannot be opened, and `usage` if it is a FIFO of
    ///   another request.
    mutating func applied(to request: DownloadRequest) throws(DownloadError) -> DownloadRequest {
        guard case .file(let path) = request.destination, let kind = Self.kind(of: path.string) else { return request }
        var request = request
        switch kind {
        case .open(let descriptor):
            guard fcntl(descriptor, F_GETFD) != -1 else {
                throw DownloadError(.file, "\(path.string.shown): descriptor \(descriptor) is not open")
            }
            request.destination = .descriptor(descriptor)
        case .special:
            let descriptor = SystemCalls.openFile(path.string, O_WRONLY | O_CLOEXEC | O_NOCTTY)
            guard descriptor >= 0, let facts = FileFacts(descriptor: descriptor) else {
                throw DownloadError(
                    .file, "\(path.string.shown) cannot be opened: \(String(cString: strerror(errno)))")
            }
            if facts.isPipe, !self.pipes.insert(facts.number).inserted {
                throw DownloadError(.usage, "\(path.string.shown) is a pipe, and two files would be mixed in it")
            }
            request.destination = .descriptor(descriptor)
        }
        return request
    }

    private enum Kind {
        /// A descriptor that the process has.
        case open(CInt)
        /// A FIFO or a character device.
        case special
    }

    /// Nil for a file to be created or replaced.
    private static func kind(of path: String) -> Kind? {
        if path == "/dev/stdout" { return .open(STDOUT_FILENO) }
        if path == "/dev/stderr" { return .open(STDERR_FILENO) }
        for directory in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(directory) {
            return CInt(path.dropFirst(directory.count)).map { .open($0) }
        }
        return FileFacts(path, followsLinks: true).flatMap { $0.isPipe || $0.isCharacterDevice ? .special : nil }
    }
}
