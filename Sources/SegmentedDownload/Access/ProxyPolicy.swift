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

/// A server that connections go through.
public struct Proxy: Hashable, Sendable, CustomStringConvertible {
    /// What is spoken with it.
    enum Kind: Hashable {
        /// HTTP: `http` URLs are asked for whole, for others it is asked to connect (RFC 9110 §9.3.6).
        case http
        /// The same over TLS.
        case https
        /// SOCKS 5 (RFC 1928); names are looked up here.
        case socks5
        /// SOCKS 5; names are looked up there.
        case socks5h
    }

    let kind: Kind
    let host: String
    let port: Int
    let user: String?
    let password: String?

    /// - Parameter text: such as `http://user:password@proxy:3128`; without a scheme it is `http`, without a port 1080, as with
    ///   curl.
    /// - Throws: ``DownloadError`` with code `usage`, without the text's secrets.
    public init(_ text: String) throws(DownloadError) {
        let whole = text.contains("://") ? text : "http://\(text)"
        guard let components = URLComponents(string: whole), let scheme = components.scheme?.lowercased(),
            let host = components.percentEncodedHost?.lowercased(), !host.isEmpty, !host.contains("%"),
            components.query == nil, ["", "/"].contains(components.percentEncodedPath)
        else {
            throw DownloadError(.usage, "a proxy is written as http://HOST:PORT, and what was given is not")
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
            throw DownloadError(.usage, "a SOCKS proxy is used without a user name; this one is given one")
        }
        try self.credentials?.validate()
    }

    /// - Parameters:
    ///   - user: takes the place of the URL's.
    private init(_ proxy: Proxy, user: String, password: String) {
        (self.kind, self.host, self.port) = (proxy.kind, proxy.host, proxy.port)
        (self.user, self.password) = (user, password)
    }

    /// The same one, with other credentials; a SOCKS proxy is asked without any.
    func authenticated(user: String, password: String) -> Proxy {
        self.isHTTP ? Proxy(self, user: user, password: password) : self
    }

    var isHTTP: Bool { self.kind == .http || self.kind == .https }

    var credentials: Credentials? { self.user.map { .basic(user: $0, password: self.password ?? "") } }

    /// Without credentials.
    public var description: String { "\(self.host.contains(":") ? "[\(self.host)]" : self.host):\(self.port)" }
}

/// Which connections go through a proxy.
public struct ProxyPolicy: Hashable, Sendable {
    /// For `http` URLs; absent for none.
    public var http: Proxy?
    /// For `https` URLs; absent for none.
    public var https: Proxy?
    /// Hosts that are asked without one: names with all below them, addresses, `192.168.0.0/16`, any of them with `:PORT`, or `*` for
    /// all.
    public var exceptions: [String] = []

    /// None.
    public init() {}

    /// One for all.
    public init(_ proxy: Proxy) {
        self.http = proxy
        self.https = proxy
    }

    /// What the environment says: `http_proxy` (only so, for a server may set `HTTP_PROXY`, CVE-2016-5385), `https_proxy`, `all_proxy`
    /// and `no_proxy`, these also in capitals.
    ///
    /// - Throws: ``DownloadError`` with code `usage` naming the variable that makes no sense.
    public init(environment: [String: String]) throws(DownloadError) {
        let value = { (name: String) in
            environment[name] ?? (name == "http_proxy" ? nil : environment[name.uppercased()])
        }
        let proxy = { (name: String) throws(DownloadError) -> Proxy? in
            // One that is there and empty says that there is none, whatever is said of all.
            guard let variable = [name, "all_proxy"].first(where: { value($0) != nil }), let text = value(variable),
                !text.isEmpty
            else { return nil }
            do throws(DownloadError) {
                return try Proxy(text)
            } catch {
                throw DownloadError(.usage, "\(variable): \(error.message)", hint: "Go without it by --noproxy '*'")
            }
        }
        self.http = try proxy("http_proxy")
        self.https = try proxy("https_proxy")
        self.exceptions = Self.exceptions(inEnvironment: environment)
    }

    /// The hosts that the environment excepts: `no_proxy`, or `NO_PROXY`.
    public static func exceptions(inEnvironment environment: [String: String]) -> [String] {
        Self.exceptions(in: environment["no_proxy"] ?? environment["NO_PROXY"] ?? "")
    }

    /// The hosts of a list, between commas or blanks.
    public static func exceptions(in list: String) -> [String] {
        list.split { $0 == "," || $0.isWhitespace }.map(String.init)
    }

    /// The same, whose proxies are shown other credentials.
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
        // A colon ends a name or an IPv4 address, and is within an IPv6 one.
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

    /// An address's bytes, most significant first.
    private static func bytes(of text: String) -> [UInt8]? {
        for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
            var bytes = [UInt8](repeating: 0, count: count)
            if inet_pton(family, text, &bytes) == 1 { return bytes }
        }
        return nil
    }
}
