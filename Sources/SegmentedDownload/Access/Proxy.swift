import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A proxy server.
public struct Proxy: Hashable, Sendable, CustomStringConvertible {
    /// The protocol spoken with the proxy.
    enum Kind: Hashable {
        /// HTTP. `http` URLs are requested in absolute form, others through `CONNECT` (RFC 9110, section 9.3.6).
        case http
        /// The same over TLS.
        case https
        /// SOCKS 4 with host names resolved locally.
        case socks4
        /// SOCKS 4 with host names resolved by the proxy.
        case socks4a
        /// SOCKS 5 (RFC 1928) with host names resolved locally.
        case socks5
        /// SOCKS 5 with host names resolved by the proxy.
        case socks5h
    }

    let kind: Kind
    let host: String
    let port: Int
    let user: String?
    let password: String?

    /// Parses a proxy URL.
    ///
    /// - Parameter text: A URL such as `http://user:password@proxy:3128`. Without a scheme it is `http`. Without a port
    ///   it is 443 for `https`, else 1080, and a path is ignored, as in curl. `socks` is `socks5h`, as desktops mean it.
    /// - Throws: ``DownloadError`` with code `usage` if the text is malformed. The message does not contain the
    ///   password.
    public init(_ text: String) throws(DownloadError) {
        let whole = text.contains("://") ? text : "http://\(text)"
        guard let components = URLComponents(string: whole), let scheme = components.scheme?.lowercased(),
            let host = components.percentEncodedHost?.lowercased(), !host.isEmpty, !host.contains("%"),
            components.query == nil
        else {
            throw DownloadError(.usage, "the proxy is malformed; write it as http://HOST:PORT")
        }
        switch scheme {
        case "http": self.kind = .http
        case "https": self.kind = .https
        case "socks4": self.kind = .socks4
        case "socks4a": self.kind = .socks4a
        case "socks5": self.kind = .socks5
        case "socks5h", "socks": self.kind = .socks5h
        default:
            throw DownloadError(
                .usage,
                "a proxy's scheme is http, https, socks4, socks4a, socks5 or socks5h, not \(scheme.printable)")
        }
        let port = components.port ?? (self.kind == .https ? 443 : 1080)
        guard (1...65535).contains(port) else { throw DownloadError(.usage, "a proxy's port is from 1 to 65535") }
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        self.port = port
        self.user = components.user
        self.password = components.password
        try self.validate()
    }

    /// Creates a copy with other credentials.
    private init(_ proxy: Proxy, user: String, password: String) {
        (self.kind, self.host, self.port) = (proxy.kind, proxy.host, proxy.port)
        (self.user, self.password) = (user, password)
    }

    /// The same proxy with other credentials.
    func authenticated(user: String, password: String) -> Proxy { Proxy(self, user: user, password: password) }

    /// Checks that the credentials can be sent.
    private func validate() throws(DownloadError) {
        switch self.kind {
        case .http, .https: try self.credentials?.validate()
        case .socks5, .socks5h:
            // Each has its length in one byte (RFC 1929).
            guard [self.user, self.password].allSatisfy({ ($0?.utf8.count ?? 0) <= 255 }) else {
                throw DownloadError(.usage, "name and password of a SOCKS proxy have at most 255 bytes each")
            }
        case .socks4, .socks4a:
            guard self.user?.utf8.contains(0) != true else {
                throw DownloadError(.usage, "the name for a SOCKS 4 proxy has no zero byte")
            }
        }
    }

    var isHTTP: Bool { self.kind == .http || self.kind == .https }

    var credentials: Credentials? { self.user.map { .basic(user: $0, password: self.password ?? "") } }

    /// The value of `Proxy-Authorization`: the answer to the proxy's challenge if it has made one.
    func authorization(_ login: DigestLogin?, method: String, target: String) -> String? {
        guard let user else { return nil }
        return login?.answer(user: user, password: self.password ?? "", method: method, target: target)
            ?? self.credentials?.fieldValue
    }

    /// What its logins are stored under.
    var loginName: String { "proxy \(self.user ?? "")@\(self)" }

    /// Host and port, without credentials.
    public var description: String { "\(self.host.contains(":") ? "[\(self.host)]" : self.host):\(self.port)" }
}
