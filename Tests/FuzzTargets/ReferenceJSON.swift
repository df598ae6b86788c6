/// RFC 8259, written as its grammar, with three extensions of the decoder that it is compared with: a comma may precede the
/// end of an array or an object, a byte order mark the text (section 8.1 allows that), and a number that it never converts,
/// because an object had its name before, may be malformed.
///
/// It works on bytes of valid UTF-8, and reads as far as one level deeper than the reader that it is compared with.
struct ReferenceJSON {
    private var rest: ArraySlice<UInt8>
    /// Whether there is a number that a `Double` cannot hold, or half of a surrogate pair: RFC 8259 leaves to each reader
    /// what it does with them (sections 6 and 8.2). Or a malformed number that a decoder may not convert.
    private(set) var isUnpredictable = false
    private(set) var depthMax = 0
    private var depth = 0
    /// The names of the objects that are being read, the outermost first.
    private var names: [Set<[UInt16]>] = []
    private var lastString: [UInt16] = []
    /// The number of values being read whose names their objects had before.
    private var repeated = 0

    /// Nil if the bytes are not one JSON text.
    init?(_ bytes: [UInt8]) {
        self.rest = bytes[...]
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { self.rest.removeFirst(3) }
        self.skipSpace()
        guard self.value() else { return nil }
        self.skipSpace()
        guard self.rest.isEmpty else { return nil }
    }

    private mutating func skipSpace() {
        self.rest = self.rest.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
    }

    private mutating func take(_ character: Character) -> Bool {
        guard self.rest.first == character.asciiValue else { return false }
        self.rest.removeFirst()
        return true
    }

    private mutating func take(word: String) -> Bool {
        guard self.rest.starts(with: word.utf8) else { return false }
        self.rest.removeFirst(word.utf8.count)
        return true
    }

    private mutating func value() -> Bool {
        switch self.rest.first.map({ Character(UnicodeScalar($0)) }) {
        case "{":
            self.names.append([])
            defer { self.names.removeLast() }
            return self.container("}") { $0.member() }
        case "[": return self.container("]") { $0.value() }
        case "\"": return self.string()
        case "t": return self.take(word: "true")
        case "f": return self.take(word: "false")
        case "n": return self.take(word: "null")
        default: return self.number()
        }
    }

    /// An array or an object.
    ///
    /// - Parameter element: Reads one element. It returns whether that is valid.
    private mutating func container(_ end: Character, _ element: (inout Self) -> Bool) -> Bool {
        self.rest.removeFirst()
        self.depth += 1
        self.depthMax = max(self.depthMax, self.depth)
        defer { self.depth -= 1 }
        while true {
            self.skipSpace()
            if self.take(end) { return true }
            guard element(&self) else { return false }
            self.skipSpace()
            if !self.take(",") { return self.take(end) }
        }
    }

    private mutating func member() -> Bool {
        self.skipSpace()
        guard self.string() else { return false }
        self.skipSpace()
        let isNew = self.names[self.names.count - 1].insert(self.lastString).inserted
        guard self.take(":") else { return false }
        self.skipSpace()
        if !isNew { self.repeated += 1 }
        defer { if !isNew { self.repeated -= 1 } }
        return self.value()
    }

    private mutating func string() -> Bool {
        guard self.take("\"") else { return false }
        var units: [UInt16] = []
        while let byte = self.rest.first {
            if self.take("\"") {
                if Array(String(decoding: units, as: UTF16.self).utf16) != units { self.isUnpredictable = true }
                self.lastString = units
                return true
            }
            if self.take("\\") {
                guard let unit = self.escape() else { return false }
                units.append(unit)
                continue
            }
            guard byte >= 0x20 else { return false }
            // A character of valid UTF-8: its first byte, and those that continue it.
            let end = self.rest.dropFirst().firstIndex { $0 & 0xC0 != 0x80 } ?? self.rest.endIndex
            units += String(decoding: self.rest[..<end], as: UTF8.self).utf16
            self.rest = self.rest[end...]
        }
        return false
    }

    private mutating func escape() -> UInt16? {
        guard let byte = self.rest.popFirst() else { return nil }
        switch Character(UnicodeScalar(byte)) {
        case "\"", "\\", "/": return UInt16(byte)
        case "b": return 0x08
        case "f": return 0x0C
        case "n": return 0x0A
        case "r": return 0x0D
        case "t": return 0x09
        case "u":
            let digits = self.rest.prefix(4)
            guard digits.count == 4, digits.allSatisfy({ Character(UnicodeScalar($0)).isHexDigit && $0 < 0x80 }) else {
                return nil
            }
            self.rest.removeFirst(4)
            return UInt16(String(decoding: digits, as: UTF8.self), radix: 16)
        default: return nil
        }
    }

    private mutating func number() -> Bool {
        let start = self.rest
        let end = start.firstIndex { !"+-.0123456789eE".utf8.contains($0) } ?? start.endIndex
        if self.validNumber(), self.rest.startIndex == end { return true }
        guard self.repeated > 0, end > start.startIndex else { return false }
        self.rest = start[end...]
        self.isUnpredictable = true
        return true
    }

    private mutating func validNumber() -> Bool {
        let start = self.rest
        _ = self.take("-")
        guard self.take("0") || self.digits() > 0 else { return false }
        if self.take("."), self.digits() == 0 { return false }
        if self.take("e") || self.take("E") {
            if !self.take("+") { _ = self.take("-") }
            guard self.digits() > 0 else { return false }
        }
        let text = String(decoding: start[..<self.rest.startIndex], as: UTF8.self)
        let value = Double(text) ?? .infinity
        // Too large, or so small that it becomes zero.
        let isZero = text.prefix { $0 != "e" && $0 != "E" }.allSatisfy { "-0.".contains($0) }
        if !value.isFinite || value.magnitude < .leastNormalMagnitude && !isZero { self.isUnpredictable = true }
        return true
    }

    private mutating func digits() -> Int {
        let count = self.rest.prefix { (0x30...0x39).contains($0) }.count
        self.rest.removeFirst(count)
        return count
    }
}
