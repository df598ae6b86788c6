import SegmentedDownload
import SegmentedDownloadCore

/// An accepted URL leads where a plain reading of RFC 3986 says, and shows no password.
enum SourceURLProperties {
    /// Lines: a URL, and a `Location` resolved against it.
    static func check(_ bytes: [UInt8]) throws(Violation) {
        let lines = Reference.split(bytes, at: "\n").map { String(decoding: $0, as: UTF8.self) }
        guard let url = try Self.parse(lines[0]) else { return }
        guard lines.count > 1 else { return }
        let target: SourceURL
        do throws(DownloadError) {
            target = try url.resolve(location: lines[1])
        } catch {
            try Self.check(error)
            return
        }
        try Self.check(target)
    }

    private static func parse(_ text: String) throws(Violation) -> SourceURL? {
        let url: SourceURL
        do throws(DownloadError) {
            url = try SourceURL(text)
        } catch {
            try Self.check(error)
            return nil
        }
        // Blanks around a URL do not count. How a host with other characters than ASCII's, or with escapes, is translated is known to the library only.
        let bytes = Array(text.utf8)
        guard let first = bytes.firstIndex(where: { $0 != 0x20 }), let last = bytes.lastIndex(where: { $0 != 0x20 }),
            !bytes.contains(where: { $0 >= 0x80 || $0 == 0x25 })
        else {
            try Self.check(url)
            return url
        }
        let plain = Plain(Self.withAuthority(String(decoding: bytes[first...last], as: UTF8.self)))
        try require(plain != nil, "\(text.debugDescription) is accepted and is not an absolute URL")
        guard let plain else { return nil }
        try require(
            Array(url.origin.scheme.utf8) == plain.scheme, "\(text.debugDescription) has scheme \(url.origin.scheme)")
        try require(Array(url.origin.host.utf8) == plain.host, "\(text.debugDescription) leads to \(url.origin.host)")
        try require(
            url.origin.port == plain.port ?? (url.origin.scheme == "https" ? 443 : 80),
            "\(text.debugDescription): \(url.origin)")
        try require(
            (url.credentials != nil) == (plain.userinfo != nil), "\(text.debugDescription) loses or finds a password")
        try Self.check(url)
        return url
    }

    /// One slash or three before a host mean two.
    private static func withAuthority(_ text: String) -> String {
        guard let start = text.firstMatch(of: #/^(?<scheme>[Hh][Tt][Tt][Pp][Ss]?:)(/|///)(?=[^/]|$)/#) else {
            return text
        }
        return "\(start.output.scheme)//\(text[start.range.upperBound...])"
    }

    private static func check(_ url: SourceURL) throws(Violation) {
        try require(["http", "https"].contains(url.origin.scheme), "\(url.string) has another scheme")
        try require((1...65_535).contains(url.origin.port) && !url.origin.host.isEmpty, "\(url.string) leads nowhere")
        try require(
            url.string.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "\(url.string) is not valid in a request")
        try require(url.path.utf8.first == 0x2F, "\(url.string) has the path \(url.path.debugDescription)")
        let description = url.description
        try require(description.unicodeScalars.allSatisfy { Reference.isShowable($0) }, "\(url.string) is shown")
        try require(Plain(url.string)?.userinfo == nil, "\(url.string) holds a password")
        let again: SourceURL
        do throws(DownloadError) {
            again = try SourceURL(url.string)
        } catch {
            throw Violation(description: "\(url.string) is not read again: \(error)")
        }
        try require(
            again.string == url.string && again.origin == url.origin, "\(url.string) is read as \(again.string)")
    }

    private static func check(_ error: DownloadError) throws(Violation) {
        let message = error.message
        try require([.usage, .policy, .protocol].contains(error.code), "\(error) is not about a URL")
        try require(message.unicodeScalars.allSatisfy { Reference.isShowable($0) }, "\(message.debugDescription)")
        try require(!message.utf8.contains(0x40), "a password may precede the @ in \(message.debugDescription)")
    }

    /// `scheme://[userinfo@]host[:port]…`, cut at the first delimiter of each kind.
    private struct Plain {
        let scheme: [UInt8]
        let userinfo: [UInt8]?
        let host: [UInt8]
        let port: Int?

        init?(_ text: String) {
            let bytes = Array(text.utf8)
            guard let colon = bytes.firstIndex(of: 0x3A), bytes[colon...].starts(with: "://".utf8) else { return nil }
            self.scheme = Reference.lowercased(bytes[..<colon])
            let rest = bytes[(colon + 3)...]
            let authority = rest.prefix { !"/?#".utf8.contains($0) }
            let at = authority.lastIndex(of: 0x40)
            self.userinfo = at.map { Array(authority[..<$0]) }
            let place = Array(authority[(at.map { $0 + 1 } ?? authority.startIndex)...])
            // The colons within the brackets of an IPv6 address do not precede a port.
            let end = place.lastIndex(of: 0x5D) ?? place.startIndex
            if let colon = place[end...].lastIndex(of: 0x3A) {
                self.port = Reference.number(place[(colon + 1)...]).map { Int($0) }
                self.host = Reference.lowercased(place[..<colon])
            } else {
                self.port = nil
                self.host = Reference.lowercased(place)
            }
        }
    }
}
