import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An `http` or `https` URL that a file can be fetched from.
///
/// Parsed once, strictly (RFC 3986), and by the parser the HTTP client uses too, so that what was checked is what is
/// connected to. User name and password are kept apart: no description, log or manifest shows them.
public struct SourceURL: Hashable, Sendable, CustomStringConvertible {
    /// Scheme, host and port: what credentials are bound to (RFC 6454).
    package struct Origin: Hashable, Sendable {
        package let scheme: String
        package let host: String
        package let port: Int

        /// Whether it is this machine, as far as its name tells (RFC 6761, section 6.3).
        var isLoopback: Bool {
            self.host == "localhost" || self.host.hasSuffix(".localhost") || self.host.hasPrefix("127.")
                || self.host == "[::1]" || self.host == "::1"
        }

        var text: String { "\(self.scheme)://\(self.host):\(self.port)" }
    }

    /// The URL without user name, password and fragment, as it is requested and stored.
    public let string: String
    package let origin: Origin
    /// The percent-encoded path, for naming the file.
    package let path: String
    /// User and password, percent-decoded, if the URL has them.
    package let credentials: Credentials?
    private let query: String?

    /// - Throws: ``DownloadError`` with code `usage`, saying what is wrong with the text.
    public init(_ text: String) throws(DownloadError) {
        guard !text.unicodeScalars.contains(where: { $0.value <= 0x20 || $0.value == 0x7F }) else {
            throw Self.malformed(text, "it holds a space or a control character; write %20 for a space")
        }
        guard let url = URL(string: text, encodingInvalidCharacters: false) else {
            throw Self.malformed(text, "it is not a URL")
        }
        try self.init(url, text: text)
    }

    private init(_ url: URL, text: String) throws(DownloadError) {
        guard let scheme = url.scheme?.lowercased() else {
            throw Self.malformed(text, "it has no scheme; write http:// or https:// before it")
        }
        guard scheme == "http" || scheme == "https" else {
            throw DownloadError(.policy, "the URL's scheme is \(scheme.printable); only http and https are fetched")
        }
        guard var components = URLComponents(url: url, resolvingAgainstBaseURL: true),
            let host = components.percentEncodedHost?.lowercased(), !host.isEmpty
        else { throw Self.malformed(text, "it has no host") }
        guard !host.contains("%") else { throw Self.malformed(text, "its host is percent-encoded") }
        guard Self.isUnambiguous(host) else {
            throw Self.malformed(text, "its host looks like an IPv4 address but is not four decimal numbers")
        }
        let port = components.port ?? (scheme == "https" ? 443 : 80)
        guard (1...65535).contains(port) else { throw Self.malformed(text, "its port is not from 1 to 65535") }
        let (user, password) = (components.user, components.password)
        // Left out, they would be missed: the server is asked without them.
        guard components.percentEncodedUser == nil || user != nil,
            components.percentEncodedPassword == nil || password != nil
        else { throw Self.malformed(text, "its user name or password, percent-decoded, is not UTF-8") }
        self.credentials = user.map { .basic(user: $0, password: password ?? "") }
        components.user = nil
        components.password = nil
        components.fragment = nil
        if components.percentEncodedPath.isEmpty {
            components.percentEncodedPath = "/"
        }
        guard let string = components.string else { throw Self.malformed(text, "it is not a URL") }
        // The HTTP client would ask for "/" instead, and another file come under this one's name.
        guard URL(string: string)?.path.isEmpty == false else {
            throw Self.malformed(text, "its path, percent-decoded, is not UTF-8, which cannot be asked for yet")
        }
        self.string = string
        self.origin = Origin(scheme: scheme, host: host, port: port)
        self.path = components.percentEncodedPath
        self.query = components.percentEncodedQuery
    }

    /// Whether a host is a name or an address in its usual form. The system also reads `0177.0.0.1`, `0x7f.1` and `2130706433`
    /// as addresses, each program in its own way: what is checked must be what is connected to (curl's CVE-2022-27780).
    private static func isUnambiguous(_ host: String) -> Bool {
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard let last = labels.last(where: { !$0.isEmpty }) else { return true }
        let isNumber = last.allSatisfy { ("0"..."9").contains($0) } || last.hasPrefix("0x")
        guard isNumber else { return true }
        return labels.count == 4 && labels.allSatisfy { label in UInt8(label).map { "\($0)" == label } ?? false }
    }

    /// The URL a `Location` field leads to from here (RFC 9110 §10.2.2).
    package func resolve(location: String) throws(DownloadError) -> SourceURL {
        guard !location.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw DownloadError(.protocol, "\(self.host) redirects to a URL with control characters")
        }
        guard let base = URL(string: self.string),
            let target = URL(string: location, relativeTo: base)?.absoluteURL
        else {
            let shown = Self.withoutPassword(location)
            throw DownloadError(.protocol, "\(self.host) redirects to \"\(shown)\", which is no URL")
        }
        do throws(DownloadError) {
            return try SourceURL(target, text: location)
        } catch  where error.code == .usage {
            throw DownloadError(.protocol, "\(self.host) redirects badly: \(error.message)")
        }
    }

    /// Path and query, as they are asked for (RFC 9112 §3.2.1).
    var target: String { self.path + (self.query.map { "?\($0)" } ?? "") }

    /// What names the resource: the URL without the query items that only sign it or limit its time.
    package var resourceText: String {
        let query = self.query.map { "?" + QuerySignature.removed(from: $0) } ?? ""
        return self.origin.text + self.path + query
    }

    /// The host as it is named in messages, with its port where that is not the scheme's own.
    package var host: String {
        let isDefault = self.origin.port == (self.origin.scheme == "https" ? 443 : 80)
        return isDefault ? self.origin.host : "\(self.origin.host):\(self.origin.port)"
    }

    /// The URL as it may be shown: without credentials, and without the query, which is often a signature.
    public var description: String {
        guard self.query != nil, let mark = self.string.firstIndex(of: "?") else {
            return self.string.printable(limit: 500)
        }
        return "\(String(self.string[..<mark]).printable(limit: 500))?…"
    }

    private static func malformed(_ text: String, _ why: String) -> DownloadError {
        DownloadError(.usage, "\"\(Self.withoutPassword(text))\" cannot be fetched: \(why)")
    }

    /// What could not be parsed may hold a password anywhere before its last @: that is not shown.
    private static func withoutPassword(_ text: String) -> String {
        // Scalars: an @ with an accent on it is another `Character`.
        let scalars = text.unicodeScalars
        let start = scalars.lastIndex(of: "@").map { scalars.index(after: $0) } ?? scalars.startIndex
        return String(scalars[start...]).printable
    }
}
