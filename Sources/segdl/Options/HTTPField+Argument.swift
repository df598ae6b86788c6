import SegmentedDownload

extension HTTPField {
    /// Parses a header field as an argument: `NAME: VALUE`, a token, a colon, and a value without control characters
    /// (RFC 9110 §5). Blanks around the value do not belong to it.
    ///
    /// `DownloadRequest.validate()` refuses the fields that the downloader sets itself.
    init?(argument: String) {
        guard let colon = argument.utf8.firstIndex(of: UInt8(ascii: ":")),
            let name = Name(String(argument[..<colon]))
        else { return nil }
        let value = Self.trimmed(argument[argument.utf8.index(after: colon)...].utf8)
        guard HTTPField.isValidValue(value) else { return nil }
        self.init(name: name, value: value)
    }

    private static func trimmed(_ text: Substring.UTF8View) -> String {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let start = text.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(Substring(start[...last]))
    }
}
