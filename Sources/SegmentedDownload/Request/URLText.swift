import SegmentedDownloadCore

/// URLs as people and servers write them, in the form that RFC 3986 allows.
///
/// Characters that may not occur are encoded one by one, and valid escapes stay: a server's signature covers the spelling. Other
/// programs differ in the brackets of a path, which curl sends as they are; both spellings name the same file.
enum URLText {
    /// Encodes what may not occur in a URL or a reference, and removes blanks around it. The host is not changed, except that
    /// its escapes of other characters than ASCII's are decoded, for the parser to translate.
    static func encoded(_ text: String) -> String {
        let bytes = Array(text.utf8)
        let start = bytes.firstIndex { $0 != UInt8(ascii: " ") } ?? bytes.endIndex
        let end = bytes.lastIndex { $0 != UInt8(ascii: " ") }.map { $0 + 1 } ?? start
        let trimmed = Self.withTwoSlashes(bytes[start..<end])
        let authority = Self.authority(of: trimmed)
        var encoded = Array(trimmed[..<authority.lowerBound])
        if !authority.isEmpty {
            let user = trimmed[authority].lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 } ?? authority.lowerBound
            encoded += PercentEncoding.encodeInvalid(in: trimmed[authority.lowerBound..<user])
            encoded += Self.host(trimmed[user..<authority.upperBound])
        }
        let rest = trimmed[authority.upperBound...]
        let fragment = rest.firstIndex(of: UInt8(ascii: "#")) ?? rest.endIndex
        encoded += PercentEncoding.encodeInvalid(in: rest[..<fragment])
        if fragment < rest.endIndex {
            encoded += [UInt8(ascii: "#")] + PercentEncoding.encodeInvalid(in: rest[(fragment + 1)...])
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// A path without the segments `.` and `..` (RFC 3986, section 5.2.4). Their encoded forms stay.
    static func withoutDotSegments(_ path: String) -> String {
        guard path.utf8.contains(UInt8(ascii: ".")) else { return path }
        var kept: [Substring] = []
        let segments = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment {
            case ".": if isLast { kept.append("") }
            case "..":
                _ = kept.popLast()
                if isLast { kept.append("") }
            default: kept.append(segment)
            }
        }
        return "/" + kept.joined(separator: "/")
    }

    /// With two slashes behind `http:` or `https:` instead of one or three, or without a scheme instead of three, as browsers and
    /// curl read it.
    private static func withTwoSlashes(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let slash = UInt8(ascii: "/")
        for scheme in ["https:", "http:", ""] where text.starts(with: scheme.utf8, by: { $0.asciiLowercased == $1 }) {
            let rest = text.dropFirst(scheme.utf8.count)
            let slashes = rest.prefix { $0 == slash }.count
            guard slashes == 3 || slashes == 1 && !scheme.isEmpty else { return text }
            return text.prefix(scheme.utf8.count) + [slash, slash] + rest.dropFirst(slashes)
        }
        return text
    }

    /// Where the user name, the host and the port are; an empty range if there are none.
    private static func authority(of text: ArraySlice<UInt8>) -> Range<Int> {
        let scheme = text.prefix { $0.isSchemeCharacter }
        var start = text.startIndex
        if let first = scheme.first, first.isASCIILetter, text[scheme.endIndex...].first == UInt8(ascii: ":") {
            start = scheme.endIndex + 1
        }
        guard text[start...].starts(with: "//".utf8) else { return text.startIndex..<text.startIndex }
        let authority = text[(start + 2)...].prefix { !"/?#".utf8.contains($0) }
        return authority.startIndex..<authority.endIndex
    }

    private static func host(_ text: ArraySlice<UInt8>) -> [UInt8] {
        guard text.contains(UInt8(ascii: "%")) else { return Array(text) }
        let decoded = PercentEncoding.decode(text)
        // An encoded delimiter would end the host.
        return decoded.utf8.count { $0 < 0x80 } == Self.plainCount(text) ? Array(decoded.utf8) : Array(text)
    }

    /// The number of ASCII characters outside of escapes.
    private static func plainCount(_ text: ArraySlice<UInt8>) -> Int {
        text.count - 3 * text.count { $0 == UInt8(ascii: "%") } - text.count { $0 >= 0x80 }
    }
}

extension UInt8 {
    fileprivate var isSchemeCharacter: Bool { self.isASCIILetter || self.isASCIIDigit || "+-.".utf8.contains(self) }
}
