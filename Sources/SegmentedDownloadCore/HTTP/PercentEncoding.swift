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
        var encoded = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                encoded += "%" + (digits.utf8.count == 1 ? "0" : "") + digits
            }
        }
        return encoded
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
