import SegmentedDownload

/// Reads a list of files in aria2's form, an entry at a time.
///
/// A line is a URL, and further URLs of the same file behind tabs. Indented lines below it are its options, as
/// `key=value`. Empty lines mean nothing, and neither do those that begin with `#`.
///
/// It reads an entry at a time so that a list of a million files is never held twice.
struct InputList {
    /// One file of a list.
    struct Entry: Hashable {
        /// Where it is, for messages.
        var place: ListPlace
        /// At least one; those after the first are mirrors.
        var urls: [String]
        var options: [Option] = []
        /// Bytes that the file must have, where a metalink says it.
        var length: Int64?
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

    /// 64 KiB: servers take no URL of a quarter of that.
    static let lineLengthMax = 1 << 16
    /// More options than there are keys, with room for fields.
    static let optionsMax = 256

    private let bytes: [UInt8]
    private var offset: Int
    private var number = 0
    private var ahead: Line?

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        // What editors on Windows begin a text with.
        self.offset = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
    }

    /// The next entry; nil once there is none. After a problem nothing more can be read.
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

    /// The line that was read ahead, else the next one.
    private mutating func take() throws(ListProblem) -> Line? {
        guard let line = self.ahead else { return try self.nextLine() }
        self.ahead = nil
        return line
    }

    /// The next line that means something.
    private mutating func nextLine() throws(ListProblem) -> Line? {
        while self.offset < self.bytes.count {
            let end = self.bytes[self.offset...].firstIndex(of: UInt8(ascii: "\n")) ?? self.bytes.count
            var line = self.bytes[self.offset..<end]
            self.offset = end + 1
            self.number += 1
            if line.last == UInt8(ascii: "\r") { line.removeLast() }
            if let line = try self.meaning(of: line) { return line }
        }
        return nil
    }

    private func meaning(of line: ArraySlice<UInt8>) throws(ListProblem) -> Line? {
        let place = ListPlace.line(self.number)
        let content = line.trimmed
        guard let first = content.first, first != UInt8(ascii: "#") else { return nil }
        guard line.count <= Self.lineLengthMax else {
            throw ListProblem(place, "the line has \(line.count) bytes; \(Self.lineLengthMax) are allowed")
        }
        guard !line.contains(0) else {
            throw ListProblem(place, "the line holds a NUL byte; a list is text in UTF-8")
        }
        guard String(validating: content, as: UTF8.self) != nil else {
            throw ListProblem(place, "the line is not UTF-8")
        }
        guard content.startIndex == line.startIndex else { return .option(try self.option(in: content, place)) }
        let urls = content.split(separator: UInt8(ascii: "\t")).map { String(decoding: $0.trimmed, as: UTF8.self) }
        return .urls(urls.filter { !$0.isEmpty }, number: self.number)
    }

    private func option(in content: ArraySlice<UInt8>, _ place: ListPlace) throws(ListProblem) -> Option {
        let parts = content.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        let texts = parts.map { String(decoding: $0.trimmed, as: UTF8.self) }
        guard texts.count == 2, !texts[0].isEmpty else {
            throw ListProblem(
                place, "\"\(texts[0].shown)\" is indented, and so an option, but not key=value. A URL begins its line")
        }
        return Option(place: place, key: texts[0], value: texts[1])
    }
}

extension ArraySlice<UInt8> {
    /// Without the blanks at both ends.
    fileprivate var trimmed: ArraySlice<UInt8> {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let start = self.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return start.prefix(0) }
        return start[...last]
    }
}
