/// Reads a field value from left to right, byte by byte.
///
/// It works on UTF-8 bytes because a `Character` may swallow a delimiter: CR LF is one `Character`, and so is a
/// quotation mark with an accent on it. Every method is total: at the end there is nothing to take.
struct FieldValueReader {
    private var rest: Substring.UTF8View

    init(_ fieldValue: String) {
        self.rest = Substring(fieldValue).utf8
    }

    var isAtEnd: Bool { self.rest.isEmpty }
    var next: UInt8? { self.rest.first }

    /// Steps over `literal`, or stays and says false.
    mutating func skip(_ literal: String) -> Bool {
        guard self.rest.starts(with: literal.utf8) else { return false }
        self.rest = self.rest.dropFirst(literal.utf8.count)
        return true
    }

    /// Steps over `literal` in either case (ASCII), or stays and says false.
    mutating func skipIgnoringCase(_ literal: String) -> Bool {
        let isNext = self.rest.starts(with: literal.utf8) { $0.asciiLowercased == $1.asciiLowercased }
        guard isNext else { return false }
        self.rest = self.rest.dropFirst(literal.utf8.count)
        return true
    }

    /// Steps over optional whitespace (RFC 9110 §5.6.3).
    mutating func skipWhitespace() {
        _ = self.take { $0.isFieldWhitespace }
    }

    mutating func takeByte() -> UInt8? {
        self.rest.popFirst()
    }

    /// The longest run of matching bytes, which may be empty.
    mutating func take(while matches: (UInt8) -> Bool) -> Substring.UTF8View {
        let run = self.rest.prefix(while: matches)
        self.rest = self.rest[run.endIndex...]
        return run
    }

    /// One or more digits; nil where there is none and where the number exceeds `Int64.max`.
    mutating func takeNumber() -> Int64? {
        DecimalDigits(self.take { $0.isASCIIDigit })?.exact
    }

    /// Exactly `count` digits.
    mutating func takeNumber(digits count: Int) -> Int64? {
        let run = self.rest.prefix(count)
        guard run.count == count, let number = DecimalDigits(run)?.exact else { return nil }
        self.rest = self.rest[run.endIndex...]
        return number
    }

    /// The place in `names` of the name that comes next.
    mutating func takeName(of names: [String]) -> Int? {
        for (index, name) in names.enumerated() where self.skip(name) {
            return index
        }
        return nil
    }

    /// A quoted string (RFC 9110 §5.6.4) without its quotation marks and escapes; nil when it does not end.
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
}

extension UInt8 {
    /// Anything but a control character (RFC 9110 §5.6.4).
    fileprivate var isQuotable: Bool { self == UInt8(ascii: "\t") || 0x20...0x7E ~= self || self >= 0x80 }

    var isASCIIDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }

    var isASCIILetter: Bool { UInt8(ascii: "a")...UInt8(ascii: "z") ~= self.asciiLowercased }

    var isFieldWhitespace: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }

    var asciiLowercased: UInt8 { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self ? self | 0x20 : self }

    /// `tchar` of RFC 9110 §5.6.2.
    var isTokenCharacter: Bool {
        self.isASCIIDigit || self.isASCIILetter || "!#$%&'*+-.^_`|~".utf8.contains(self)
    }

    var hexDigitValue: UInt8? {
        switch self.asciiLowercased {
        case let digit where digit.isASCIIDigit: digit - UInt8(ascii: "0")
        case let letter where UInt8(ascii: "a")...UInt8(ascii: "f") ~= letter: letter - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

extension String {
    /// The bytes with A to Z in lower case. `lowercased()` makes a k of the Kelvin sign too: another text would pass for this.
    var asciiLowercased: [UInt8] { self.utf8.map(\.asciiLowercased) }
}

extension ArraySlice<UInt8> {
    /// Without optional whitespace at its ends (RFC 9110 §5.6.3).
    var trimmingFieldWhitespace: ArraySlice<UInt8> {
        let text = self.drop { $0.isFieldWhitespace }
        return text[..<(text.lastIndex { !$0.isFieldWhitespace }.map { $0 + 1 } ?? text.startIndex)]
    }
}
