import ArgumentParser

/// A header field as an argument: `NAME: VALUE`.
struct HeaderField: Hashable, ExpressibleByArgument {
    let name: String
    let value: String

    /// A token, a colon, and a value without control characters (RFC 9110 §5).
    ///
    /// `DownloadRequest.validate()` refuses the fields that the downloader sets itself.
    init?(argument: String) {
        guard let colon = argument.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let name = argument[..<colon]
        let value = argument[argument.utf8.index(after: colon)...].utf8
        guard !name.isEmpty, name.utf8.allSatisfy({ Self.isTokenByte($0) }),
            value.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == UInt8(ascii: "\t") })
        else { return nil }
        self.name = String(name)
        self.value = Self.trimmed(value)
    }

    private static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static func trimmed(_ text: Substring.UTF8View) -> String {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        let start = text.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(Substring(start[...last]))
    }
}
