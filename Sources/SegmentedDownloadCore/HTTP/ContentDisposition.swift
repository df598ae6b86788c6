/// The file name a `Content-Disposition` field suggests (RFC 6266, RFC 8187).
///
/// The name is as the server wrote it and not to be trusted: only ``SafeFilename`` may touch a disk. A field that
/// breaks the grammar or says anything twice is ignored as a whole; two readers of it would not agree on a name.
package struct ContentDisposition: Hashable, Sendable {
    /// `filename*` where it decodes, else `filename`.
    package let filename: String?

    /// RFC 6266 and RFC 2183 define six between them; the limit bounds the search for duplicates.
    private static let parametersMax = 32

    package init?(fieldValue: String) {
        var reader = FieldValueReader(fieldValue)
        guard !reader.take(while: { $0.isTokenCharacter }).isEmpty else { return nil }
        reader.skipWhitespace()

        var names: [String] = []
        var plain: String?
        var extended: String?
        while reader.skip(";") {
            reader.skipWhitespace()
            guard !reader.isAtEnd, reader.next != UInt8(ascii: ";") else { continue }  // A stray semicolon is common.
            guard
                let parameter = reader.takeParameter(),
                !names.contains(parameter.name), names.count < Self.parametersMax
            else { return nil }
            names.append(parameter.name)
            switch parameter.name {
            case "filename": plain = parameter.value
            case "filename*": extended = Self.decodeExtended(parameter.value)
            default: break
            }
            reader.skipWhitespace()
        }
        guard reader.isAtEnd else { return nil }
        self.filename = extended ?? plain
    }

    /// Decodes `charset'language'percent-encoded` (RFC 8187 §3.2); nil where the bytes are not in the charset.
    private static func decodeExtended(_ value: String) -> String? {
        let parts = value.utf8.split(
            separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false
        )
        guard parts.count == 3, let charset = parts.first, let text = parts.last else { return nil }

        var bytes: [UInt8] = []
        for piece in PercentEncoding.pieces(of: text) {
            switch piece {
            case .literal(let byte):
                // A lone percent sign is broken, and raw text above ASCII is in no charset that was announced.
                guard byte != UInt8(ascii: "%"), byte < 0x80 else { return nil }
                bytes.append(byte)
            case .escaped(let byte, _):
                bytes.append(byte)
            }
        }

        switch String(decoding: charset.map { $0.asciiLowercased }, as: UTF8.self) {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }
}

extension FieldValueReader {
    /// One `name=value`, the name in lower case and the value without its quotation marks.
    fileprivate mutating func takeParameter() -> (name: String, value: String)? {
        let name = String(decoding: self.take { $0.isTokenCharacter }.map { $0.asciiLowercased }, as: UTF8.self)
        self.skipWhitespace()
        guard !name.isEmpty, self.skip("=") else { return nil }
        self.skipWhitespace()

        if self.next == UInt8(ascii: "\"") {
            return self.takeQuotedString().map { (name, $0) }
        }
        // JavaScript's encodeURIComponent leaves parentheses as they are, which no token may contain.
        let isExtended = name.utf8.last == UInt8(ascii: "*")
        let value = self.take { $0.isTokenCharacter || (isExtended && "()".utf8.contains($0)) }
        return value.isEmpty ? nil : (name, String(Substring(value)))
    }
}
