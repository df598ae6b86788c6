import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Reads a list on disk or standard input in pieces.
final class ListReader {
    /// 256 MiB: some millions of files. A longer list does not fit in memory.
    private static let lengthMax = 256 << 20
    /// 256 KiB: longer pieces are not read faster.
    private static let pieceLength = 1 << 18

    private let file: InputFile
    private let descriptor: CInt
    /// In bytes; 0 for a pipe.
    let lengthAtOpening: Int64

    /// Opens the list.
    ///
    /// - Throws: ``DownloadError`` with code `file`.
    init(_ file: InputFile) throws(DownloadError) {
        self.file = file
        self.descriptor =
            file.isStandardInput ? STDIN_FILENO : SystemCalls.openFile(file.path, O_RDONLY | O_CLOEXEC)
        guard self.descriptor >= 0 else { throw Self.failure(file, "opened") }
        guard let facts = FileFacts(descriptor: self.descriptor) else { throw Self.failure(file, "read") }
        guard !facts.isDirectory else {
            throw DownloadError(
                .file, "the list \(file.name) is a directory", hint: "Give a file, or - for standard input")
        }
        self.lengthAtOpening = max(facts.length, 0)
    }

    deinit {
        if !self.file.isStandardInput, self.descriptor >= 0 { close(self.descriptor) }
    }

    /// The next bytes, at least one; nil at the end.
    func next() throws(DownloadError) -> [UInt8]? {
        while true {
            var count = 0
            let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceLength) { buffer, length in
                count = SystemCalls.readBytes(self.descriptor, UnsafeMutableRawBufferPointer(buffer))
                length = max(count, 0)
            }
            if count == 0 { return nil }
            if count > 0 { return piece }
            guard errno == EINTR else { throw Self.failure(self.file, "read") }
        }
    }

    /// What was read before, and all bytes after it.
    func rest(after first: [UInt8]) throws(DownloadError) -> [UInt8] {
        var bytes = first
        bytes.reserveCapacity(min(Int(clamping: self.lengthAtOpening), Self.lengthMax))
        while let piece = try self.next() {
            bytes += piece
            guard bytes.count <= Self.lengthMax else {
                throw DownloadError(
                    .usage, "the list \(self.file.name) has more than \(ByteCount(Int64(Self.lengthMax)))",
                    hint: "Split it into several lists, or read a plain one piece by piece with --job DIR")
            }
        }
        return bytes
    }

    /// The same for a list of lines.
    ///
    /// - Parameter line: The number of the last line, for the message.
    func next(after line: Int) throws(ListProblem) -> [UInt8]? {
        do throws(DownloadError) {
            return try self.next()
        } catch {
            throw ListProblem(.line(line + 1), error.message, code: error.code)
        }
    }

    private static func failure(_ file: InputFile, _ participle: String) -> DownloadError {
        let number = errno
        return DownloadError(
            .file, "the list \(file.name) cannot be \(participle): \(String(cString: strerror(number)))",
            errno: number)
    }
}
