/// The links of an HTML page: the tokenizer of HTML, reduced to tags and their attributes.
///
/// Any bytes are a page. As in a browser, comments and the content of `script`, `style`, `textarea` and `title` contain
/// no tags, and the first of several attributes with one name counts.
struct HTMLLinks: Hashable {
    struct Anchor: Hashable {
        var target: String
        var line: Int
    }

    private(set) var anchors: [Anchor] = []
    /// The target of the first `base` element.
    private(set) var base: String?
    /// Whether the page states a version of Python's package index (PEP 629).
    private(set) var isPackageIndex = false
    /// Whether there is an element of a metalink.
    private(set) var isMetalink = false

    /// 64: an anchor has a few. Further ones are ignored.
    private static let attributesMax = 64
    /// 8 KiB: servers reject URLs of this length.
    private static let targetLengthMax = 1 << 13
    /// Elements whose content is text.
    private static let textElements = ["script", "style", "textarea", "title"].map { Array($0.utf8) }

    private struct Tag {
        var name: [UInt8]
        var attributes: [(name: [UInt8], value: [UInt8])] = []

        subscript(name: String) -> [UInt8]? {
            self.attributes.first { $0.name.elementsEqual(name.utf8) }?.value
        }
    }

    init(_ bytes: [UInt8]) {
        var reader = Reader(bytes)
        while let tag = Self.nextTag(&reader) {
            switch String(decoding: tag.name, as: UTF8.self) {
            case "a":
                guard let value = tag["href"], let target = Self.target(value) else { continue }
                self.anchors.append(Anchor(target: target, line: reader.line))
            case "base":
                if self.base == nil, let value = tag["href"] { self.base = Self.target(value) }
            case "meta":
                if let name = tag["name"], name.elementsEqual("pypi:repository-version".utf8) {
                    self.isPackageIndex = true
                }
            case "metalink":
                self.isMetalink = true
            default:
                if Self.textElements.contains(tag.name) { reader.skipText(of: tag.name) }
            }
        }
    }

    /// The next start tag; nil at the end.
    private static func nextTag(_ reader: inout Reader) -> Tag? {
        while reader.skip(past: UInt8(ascii: "<")) {
            if reader.skip("!--") {
                reader.skip(past: "-->")
            } else if let first = reader.next, first.isLetter {
                var tag = Tag(name: reader.take { !$0.isBlank && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: ">") })
                while let attribute = Self.nextAttribute(&reader) {
                    guard tag.attributes.count < Self.attributesMax else { continue }
                    tag.attributes.append(attribute)
                }
                return tag
            } else if let mark = reader.next, "/!?".utf8.contains(mark) {
                _ = reader.skip(past: UInt8(ascii: ">"))
            }
        }
        return nil
    }

    /// The next attribute of a tag; nil at the tag's end.
    private static func nextAttribute(_ reader: inout Reader) -> (name: [UInt8], value: [UInt8])? {
        _ = reader.take { $0.isBlank || $0 == UInt8(ascii: "/") }
        guard let first = reader.next else { return nil }
        if first == UInt8(ascii: ">") {
            reader.advance()
            return nil
        }
        // A name may begin with an equals sign.
        var isFirst = true
        let name = reader.take { byte in
            defer { isFirst = false }
            return !byte.isBlank && byte != UInt8(ascii: "/") && byte != UInt8(ascii: ">")
                && (isFirst || byte != UInt8(ascii: "="))
        }
        _ = reader.take(\.isBlank)
        guard reader.skip("=") else { return (name, []) }
        _ = reader.take(\.isBlank)
        guard let quote = reader.next, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            return (name, reader.takeExactly { !$0.isBlank && $0 != UInt8(ascii: ">") })
        }
        reader.advance()
        let value = reader.takeExactly { $0 != quote }
        reader.advance()
        return (name, value)
    }

    /// A URL with its character references decoded; nil if it is not UTF-8, or too long.
    private static func target(_ value: [UInt8]) -> String? {
        guard value.count <= Self.targetLengthMax, let text = String(validating: value, as: UTF8.self) else {
            return nil
        }
        let decoded = CharacterReferences.decode(text)
        return decoded.isEmpty ? nil : decoded
    }
}

/// A position in a page.
private struct Reader {
    private let bytes: [UInt8]
    private var index = 0
    /// The line of the position, counted from 1.
    private(set) var line = 1

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    var next: UInt8? { self.index < self.bytes.count ? self.bytes[self.index] : nil }

    mutating func advance() {
        guard let byte = self.next else { return }
        if byte == UInt8(ascii: "\n") { self.line += 1 }
        self.index += 1
    }

    /// Skips this text, if it is next.
    mutating func skip(_ text: StaticString) -> Bool {
        let text = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        guard self.bytes[self.index...].starts(with: text) else { return false }
        for _ in text { self.advance() }
        return true
    }

    /// Skips to the position after a byte, or to the end.
    ///
    /// - Returns: Whether there is such a byte.
    mutating func skip(past mark: UInt8) -> Bool {
        while let byte = self.next {
            self.advance()
            if byte == mark { return true }
        }
        return false
    }

    /// Skips to the position after a text, or to the end.
    mutating func skip(past text: StaticString) {
        while self.next != nil, !self.skip(text) { self.advance() }
    }

    /// Skips an element's text, up to its end tag.
    mutating func skipText(of element: [UInt8]) {
        while self.skip(past: UInt8(ascii: "<")) {
            let rest = self.bytes[self.index...].prefix(element.count + 1)
            if rest.first == UInt8(ascii: "/"), rest.dropFirst().map(\.lowercased) == element { return }
        }
    }

    /// Reads bytes in lower case.
    mutating func take(_ isTaken: (UInt8) -> Bool) -> [UInt8] { self.takeExactly(isTaken).map(\.lowercased) }

    mutating func takeExactly(_ isTaken: (UInt8) -> Bool) -> [UInt8] {
        var taken: [UInt8] = []
        while let byte = self.next, isTaken(byte) {
            taken.append(byte)
            self.advance()
        }
        return taken
    }
}

extension UInt8 {
    fileprivate var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }
    fileprivate var isBlank: Bool { [0x09, 0x0A, 0x0C, 0x0D, 0x20].contains(self) }
    fileprivate var lowercased: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }
}
