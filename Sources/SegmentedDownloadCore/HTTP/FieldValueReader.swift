/// Reads a field value from left to right, byte by byte.
///
/// It reads UTF-8 bytes, because one `Character` may include a delimiter: CR LF is one `Character`, and so is a
/// quotation mark followed by a combining accent. Every method is total; at the end of the value it finds nothing.
struct FieldValueReader {
    private var rest: Substring.UTF8View

    init(_ fieldValue: String) {
        self.rest = Substring(fieldValue).utf8
    }

    var isAtEnd: Bool { self.rest.isEmpty }
    var next: UInt8? { self.rest.first }

    /// Skips `literal` and returns true, or returns false without moving.
    mutating func skip(_ literal: String) -> Bool {
        guard self.rest.starts(with: literal.utf8) else { return false }
        self.rest = self.rest.dropFirst(literal.utf8.count)
        return true
    }

    /// Skips `literal`, ignoring ASCII case, and returns true, or returns false without moving.
    mutating func skipIgnoringCase(_ literal: String) -> Bool {
        let isNext = self.rest.starts(with: literal.utf8) { $0.asciiLowercased == $1.asciiLowercased }
        guard isNext else { return false }
        self.rest = self.rest.dropFirst(literal.utf8.count)
        return true
    }

    /// Skips optional whitespace (RFC 9110 §5.6.3).
    mutating func skipWhitespace() {
        _ = self.take { $0.isFieldWhitespace }
    }

    mutating func takeByte() -> UInt8? {
        self.rest.popFirst()
    }

    /// Reads the longest run of matching bytes, which may be empty.
    mutating func take(while matches: (UInt8) -> Bool) -> Substring.UTF8View {
        let run = self.rest.prefix(while: matches)
        self.rest = self.rest[run.endIndex...]
        return run
    }

    /// Reads one or more digits. Nil if there are none, or if the number exceeds `Int64.max`.
    mutating func takeNumber() -> Int64? {
        DecimalDigits(self.take { $0.isASCIIDigit })?.exact
    }

    /// Reads exactly `count` digits. Nil, without moving, if there are fewer.
    mutating func takeNumber(digits count: Int) -> Int64? {
        let run = self.rest.prefix(count)
        guard run.count == count, let number = DecimalDigits(run)?.exact else { return nil }
        self.rest = self.rest[run.endIndex...]
        return number
    }

    /// Reads one of `names` and returns its index. Nil, without moving, if none of them comes next.
    mutating func takeName(of names: [String]) -> Int? {
        for (index, name) in names.enumerated() where self.skip(name) {
            return index
        }
        return nil
    }

    /// Reads a quoted string (RFC 9110 §5.6.4) and returns it without quotation marks and escapes. Nil if it is not
    /// terminated or contains a control character.
    mutating func takeQuotedString() -> String? {
        guard self.skip("\"") else { return nil }
        var bytes: [UInt8] = []
        while let byte = self.takeByte() {
            switch byte {
            case UInt8(ascii: "\""):
                return String(decoding: bytes, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = self.takeByte(), escaped.isQuotable else { return nil }
                bytes.append(escaped)
            default:
                guard byte.isQuotable else { return nil }
                bytes.append(byte)
            }
        }
        return nil
    }

    /// Reads a token and returns it in lower case. Nil if there is none.
    mutating func takeParameterName() -> String? {
        let name = self.take { $0.isTokenCharacter }
        return name.isEmpty ? nil : String(decoding: name.map(\.asciiLowercased), as: UTF8.self)
    }

    /// Reads a quoted string (RFC 9110 §5.6.4) or an unquoted value.
    ///
    /// Unquoted values may contain characters that the grammar does not allow in a token, as in
    /// `type=application/metalink4+xml`, because servers send them. Nil if a quoted string is not terminated.
    mutating func takeParameterValue() -> String? {
        if self.next == UInt8(ascii: "\"") { return self.takeQuotedString() }
        return String(Substring(self.take { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",") && $0 > 0x20 }))
    }
}

extension UInt8 {
    /// Any byte except a control character other than tab (RFC 9110 §5.6.4).
    var isQuotable: Bool { self == UInt8(ascii: "\t") || 0x20...0x7E ~= self || self >= 0x80 }

    package var isASCIIDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }

    package var isASCIILetter: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self.asciiLowercased }

    package var isFieldWhitespace: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }

    package var asciiLowercased: UInt8 { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self ? self | 0x20 : self }

    /// `tchar` of RFC 9110 §5.6.2.
    package var isTokenCharacter: Bool {
        self.isASCIIDigit || self.isASCIILetter || "!#$%&'*+-.^_`|~".utf8.contains(self)
    }

    package var hexDigitValue: UInt8? {
        switch self.asciiLowercased {
        case let digit where digit.isASCIIDigit: digit - UInt8(ascii: "0")
        case let letter where UInt8(ascii: "a")...UInt8(ascii: "f") ~= letter: letter - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

extension String {
    /// The UTF-8 bytes with A to Z in lower case.
    ///
    /// `lowercased()` would also map the Kelvin sign to k, so that a different text would compare equal.
    var asciiLowercased: [UInt8] { self.utf8.map(\.asciiLowercased) }
}

extension ArraySlice<UInt8> {
    /// The bytes without optional whitespace at either end (RFC 9110 §5.6.3).
    package var trimmingFieldWhitespace: ArraySlice<UInt8> {
        let text = self.drop { $0.isFieldWhitespace }
        return text[..<(text.lastIndex { !$0.isFieldWhitespace }.map { $0 + 1 } ?? text.startIndex)]
    }
}
