import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// A list of files given with `-i`.
struct InputFile {
    /// A path, `-` for standard input, or a URL.
    let path: String

    /// 256 MiB: some millions of files. A longer file is probably not a list.
    static let lengthMax = 256 << 20

    /// The name for messages.
    var name: String {
        if self.isRemote { return (try? SourceURL(self.path))?.description ?? "the list" }
        return self.isStandardInput ? "standard input" : self.path.shown
    }

    var isStandardInput: Bool { self.path == "-" }

    var isRemote: Bool { self.path.contains("://") }

    /// Whether its name has a metalink's extension.
    var isMetalink: Bool {
        let name = self.path.lowercased()
        return name.hasSuffix(".meta4") || name.hasSuffix(".metalink")
    }

    /// The whole content of a file on disk, standard input, or a URL.
    ///
    /// - Parameters:
    ///   - lengthMax: The greatest length in bytes accepted from a server.
    ///   - identify: Adds credentials and fields to the request for a URL.
    /// - Throws: ``DownloadError``.
    func contents(
        lengthMax: Int, _ client: DownloadClient, _ identify: (inout DownloadRequest) throws(DownloadError) -> Void
    ) async throws -> [UInt8] {
        guard self.isRemote else { return try self.contents() }
        var request = DownloadRequest(try SourceURL(self.path))
        try identify(&request)
        return try await client.bytes(of: request, lengthMaximum: lengthMax)
    }

    /// The whole content of a file on disk or standard input.
    func contents() throws(DownloadError) -> [UInt8] {
        let descriptor = self.isStandardInput ? STDIN_FILENO : SystemCalls.openFile(self.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw self.failure("opened") }
        defer { if !self.isStandardInput { close(descriptor) } }
        guard let facts = FileFacts(descriptor: descriptor) else { throw self.failure("read") }
        guard !facts.isDirectory else {
            throw DownloadError(
                .file, "the list \(self.name) is a directory", hint: "Give a file, or - for standard input")
        }
        return try self.read(descriptor, sizeHint: Int(max(facts.length, 0)))
    }

    private func read(_ descriptor: CInt, sizeHint: Int) throws(DownloadError) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(min(sizeHint, Self.lengthMax))
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = piece.withUnsafeMutableBytes { SystemCalls.readBytes(descriptor, $0) }
            if count == 0 { return bytes }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw self.failure("read")
            }
            bytes += piece[..<count]
            guard bytes.count <= Self.lengthMax else {
                throw DownloadError(
                    .usage, "the list \(self.name) has more than \(ByteCount(Int64(Self.lengthMax)))",
                    hint: "Split it into several lists")
            }
        }
    }

    private func failure(_ participle: String) -> DownloadError {
        let number = errno
        return DownloadError(
            .file, "the list \(self.name) cannot be \(participle): \(String(cString: strerror(number)))",
            errno: number)
    }
}
