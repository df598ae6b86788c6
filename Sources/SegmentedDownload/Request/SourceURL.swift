import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An `http` or `https` URL that a file can be fetched from.
///
/// Characters that may not occur in a URL are encoded. Then it is parsed once, strictly (RFC 3986), with the parser that the HTTP
/// client uses, so that the host that was checked is the host that is connected to; that parser also translates internationalized
/// hosts (UTS 46). User name and password are stored separately: no description, log or manifest contains them.
public struct SourceURL: Hashable, Sendable, CustomStringConvertible {
    /// Scheme, host and port, which credentials are bound to (RFC 6454).
    package struct Origin: Hashable, Sendable {
        package let scheme: String
        package let host: String
        package let port: Int

        /// Whether the host's name or address is a loopback one (RFC 6761, section 6.3). Names are not resolved.
        var isLoopback: Bool {
            if self.host == "localhost" || self.host.hasSuffix(".localhost") { return true }
            guard let bytes = IPAddress.bytes(of: self.host) else { return false }
            return bytes.count == 4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1]
        }

        var text: String { "\(self.scheme)://\(self.host):\(self.port)" }
    }

    /// The URL as it is requested and stored, without user name, password and fragment.
    public let string: String
    package let origin: Origin
    /// The percent-encoded path, from which the file's name is derived.
    package let path: String
    /// The URL's user name and password, percent-decoded; `nil` if there is no user name.
    package private(set) var credentials: Credentials?
    /// Whether the path, percent-decoded, is not UTF-8.
    let hasOtherEncoding: Bool
    private let query: String?

    /// Parses a URL.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the URL is malformed, `policy` if its scheme is neither `http`
    ///   nor `https`.
    public init(_ text: String) throws(DownloadError) {
        if let plain = Self(plain: text) {
            self = plain
            return
        }
        guard !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw Self.malformed(text, "it holds a control character")
        }
        // What the system replaced in an argument would be requested instead.
        guard !text.unicodeScalars.contains("\u{FFFD}") else {
            throw Self.malformed(text, "it is not UTF-8; write each such byte as %XX")
        }
        guard let url = URL(string: URLText.encoded(text)) else { throw Self.malformed(text, "it is not a URL") }
        try self.init(url, text: text)
    }

    /// Parses a URL of the most common form: scheme, host, perhaps a port, and a path, of which nothing has to be
    /// decoded, removed or put into lower case. Lists have many, and Foundation's parser takes several times as long.
    ///
    /// Returns nil for any other form.
    init?(plain text: String) {
        let bytes = Array(text.utf8)
        guard let scheme = ["http", "https"].first(where: { bytes.starts(with: "\($0)://".utf8) }) else { return nil }
        let authority = bytes.dropFirst(scheme.utf8.count + 3).prefix { $0 != UInt8(ascii: "/") }
        let path = bytes[authority.endIndex...]
        let host = authority.prefix { $0 != UInt8(ascii: ":") }
        guard !path.isEmpty, path.allSatisfy({ $0.isUnreserved || $0 == UInt8(ascii: "/") }),
            !zip(path, path.dropFirst()).contains(where: { $0 == UInt8(ascii: "/") && ("/.".utf8.contains($1)) }),
            !host.isEmpty, host.allSatisfy({ $0.isPlainHost })
        else { return nil }
        let hostText = String(decoding: host, as: UTF8.self)
        // The parser may translate an internationalized name, which has two hyphens in a row.
        guard !zip(host, host.dropFirst()).contains(where: { $0 == $1 && $1 == UInt8(ascii: "-") }),
            Self.isUnambiguous(hostText)
        else { return nil }
        var port = scheme == "https" ? 443 : 80
        if host.endIndex < authority.endIndex {
            let digits = String(decoding: authority[(host.endIndex + 1)...], as: UTF8.self)
            guard let number = UInt16(digits), number > 0, "\(number)" == digits else { return nil }
            port = Int(number)
        }
        self.string = text
        self.origin = Origin(scheme: scheme, host: hostText, port: port)
        self.path = String(decoding: path, as: UTF8.self)
        self.hasOtherEncoding = false
        self.query = nil
    }

    /// Whether digits follow the host.
    private static func hasPort(_ components: URLComponents) -> Bool {
        guard let string = components.string, let start = string.firstRange(of: "//")?.upperBound else { return false }
        let authority = string[start...].prefix { !"/?#".contains($0) }
        return authority.last?.isNumber == true && authority.last { ":]@".contains($0) } == ":"
    }

    private init(_ url: URL, text: String) throws(DownloadError) {
        guard let scheme = url.scheme?.lowercased() else {
            throw Self.malformed(text, "it has no scheme; write http:// or https:// before it")
        }
        guard scheme == "http" || scheme == "https" else {
            // `localhost:8080/file` parses as a URL whose scheme is the host.
            if text.dropFirst(scheme.utf8.count + 1).first?.isNumber == true {
                throw Self.malformed(text, "it has no scheme; write http:// or https:// before it")
            }
            throw DownloadError(.policy, "the URL's scheme is \(scheme.printable); only http and https are fetched")
        }
        guard var components = URLComponents(url: url, resolvingAgainstBaseURL: true),
            // The components would have the host percent-encoded.
            var host = url.host?.lowercased(), !host.isEmpty
        else { throw Self.malformed(text, "it has no host") }
        if let literal = components.percentEncodedHost, literal.hasPrefix("[") {
            guard IPAddress.bytes(of: host)?.count == 16 else {
                throw Self.malformed(text, "what is in brackets is not an IPv6 address")
            }
            host = "[\(host)]"
        } else if !host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"%/?#\\@<>^`{|}:[]".utf8.contains($0) }) {
            throw Self.malformed(text, "its host has characters that no host has")
        }
        guard Self.isUnambiguous(host) else {
            throw Self.malformed(text, "its host looks like an IPv4 address but is not four decimal numbers")
        }
        let port = components.port ?? (scheme == "https" ? 443 : 80)
        // The parser has no port for digits that are no `Int`.
        guard (1...65535).contains(port), components.port != nil || !Self.hasPort(components) else {
            throw Self.malformed(text, "its port is not from 1 to 65535")
        }
        let (user, password) = (components.user, components.password)
        // Otherwise the request would be sent without the credentials.
        guard components.percentEncodedUser == nil || user != nil,
            components.percentEncodedPassword == nil || password != nil
        else { throw Self.malformed(text, "its user name or password, percent-decoded, is not UTF-8") }
        self.credentials = user.map { .basic(user: $0, password: password ?? "") }
        if components.scheme != scheme { components.scheme = scheme }
        components.user = nil
        components.password = nil
        components.fragment = nil
        let path = URLText.withoutDotSegments(components.percentEncodedPath)
        components.percentEncodedPath = path.isEmpty ? "/" : path
        guard let string = components.string, string.utf8.allSatisfy({ $0 < 0x80 }) else {
            throw Self.malformed(text, "it is not a URL")
        }
        self.hasOtherEncoding =
            path.utf8.contains(UInt8(ascii: "%")) && URL(string: string)?.path.isEmpty == true
        self.string = string
        self.origin = Origin(scheme: scheme, host: host, port: port)
        self.path = components.percentEncodedPath
        self.query = components.percentEncodedQuery
    }

    /// Whether the host is a name or an address in its canonical form.
    ///
    /// Programs differ in how they read `0177.0.0.1`, `0x7f.1` and `2130706433`. The host that is checked must be the
    /// host that is connected to (curl's CVE-2022-27780).
    private static func isUnambiguous(_ host: String) -> Bool {
        // A number begins with a digit. This decides most hosts.
        let end = host.utf8.reversed().prefix { $0 != UInt8(ascii: ".") }
        if let first = end.last, !(UInt8(ascii: "0")...UInt8(ascii: "9") ~= first) { return true }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard let last = labels.last(where: { !$0.isEmpty }) else { return true }
        let isNumber = last.allSatisfy { ("0"..."9").contains($0) } || last.hasPrefix("0x")
        guard isNumber else { return true }
        return labels.count == 4 && labels.allSatisfy { label in UInt8(label).map { "\($0)" == label } ?? false }
    }

    /// The same URL with this user name and password.
    package func with(_ credentials: Credentials) -> SourceURL {
        var source = self
        source.credentials = credentials
        return source
    }

    /// Resolves a `Location` field against this URL (RFC 9110, section 10.2.2).
    package func resolve(location: String) throws(DownloadError) -> SourceURL {
        guard !location.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw DownloadError(.protocol, "\(self.host) redirects to a URL with control characters")
        }
        guard let base = URL(string: self.string),
            let target = URL(string: URLText.encoded(location), relativeTo: base)?.absoluteURL
        else {
            let shown = Self.withoutSecrets(location)
            throw DownloadError(.protocol, "\(self.host) redirects to \"\(shown)\", which is not a valid URL")
        }
        do throws(DownloadError) {
            return try SourceURL(target, text: location)
        } catch  where error.code == .usage {
            throw DownloadError(.protocol, "\(self.host) redirects to an invalid URL: \(error.message)")
        }
    }

    /// Path and query, the origin-form of the request target (RFC 9112, section 3.2.1).
    var target: String { self.path + (self.query.map { "?\($0)" } ?? "") }

    /// The text that identifies the resource: the URL without query items that only sign it or limit its validity.
    package var resourceText: String {
        let query = self.query.map { "?" + QuerySignature.removed(from: $0) } ?? ""
        return self.origin.text + self.path + query
    }

    /// The host for messages, with the port unless it is the scheme's default.
    package var host: String {
        let isDefault = self.origin.port == (self.origin.scheme == "https" ? 443 : 80)
        return isDefault ? self.origin.host : "\(self.origin.host):\(self.origin.port)"
    }

    /// The URL for display, without credentials and without the query, which is often a signature.
    public var description: String {
        guard self.query != nil, let mark = self.string.firstIndex(of: "?") else {
            return self.string.printable(limit: 500)
        }
        return "\(String(self.string[..<mark]).printable(limit: 500))?…"
    }

    private static func malformed(_ text: String, _ why: String) -> DownloadError {
        DownloadError(.usage, "\"\(Self.withoutSecrets(text))\" cannot be fetched: \(why)")
    }

    /// What can be shown of a text that may not be a URL: what is after the last @, because a password may be anywhere before
    /// it, and before the first ? or #, because a query may be anywhere after it.
    package static func withoutSecrets(_ text: String) -> String {
        // Unicode scalars, because an @ with a combining accent is another `Character`.
        let scalars = text.unicodeScalars
        let start = scalars.lastIndex(of: "@").map { scalars.index(after: $0) } ?? scalars.startIndex
        guard let mark = scalars.firstIndex(where: { $0 == "?" || $0 == "#" }) else {
            return String(scalars[start...]).printable
        }
        // The @ is one of the query, or the mark is one of the password.
        guard start <= mark else { return "…" }
        return "\(String(scalars[start..<mark]).printable)\(scalars[mark])…"
    }
}

extension UInt8 {
    /// Whether it is a character of a host name, in lower case.
    fileprivate var isPlainHost: Bool {
        self.isUnreserved && self != UInt8(ascii: "_") && self != UInt8(ascii: "~")
            && !(UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self)
    }
}
