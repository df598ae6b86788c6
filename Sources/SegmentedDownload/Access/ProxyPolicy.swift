import SegmentedDownloadCore

/// The proxies that connections use, and the hosts that are exempt.
public struct ProxyPolicy: Hashable, Sendable {
    /// The proxy for `http` URLs; `nil` for none.
    public var http: Proxy? { didSet { self.problems["http"] = nil } }
    /// The proxy for `https` URLs; `nil` for none.
    public var https: Proxy? { didSet { self.problems["https"] = nil } }
    /// Hosts to connect to directly: a domain with all its subdomains, an address, a network such as `192.168.0.0/16`,
    /// each optionally with `:PORT`, or `*` for all.
    public var exceptions: [String] = []
    /// Why there is no proxy for a scheme, although a variable names one.
    private var problems: [String: DownloadError] = [:]

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
    /// ignored (CVE-2016-5385). A malformed variable makes those requests fail that would need it, with code `usage`.
    public init(environment: [String: String]) {
        let value = { (name: String) in
            environment[name] ?? (name == "http_proxy" ? nil : environment[name.uppercased()])
        }
        for (scheme, name) in [("http", "http_proxy"), ("https", "https_proxy")] {
            // A specific variable that is empty disables the proxy, even if `all_proxy` is set.
            guard let variable = [name, "all_proxy"].first(where: { value($0) != nil }), let text = value(variable),
                !text.isEmpty
            else { continue }
            do throws(DownloadError) {
                let proxy = try Proxy(text)
                if scheme == "http" { self.http = proxy } else { self.https = proxy }
            } catch {
                self.problems[scheme] = DownloadError(
                    .usage, "\(variable): \(error.message)", remedy: .ignoreProxy)
            }
        }
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
        if let http = self.http { policy.http = http.authenticated(user: user, password: password) }
        if let https = self.https { policy.https = https.authenticated(user: user, password: password) }
        return policy
    }

    /// The proxy for an origin; nil for a direct connection.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if a variable that counts for the origin is malformed.
    func proxy(for origin: SourceURL.Origin) throws(DownloadError) -> Proxy? {
        let (proxy, problem) = (origin.scheme == "https" ? self.https : self.http, self.problems[origin.scheme])
        guard proxy != nil || problem != nil, !self.exceptions.contains(where: { Self.covers($0, origin) }) else {
            return nil
        }
        if let problem { throw problem }
        return proxy
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
        if let address = IPAddress.bytes(of: host) {
            let parts = name.split(separator: "/", maxSplits: 1)
            guard let first = parts.first, let network = IPAddress.bytes(of: String(first)),
                network.count == address.count
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
}
