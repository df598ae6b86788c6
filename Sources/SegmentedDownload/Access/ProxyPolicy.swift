import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

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
    ///   it is 443 for `https`, else 1080, as in curl.
    /// - Throws: ``DownloadError`` with code `usage` if the text is malformed. The message does not contain the
    ///   password.
    public init(_ text: String) throws(DownloadError) {
        let whole = text.contains("://") ? text : "http://\(text)"
        guard let components = URLComponents(string: whole), let scheme = components.scheme?.lowercased(),
            let host = components.percentEncodedHost?.lowercased(), !host.isEmpty, !host.contains("%"),
            components.query == nil, ["", "/"].contains(components.percentEncodedPath)
        else {
            throw DownloadError(.usage, "the proxy is malformed; write it as http://HOST:PORT")
        }
        switch scheme {
        case "http": self.kind = .http
        case "https": self.kind = .https
        case "socks5": self.kind = .socks5
        case "socks5h": self.kind = .socks5h
        default:
            throw DownloadError(
                .usage, "a proxy's scheme is http, https, socks5 or socks5h, not \(scheme.printable)")
        }
        let port = components.port ?? (self.kind == .https ? 443 : 1080)
        guard (1...65535).contains(port) else { throw DownloadError(.usage, "a proxy's port is from 1 to 65535") }
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        self.port = port
        self.user = components.user
        self.password = components.password
        guard self.user == nil || self.isHTTP else {
            throw DownloadError(.usage, "SOCKS proxies with a user name are not supported")
        }
        try self.credentials?.validate()
    }

    /// Creates a copy with other credentials.
    private init(_ proxy: Proxy, user: String, password: String) {
        (self.kind, self.host, self.port) = (proxy.kind, proxy.host, proxy.port)
        (self.user, self.password) = (user, password)
    }

    /// The same proxy with other credentials. A SOCKS proxy is returned unchanged.
    func authenticated(user: String, password: String) -> Proxy {
        self.isHTTP ? Proxy(self, user: user, password: password) : self
    }

    var isHTTP: Bool { self.kind == .http || self.kind == .https }

    var credentials: Credentials? { self.user.map { .basic(user: $0, password: self.password ?? "") } }

    /// Host and port, without credentials.
    public var description: String { "\(self.host.contains(":") ? "[\(self.host)]" : self.host):\(self.port)" }
}

/// The proxies that connections use, and the hosts that are exempt.
public struct ProxyPolicy: Hashable, Sendable {
    /// The proxy for `http` URLs; `nil` for none.
    public var http: Proxy?
    /// The proxy for `https` URLs; `nil` for none.
    public var https: Proxy?
    /// Hosts to connect to directly: a domain with all its subdomains, an address, a network such as `192.168.0.0/16`,
    /// each optionally with `:PORT`, or `*` for all.
    public var exceptions: [String] = []

    /// Creates a policy without proxies.
    public init() {}

    /// Creates a policy with one proxy for all URLs.
    public init(_ proxy: Proxy) {
        self.http = proxy
        self.https = proxy
    }

    /// Reads the environment variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`.
    ///
    /// All but `http_proxy` may also be in capitals. A web server may set `HTTP_PROXY` from a request's field, so it is
    /// ignored (CVE-2016-5385).
    ///
    /// - Throws: ``DownloadError`` with code `usage` that names the malformed variable.
    public init(environment: [String: String]) throws(DownloadError) {
        let value = { (name: String) in
            environment[name] ?? (name == "http_proxy" ? nil : environment[name.uppercased()])
        }
        let proxy = { (name: String) throws(DownloadError) -> Proxy? in
            // A specific variable that is empty disables the proxy, even if `all_proxy` is set.
            guard let variable = [name, "all_proxy"].first(where: { value($0) != nil }), let text = value(variable),
                !text.isEmpty
            else { return nil }
            do throws(DownloadError) {
                return try Proxy(text)
            } catch {
                throw DownloadError(.usage, "\(variable): \(error.message)", remedy: .ignoreProxy)
            }
        }
        self.http = try proxy("http_proxy")
        self.https = try proxy("https_proxy")
        self.exceptions = Self.exceptions(inEnvironment: environment)
    }

    /// The exempt hosts that `no_proxy` or `NO_PROXY` lists.
    public static func exceptions(inEnvironment environment: [String: String]) -> [String] {
        Self.exceptions(in: environment["no_proxy"] ?? environment["NO_PROXY"] ?? "")
    }

    /// The hosts in a list separated by commas or white space.
    public static func exceptions(in list: String) -> [String] {
        list.split { $0 == "," || $0.isWhitespace }.map(String.init)
    }

    /// The same policy, with other credentials for its proxies.
    public func authenticated(user: String, password: String) -> ProxyPolicy {
        var policy = self
        policy.http = self.http?.authenticated(user: user, password: password)
        policy.https = self.https?.authenticated(user: user, password: password)
        return policy
    }

    func proxy(for origin: SourceURL.Origin) -> Proxy? {
        guard let proxy = origin.scheme == "https" ? self.https : self.http else { return nil }
        return self.exceptions.contains { Self.covers($0, origin) } ? nil : proxy
    }

    private static func covers(_ exception: String, _ origin: SourceURL.Origin) -> Bool {
        guard exception != "*" else { return true }
        let host = Self.bare(origin.host)
        var name = exception.lowercased()
        // A single colon separates the port; several belong to an IPv6 address.
        if let colon = name.lastIndex(of: ":"), let port = Int(name[name.index(after: colon)...]),
            name.hasPrefix("[") ? name[..<colon].hasSuffix("]") : name.firstIndex(of: ":") == colon
        {
            guard port == origin.port else { return false }
            name = String(name[..<colon])
        }
        name = Self.bare(name)
        if let address = Self.bytes(of: host) {
            let parts = name.split(separator: "/", maxSplits: 1)
            guard let first = parts.first, let network = Self.bytes(of: String(first)), network.count == address.count
            else { return false }
            guard parts.count == 2 else { return network == address }
            guard let length = Int(parts[1]), (0...(8 * network.count)).contains(length) else { return false }
            return (0..<length).allSatisfy { bit in
                (network[bit / 8] ^ address[bit / 8]) & (0x80 >> UInt8(bit % 8)) == 0
            }
        }
        let suffix = name.hasPrefix("*.") ? String(name.dropFirst(2)) : String(name.drop { $0 == "." })
        return !suffix.isEmpty && (host == suffix || host.hasSuffix(".\(suffix)"))
    }

    private static func bare(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// The bytes of an IP address, most significant first; `nil` if the text is not one.
    private static func bytes(of text: String) -> [UInt8]? {
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, text, &bytes) == 1 { return bytes }
        }
        return nil
    }
}
