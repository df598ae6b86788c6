import SegmentedDownload
import SystemPackage

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Finds destinations that cannot hold a part file, such as a FIFO or `/dev/null`. Their bytes are written in order, as for `-o -`.
struct StreamDestinations {
    /// Whether other text goes to standard output. Nothing else may be written to the file that it leads to then.
    let usesOutput: Bool
    /// The FIFOs of earlier requests. Bytes of two files would be mixed in one.
    private var pipes: Set<FileFacts.Number> = []

    init(usesOutput: Bool) {
        self.usesOutput = usesOutput
    }

    /// The request with a stream or a descriptor as its destination, if its file is a FIFO, a character device or an open
    /// descriptor of the process, such as `/dev/fd/3`.
    ///
    /// - Throws: ``DownloadError`` with code `file` if the destination is a descriptor that is not open, and `usage` if it is
    ///   a FIFO of another request, or standard output is used otherwise.
    mutating func applied(to request: DownloadRequest) throws(DownloadError) -> DownloadRequest {
        if case .descriptor(let number) = request.destination { try self.check(FileFacts(descriptor: number), "-o -") }
        guard case .file(let given) = request.destination else { return request }
        // `/dev/./stdout` is `/dev/stdout`. A component `..` stays: before it, there may be a symbolic link.
        let path = FilePath(root: given.root, given.components.filter { $0.kind != .currentDirectory })
        guard let kind = Self.kind(of: path.string) else { return request }
        var request = request
        let facts: FileFacts
        switch kind {
        case .open(let descriptor):
            guard StandardDescriptors.isInherited(descriptor), let found = FileFacts(descriptor: descriptor) else {
                throw DownloadError(.file, "\(path.string.shown): descriptor \(descriptor) is not open")
            }
            facts = found
            request.destination = .descriptor(descriptor)
        case .special(let found):
            facts = found
            if facts.isPipe, !self.pipes.insert(facts.number).inserted {
                throw DownloadError(.usage, "\(path.string.shown) is a pipe, and two files would be mixed in it")
            }
            request.destination = .stream(path)
        }
        try self.check(facts, given.string.shown)
        return request
    }

    /// Checks that a destination does not get the text on standard output too. The null device may.
    private func check(_ facts: FileFacts?, _ name: String) throws(DownloadError) {
        guard self.usesOutput, let facts, facts.number == FileFacts(descriptor: STDOUT_FILENO)?.number,
            facts.number != FileFacts("/dev/null", followsLinks: true)?.number
        else { return }
        throw DownloadError(
            .usage, "--json and \(name) would both write to standard output", hint: "Redirect one of them to a file")
    }

    private enum Kind {
        /// A descriptor that the process has.
        case open(CInt)
        /// A FIFO or a character device.
        case special(FileFacts)
    }

    /// Whether bytes to this path are written in order.
    static func isStream(_ path: FilePath) -> Bool { self.kind(of: path.string) != nil }

    /// Nil for a file to be created or replaced.
    private static func kind(of path: String) -> Kind? {
        if path == "/dev/stdout" { return .open(STDOUT_FILENO) }
        if path == "/dev/stderr" { return .open(STDERR_FILENO) }
        for directory in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(directory) {
            return CInt(path.dropFirst(directory.count)).map { .open($0) }
        }
        guard let facts = FileFacts(path, followsLinks: true), facts.isPipe || facts.isCharacterDevice else {
            return nil
        }
        return .special(facts)
    }
}
