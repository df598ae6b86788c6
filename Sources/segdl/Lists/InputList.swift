import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Reads a list of files in aria2's form, one entry at a time.
///
/// A line is a URL, followed by further URLs of the same file, separated by tabs. Indented lines below it are the
/// file's options, as `key=value`; an indented URL is a file of its own. Empty lines, lines that begin with `#`, and text
/// after ` #` behind a URL are ignored. A malformed line concerns its own entry only, see ``Entry/problem``.
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
        /// Why the entry cannot be used, if one of its lines is malformed. Its URLs are then the text of its first line.
        var problem: ListProblem?
        /// Whether the name among the options is the list's own, as in a metalink, so that the user may choose another one.
        var suggestsName = false
    }

    struct Option: Hashable {
        var place: ListPlace
        var key: String
        var value: String
    }

    private enum Line {
        case urls([String], number: Int, ListProblem? = nil)
        case option(Option, ListProblem? = nil)
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
    ///
    /// - Throws: ``ListProblem`` if the list cannot be read to its end.
    mutating func next() throws(ListProblem) -> Entry? {
        guard let line = try self.take() else { return nil }
        var entry: Entry
        switch line {
        case .option(let option, _):
            let message = "an indented line is an option of the URL above it, and there is none"
            entry = Entry(
                place: option.place, urls: ["\(option.key)=\(option.value)"],
                problem: ListProblem(option.place, message))
        case .urls(let urls, let number, let problem):
            entry = Entry(place: .line(number), urls: urls, problem: problem)
        }
        while let line = try self.nextLine() {
            guard case .option(let option, let problem) = line else {
                self.ahead = line
                break
            }
            guard entry.options.count < Self.optionsMax else {
                throw ListProblem(option.place, "a file has more than \(Self.optionsMax) options")
            }
            entry.options.append(option)
            entry.problem = entry.problem ?? problem
        }
        return entry
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
        let isIndented = content.startIndex != line.startIndex
        // The text is in another encoding, or a crash has replaced it with zeros, perhaps options of the entry above.
        guard !line.contains(0) else {
            throw ListProblem(place, "the line contains a NUL byte; a list is text in UTF-8")
        }
        guard let text = String(validating: content, as: UTF8.self) else {
            let text = String(decoding: content, as: UTF8.self)
            let problem = ListProblem(place, "the line is not UTF-8")
            return isIndented
                ? .option(Option(place: place, key: text, value: ""), problem)
                : .urls([text], number: self.number, problem)
        }
        guard !isIndented || Self.beginsWithScheme(text) else { return self.option(in: content, text, place) }
        // Most lines have one URL.
        guard content.contains(where: { $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: " ") }) else {
            return .urls([text], number: self.number)
        }
        let parts = content.withoutComment.split(separator: UInt8(ascii: "\t"))
        let urls = parts.map { String(decoding: $0.trimmed, as: UTF8.self) }.filter { !$0.isEmpty }
        // A blank inside of a URL is part of it.
        let isSeveral = urls.contains { $0.split(separator: " ").dropFirst().contains { Self.beginsWithScheme($0) } }
        guard isSeveral else { return .urls(urls, number: self.number) }
        return .urls(
            [text], number: self.number,
            ListProblem(
                place, "there are URLs with a blank between them: write each on a line, or a tab before a mirror"))
    }

    private static func beginsWithScheme(_ text: some StringProtocol) -> Bool {
        let start = text.prefix("https://".count).lowercased()
        return start == "https://" || start.hasPrefix("http://")
    }

    private func option(in content: ArraySlice<UInt8>, _ text: String, _ place: ListPlace) -> Line {
        let parts = content.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        let texts = parts.map { String(decoding: $0.trimmed, as: UTF8.self) }
        guard texts.count == 2, !texts[0].isEmpty else {
            let message = "\"\(texts[0].shownWithoutSecrets)\" is indented but is not key=value"
            return .option(Option(place: place, key: text, value: ""), ListProblem(place, message))
        }
        return .option(Option(place: place, key: texts[0], value: texts[1]))
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
    /// The text before a `#` that follows a blank. It would be a fragment, which is not sent.
    fileprivate var withoutComment: ArraySlice<UInt8> {
        var isAfterBlank = false
        for index in self.indices {
            if isAfterBlank, self[index] == UInt8(ascii: "#") { return self[..<index] }
            isAfterBlank = self[index] == UInt8(ascii: "\t") || self[index] == UInt8(ascii: " ")
        }
        return self
    }

    /// The text without spaces and tabs at both ends.
    fileprivate var trimmed: ArraySlice<UInt8> {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let start = self.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return start.prefix(0) }
        return start[...last]
    }
}
