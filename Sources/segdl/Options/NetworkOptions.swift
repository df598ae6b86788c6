import ArgumentParser
import SegmentedDownload

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// How servers are reached, and which of them are trusted.
struct NetworkOptions: ParsableArguments {
    @Option(
        name: [.long, .customLong("all-proxy")],
        help: ArgumentHelp(
            "Go through a proxy: http://, https://, socks5:// or socks5h://, which looks names up there. (default: http_proxy, https_proxy, all_proxy)",
            valueName: "URL"))
    var proxy: String?

    @Option(
        help: ArgumentHelp(
            "Hosts that are asked without a proxy: names, addresses, networks, or '*' for all. (default: no_proxy)",
            valueName: "LIST"))
    var noproxy: String?

    @Option(help: ArgumentHelp("Name and password for the proxy.", valueName: "NAME:PASSWORD"))
    var proxyUser: String?

    @Option(
        help: ArgumentHelp(
            "Where a host is to be found, whatever name servers say. Repeatable.", valueName: "HOST:PORT:ADDRESS"))
    var resolve: [String] = []

    @Flag(name: [.customShort("4"), .customLong("ipv4")], help: "Use IPv4 addresses only.")
    var usesIPv4 = false

    @Flag(name: [.customShort("6"), .customLong("ipv6")], help: "Use IPv6 addresses only.")
    var usesIPv6 = false

    @Option(
        name: [.long, .customLong("ca-certificate")],
        help: ArgumentHelp("The authorities to trust instead of the system's, as PEM.", valueName: "FILE"))
    var cacert: String?

    @Option(
        name: [.long, .customLong("ca-directory")],
        help: ArgumentHelp("The same, a directory of such files named by hash (openssl rehash).", valueName: "DIR"))
    var capath: String?

    @Flag(name: [.long, .customLong("no-check-certificate")], help: "Do not check certificates.")
    var insecure = false

    @Option(
        parsing: .unconditional,  // A scheme is forbidden by a sign that options begin with, too.
        help: ArgumentHelp("The schemes allowed, such as =https or -http: as curl has it.", valueName: "LIST"))
    var proto = SchemeList()

    @Flag(help: "Let a redirect lead from https to http.")
    var allowDowngrade = false

    @Option(
        help: ArgumentHelp(
            "The network interface that connections begin at, by name or address; the next one where it has no address. Repeatable.",
            valueName: "NAME|ADDRESS"))
    var interface: [String] = []

    /// What to do where a connection would go over an interface whose bytes cost money.
    enum Metered: String, Hashable, CaseIterable, ExpressibleByArgument {
        case pause, allow
    }

    @Option(
        help: ArgumentHelp(
            "Where bytes cost money (mobile broadband, ppp, bluetooth): pause waits for another network, as for one that is down.",
            valueName: "pause|allow"))
    var metered = Metered.allow

    @Option(help: ArgumentHelp("Redirects followed.", valueName: "N"))
    var maxRedirs = 20

    mutating func validate() throws {
        if self.interface.contains("") { throw ValidationError("--interface is empty") }
        if self.maxRedirs < 0 { throw ValidationError("--max-redirs is at least 0") }
        if self.usesIPv4, self.usesIPv6 { throw ValidationError("-4 and -6 exclude each other") }
        if self.proxyUser?.contains(":") == false { throw ValidationError("--proxy-user is NAME:PASSWORD") }
    }

    func apply(to configuration: inout DownloadConfiguration) throws(DownloadError) {
        configuration.trust.authorityFile = self.cacert
        configuration.trust.authorityDirectory = self.capath
        configuration.trust.verifiesCertificates = !self.insecure
        configuration.allowsDowngrade = self.allowDowngrade
        configuration.redirectsMax = self.maxRedirs
        configuration.schemes = self.proto.schemes
        configuration.proxies = try self.proxies
        for text in self.resolve { configuration.addresses.append(try HostAddress(text)) }
        if !self.interface.isEmpty { configuration.network.interfaces = self.interface }
        configuration.network.allowsMetered = self.metered == .allow
        configuration.network.family = self.usesIPv4 ? .ipv4 : self.usesIPv6 ? .ipv6 : nil
    }

    private var proxies: ProxyPolicy {
        get throws(DownloadError) {
            // What the user excepts from the environment's proxies may be just the one that makes no sense.
            if self.noproxy == "*" { return ProxyPolicy() }
            let environment = ProcessInfo.processInfo.environment
            var policy: ProxyPolicy
            switch self.proxy {
            case "": return ProxyPolicy()
            case let text?:
                policy = ProxyPolicy(try Proxy(text))
                // As with curl: what the environment excepts holds for every proxy.
                policy.exceptions = ProxyPolicy.exceptions(inEnvironment: environment)
            case nil: policy = try ProxyPolicy(environment: environment)
            }
            if let list = self.noproxy { policy.exceptions = ProxyPolicy.exceptions(in: list) }
            guard let parts = self.proxyUser?.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            else { return policy }
            return policy.authenticated(user: String(parts[0]), password: String(parts[1]))
        }
    }
}
