import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Reads a list of files in aria2's form, one entry at a time.
///
/// A line is a URL, followed by further URLs of the same file, separated by tabs. Indented lines below it are the
/// file's options, as `key=value`. Empty lines and lines that begin with `#` are ignored.
///
/// Entries are read one at a time so that a list of a million files is not in memory twice.
struct InputList {
    /// One file of a list.
    struct Entry: Hashable {
        /// The entry's place in the list, for messages.
        var place: ListPlace
        /// At least one URL. Those after the first are mirrors.
        var urls: [String]
        var options: [Option] = []
        /// The file's length in bytes, if a metalink states it.
        var length: Int64?
        /// The digests of the file's pieces, if a metalink has them.
        var pieceDigests: Metalink.PieceDigests?
        /// Whether the name among the options is the list's own, as in a metalink, so that the user may choose another one.
        var suggestsName = false
    }

    struct Option: Hashable {
        var place: ListPlace
        var key: String
        var value: String
    }

    private enum Line {
        case urls([String], number: Int)
        case option(Option)
    }

    /// 64 KiB: servers do not accept a URL of a quarter of that.
    static let lineLengthMax = 1 << 16
    /// More than the number of keys, with room for header fields.
    static let optionsMax = 256

    private var bytes: [UInt8]
    private var offset = 0
    /// Where the rest of the list comes from.
    private let reader: ListReader?
    private var number = 0
    private var ahead: Line?

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        self.reader = nil
    }

    /// A list that is read in pieces, so that its length does not matter.
    init(_ first: [UInt8], then reader: ListReader) {
        self.bytes = first
        self.reader = reader
    }

    /// The next entry; nil at the end. Do not call it again after it throws.
    mutating func next() throws(ListProblem) -> Entry? {
        guard let line = try self.take() else { return nil }
        switch line {
        case .option(let option):
            throw ListProblem(option.place, "an indented line is an option of the URL above it, and there is none")
        case .urls(let urls, let number):
            var entry = Entry(place: .line(number), urls: urls)
            while let line = try self.nextLine() {
                guard case .option(let option) = line else {
                    self.ahead = line
                    break
                }
                guard entry.options.count < Self.optionsMax else {
                    throw ListProblem(option.place, "a file has more than \(Self.optionsMax) options")
                }
                entry.options.append(option)
            }
            return entry
        }
    }

    /// The line that was read ahead, otherwise the next line.
    private mutating func take() throws(ListProblem) -> Line? {
        guard let line = self.ahead else { return try self.nextLine() }
        self.ahead = nil
        return line
    }

    /// The next line that is neither empty nor a comment.
    private mutating func nextLine() throws(ListProblem) -> Line? {
        while let end = try self.lineEnd() {
            var line = self.bytes[self.offset..<end]
            self.offset = min(end + 1, self.bytes.count)
            self.number += 1
            // A byte order mark, which editors on Windows write.
            if self.number == 1, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            if let line = try self.meaning(of: line) { return line }
        }
        return nil
    }

    /// Where the next line ends; nil if there is none. A line of a piece is completed from the next pieces.
    private mutating func lineEnd() throws(ListProblem) -> Int? {
        var searched = self.offset
        while true {
            if let end = self.bytes.newline(from: searched) { return end }
            searched = self.bytes.count
            // The length is checked again where the line is read, with a better message for a comment.
            let isTooLong = searched - self.offset > 2 * Self.lineLengthMax
            guard !isTooLong, let reader, let piece = try reader.next(after: self.number) else {
                return self.offset < self.bytes.count ? self.bytes.count : nil
            }
            self.bytes.removeSubrange(..<self.offset)
            searched -= self.offset
            self.offset = 0
            self.bytes += piece
        }
    }

    private func meaning(of line: ArraySlice<UInt8>) throws(ListProblem) -> Line? {
        let place = ListPlace.line(self.number)
        let content = line.trimmed
        guard let first = content.first, first != UInt8(ascii: "#") else { return nil }
        guard line.count <= Self.lineLengthMax else {
            throw ListProblem(place, "the line has \(line.count) bytes; \(Self.lineLengthMax) are allowed")
        }
        guard !line.contains(0) else {
            throw ListProblem(place, "the line contains a NUL byte; a list is text in UTF-8")
        }
        guard let text = String(validating: content, as: UTF8.self) else {
            throw ListProblem(place, "the line is not UTF-8")
        }
        guard content.startIndex == line.startIndex else { return .option(try self.option(in: content, place)) }
        // Most lines have one URL.
        guard content.contains(UInt8(ascii: "\t")) else { return .urls([text], number: self.number) }
        let urls = content.split(separator: UInt8(ascii: "\t")).map { String(decoding: $0.trimmed, as: UTF8.self) }
        return .urls(urls.filter { !$0.isEmpty }, number: self.number)
    }

    private func option(in content: ArraySlice<UInt8>, _ place: ListPlace) throws(ListProblem) -> Option {
        let parts = content.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        let texts = parts.map { String(decoding: $0.trimmed, as: UTF8.self) }
        guard texts.count == 2, !texts[0].isEmpty else {
            throw ListProblem(
                place,
                "\"\(texts[0].shownWithoutSecrets)\" is indented but is not key=value. A URL must not be indented")
        }
        return Option(place: place, key: texts[0], value: texts[1])
    }
}

extension [UInt8] {
    /// The index of the first newline at or after an index (`memchr`, because lists have millions of lines).
    fileprivate func newline(from start: Int) -> Int? {
        self.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress, start < bytes.count,
                let found = memchr(base + start, CInt(UInt8(ascii: "\n")), bytes.count - start)
            else { return nil }
            return UnsafeRawPointer(found) - base
        }
    }
}

extension ArraySlice<UInt8> {
    /// The text without spaces and tabs at both ends.
    fileprivate var trimmed: ArraySlice<UInt8> {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let start = self.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return start.prefix(0) }
        return start[...last]
    }
}
