/// The file name that a `Content-Disposition` field suggests (RFC 6266, RFC 8187).
///
/// The name is untrusted: make a ``SafeFilename`` from it before it reaches the file system. What servers send instead of the
/// grammar is read as browsers and curl read it: values without quotation marks up to the next semicolon, a missing type, a missing
/// quotation mark at the end, the first of two equal parameters.
package struct ContentDisposition: Hashable, Sendable {
    /// `filename*` if it decodes, otherwise `filename`.
    package let filename: String?

    /// RFC 6266 and RFC 2183 define six parameters. The limit bounds the search for duplicates.
    private static let parametersMax = 32

    package init(fieldValue: String) {
        var reader = FieldValueReader(fieldValue)
        var names: [String] = []
        var plain: String?
        var extended: String?
        while !reader.isAtEnd, names.count < Self.parametersMax {
            reader.skipWhitespace()
            if let parameter = reader.takeParameter(), !names.contains(parameter.name) {
                names.append(parameter.name)
                switch parameter.name {
                case "filename": plain = parameter.value
                case "filename*": extended = Self.decodeExtended(parameter.value).flatMap { $0.isEmpty ? nil : $0 }
                default: break
                }
            }
            // Whatever else there is up to the semicolon belongs to no parameter.
            _ = reader.take { $0 != UInt8(ascii: ";") }
            _ = reader.skip(";")
        }
        self.filename = extended ?? plain
    }

    /// Decodes `charset'language'percent-encoded` (RFC 8187 §3.2). Nil if the bytes are not valid in the charset.
    private static func decodeExtended(_ value: String) -> String? {
        let parts = value.utf8.split(
            separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false
        )
        guard parts.count == 3, let charset = parts.first, let text = parts.last else { return nil }

        var bytes: [UInt8] = []
        for piece in PercentEncoding.pieces(of: text) {
            switch piece {
            case .literal(let byte):
                // Neither a lone percent sign nor a raw byte above ASCII is valid here (RFC 8187 §3.2.1).
                guard byte != UInt8(ascii: "%"), byte < 0x80 else { return nil }
                bytes.append(byte)
            case .escaped(let byte, _):
                bytes.append(byte)
            }
        }

        switch String(decoding: charset.map { $0.asciiLowercased }, as: UTF8.self) {
        case "utf-8", "utf8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }
}

extension FieldValueReader {
    /// Reads one `name=value`: the name in lower case, the value without its quotation marks.
    fileprivate mutating func takeParameter() -> (name: String, value: String)? {
        let name = String(decoding: self.take { $0.isTokenCharacter }.map { $0.asciiLowercased }, as: UTF8.self)
        self.skipWhitespace()
        guard !name.isEmpty, self.skip("=") else { return nil }
        self.skipWhitespace()

        var quoted = self
        if let value = quoted.takeQuotedString() {
            self = quoted
            return (name, value)
        }
        // The quotation mark at the end may be missing.
        _ = self.skip("\"")
        let value = Array(self.take { $0 != UInt8(ascii: ";") })[...].trimmingFieldWhitespace
        guard !value.isEmpty, value.allSatisfy(\.isQuotable) else { return nil }
        return (name, String(decoding: value, as: UTF8.self))
    }
}
