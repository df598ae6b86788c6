/// Percent-encoded text, as in paths and extended parameters (RFC 3986 §2.1).
enum PercentEncoding {
    enum Piece: Hashable {
        /// A byte that stands for itself, as does a percent sign that no two hexadecimal digits follow.
        case literal(UInt8)
        /// What `%C3` stands for, and the three bytes that say so.
        case escaped(UInt8, spelling: [UInt8])
    }

    /// Takes `text` apart, left to right and once: `%252e` is `%2e` and not a dot.
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

    /// The text with its escapes decoded where that is UTF-8; escapes that are not stay as they are spelled.
    static func decode(_ text: some Sequence<UInt8>) -> String {
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

    /// How many pieces the first encoded character takes, one to four; zero when they begin with none.
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
