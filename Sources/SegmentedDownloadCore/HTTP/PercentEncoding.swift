/// Percent-encoded text, as in paths and extended parameters (RFC 3986 §2.1).
package enum PercentEncoding {
    enum Piece: Hashable {
        /// An unencoded byte, or a percent sign that is not followed by two hexadecimal digits.
        case literal(UInt8)
        /// The decoded byte and the three bytes that encode it, such as `%C3`.
        case escaped(UInt8, spelling: [UInt8])
    }

    /// Splits `text` into literal bytes and escapes in a single pass: `%252e` decodes to `%2e`, not to a dot.
    static func pieces(of text: some Sequence<UInt8>) -> [Piece] {
        var pieces: [Piece] = []
        var rest = Array(text)[...]
        while let byte = rest.popFirst() {
            let digits = Array(rest.prefix(2))
            if byte == UInt8(ascii: "%"), digits.count == 2,
                let high = digits[0].hexDigitValue, let low = digits[1].hexDigitValue
            {
                pieces.append(.escaped(high << 4 | low, spelling: [byte] + digits))
                rest = rest.dropFirst(2)
            } else {
                pieces.append(.literal(byte))
            }
        }
        return pieces
    }

    /// Decodes the escapes that form valid UTF-8 and leaves the others as they are.
    package static func decode(_ text: some Collection<UInt8>) -> String {
        guard text.contains(UInt8(ascii: "%")) else { return String(decoding: text, as: UTF8.self) }
        let pieces = Self.pieces(of: text)
        var decoded: [UInt8] = []
        var index = 0
        while index < pieces.count {
            let length = Self.characterLength(in: pieces[index...])
            if length > 0 {
                decoded += pieces[index..<index + length].map { $0.byte }
                index += length
            } else {
                decoded += pieces[index].spelling
                index += 1
            }
        }
        return String(decoding: decoded, as: UTF8.self)
    }

    /// Encodes everything but unreserved characters (RFC 3986 §2.3), so that the text can be a component of a path.
    package static func encode(_ text: String) -> String {
        String(decoding: text.utf8.flatMap { $0.isUnreserved ? [$0] : Self.escape($0) }, as: UTF8.self)
    }

    /// Encodes what may not occur in a URL behind the host, or in a user name, and leaves valid escapes as they are.
    package static func encodeInvalid(in text: some Collection<UInt8>) -> [UInt8] {
        Self.pieces(of: text).flatMap { piece in
            switch piece {
            case .literal(let byte):
                byte.isUnreserved || "!$&'()*+,;=:@/?".utf8.contains(byte) ? [byte] : Self.escape(byte)
            case .escaped(_, let spelling): spelling
            }
        }
    }

    private static func escape(_ byte: UInt8) -> [UInt8] {
        let digits = String(byte, radix: 16, uppercase: true)
        return Array("%\(digits.utf8.count == 1 ? "0" : "")\(digits)".utf8)
    }

    /// The number of pieces, one to four, that encode the first character. Zero if they are not valid UTF-8.
    private static func characterLength(in pieces: ArraySlice<Piece>) -> Int {
        for length in 1...4 where length <= pieces.count {
            if String(validating: pieces.prefix(length).map { $0.byte }, as: UTF8.self) != nil { return length }
        }
        return 0
    }
}

extension PercentEncoding.Piece {
    var byte: UInt8 {
        switch self {
        case .literal(let byte), .escaped(let byte, _): byte
        }
    }

    fileprivate var spelling: [UInt8] {
        switch self {
        case .literal(let byte): [byte]
        case .escaped(_, let spelling): spelling
        }
    }
}

extension UInt8 {
    /// Whether a character needs no percent-encoding anywhere (RFC 3986 §2.3).
    package var isUnreserved: Bool {
        self.isASCIILetter || self.isASCIIDigit || "-._~".utf8.contains(self)
    }
}
