/// Second implementations of the grammars, written as plainly as possible from the RFCs alone, to compare the parsers
/// with.
///
/// They work on bytes, prefer simplicity to speed, and share no code with the parsers.
enum Reference {
    /// `1*DIGIT` within `Int64`.
    static func number(_ text: some Collection<UInt8>) -> Int64? {
        guard Self.isDigits(text) else { return nil }
        return Int64(String(decoding: text, as: UTF8.self))
    }

    static func isDigits(_ text: some Collection<UInt8>) -> Bool {
        !text.isEmpty && text.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
    }

    static func lowercased(_ text: some Collection<UInt8>) -> [UInt8] {
        text.map { $0 >= 0x41 && $0 <= 0x5A ? $0 + 0x20 : $0 }
    }

    /// Without spaces and tabs at both ends.
    static func trimmed(_ text: some Collection<UInt8>) -> [UInt8] {
        var text = Array(text)
        while let last = text.last, last == 0x20 || last == 0x09 { text.removeLast() }
        return Array(text.drop { $0 == 0x20 || $0 == 0x09 })
    }

    static func split(_ text: some Collection<UInt8>, at separator: Character) -> [[UInt8]] {
        let byte = separator.asciiValue ?? 0
        return text.split(separator: byte, omittingEmptySubsequences: false).map { Array($0) }
    }

    // MARK: Content-Range (RFC 9110 §14.4)

    struct Positions: Hashable {
        let first: Int64
        let last: Int64
        let total: Int64?
    }

    static func contentRange(_ field: String) -> Positions? {
        let bytes = Array(field.utf8)
        guard Self.lowercased(bytes.prefix(6)) == Array("bytes ".utf8) else { return nil }
        let halves = Self.split(bytes[6...], at: "/")
        guard halves.count == 2 else { return nil }
        let ends = Self.split(halves[0], at: "-")
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            last < .max
        else { return nil }
        if halves[1] == Array("*".utf8) { return Positions(first: first, last: last, total: nil) }
        guard let total = Self.number(halves[1]), last < total else { return nil }
        return Positions(first: first, last: last, total: total)
    }

    /// The complete length in `bytes */1000`.
    static func unsatisfiedLength(_ field: String) -> Int64? {
        let bytes = Array(field.utf8)
        guard Self.lowercased(bytes.prefix(8)) == Array("bytes */".utf8) else { return nil }
        return Self.number(bytes[8...])
    }

    // MARK: Content-Length (RFC 9112 §6.3)

    enum Length: Hashable {
        case absent
        case exact(Int64)
        case malformed
    }

    static func contentLength(_ fields: [String]) -> Length {
        guard !fields.isEmpty else { return .absent }
        let numbers = fields.flatMap { Self.split($0.utf8, at: ",") }.map { Self.number(Self.trimmed($0)) }
        guard let first = numbers[0], numbers.allSatisfy({ $0 == first }) else { return .malformed }
        return .exact(first)
    }

    // MARK: Entity tags (RFC 9110 §8.8.3)

    struct Tag: Hashable {
        let bytes: [UInt8]
        let isWeak: Bool
    }

    static func entityTag(_ field: String) -> Tag? {
        let bytes = Array(field.utf8)
        let isWeak = bytes.starts(with: Array("W/".utf8))
        let quoted = isWeak ? bytes[2...] : bytes[...]
        guard quoted.count >= 2, quoted.first == 0x22, quoted.last == 0x22 else { return nil }
        let opaque = quoted.dropFirst().dropLast()
        guard opaque.allSatisfy({ $0 == 0x21 || (0x23...0x7E).contains($0) || $0 >= 0x80 }) else { return nil }
        // The replacement character, EF BF BD: the byte that it replaced is unknown.
        guard !String(decoding: opaque, as: UTF8.self).unicodeScalars.contains("\u{FFFD}") else { return nil }
        return Tag(bytes: Array(opaque), isWeak: isWeak)
    }

    // MARK: The calendar

    /// Days from 1970-01-01, counted year by year.
    static func days(year: Int, month: Int, day: Int) -> Int {
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334]
        func leapYears(before year: Int) -> Int {
            // Of the years 0 to `year` - 1; the year 0 is one.
            year == 0 ? 0 : (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 + 1
        }
        let isLeap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
        let sinceZero =
            365 * year + leapYears(before: year) + before[month - 1] + (isLeap && month > 2 ? 1 : 0) + day - 1
        return sinceZero - 719_528
    }

    // MARK: Characters that may be shown

    /// Whether a scalar is a kind of space, by PropList.txt of Unicode (`White_Space`), or Braille's empty pattern.
    static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09...0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2000...0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x2800, 0x3000:
            true
        default: false
        }
    }

    /// Whether a scalar is visible on its own: variation selectors and annotation marks are not.
    static func isSeen(_ scalar: Unicode.Scalar) -> Bool {
        Self.isShowable(scalar) && !(0xFE00...0xFE0F).contains(scalar.value)
            && scalar.properties.generalCategory != .format
    }

    /// Whether a scalar, by its Unicode properties, moves no cursor, reverses no line and is visible.
    static func isShowable(_ scalar: Unicode.Scalar) -> Bool {
        Self.showable[Int(scalar.value)]
    }

    /// Looked up once per scalar: the properties are too slow for a fuzzer.
    private static let showable = (0..<UInt32(0x11_0000)).map { Unicode.Scalar($0).map { Self.lookUp($0) } ?? false }

    private static func lookUp(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: return false
        default: break
        }
        // A variation selector chooses the shape of the preceding character and hides nothing.
        if (0xFE00...0xFE0F).contains(scalar.value) { return true }
        return !scalar.properties.isBidiControl && !scalar.properties.isDefaultIgnorableCodePoint
    }
}
