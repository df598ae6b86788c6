import ArgumentParser
import SegmentedDownload

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The options for proxies, addresses, interfaces, TLS and redirects.
struct NetworkOptions: ParsableArguments {
    @Option(
        name: [.long, .customLong("all-proxy")],
        help: ArgumentHelp(
            "The proxy: http://, https://, socks4:// or socks5://; with socks4a:// or socks5h:// the proxy resolves names. (default: http_proxy, https_proxy, all_proxy)",
            valueName: "URL"))
    var proxy: String?

    @Option(
        help: ArgumentHelp(
            "Hosts to connect to without a proxy: names, addresses, networks, or '*' for all. (default: no_proxy)",
            valueName: "LIST"))
    var noproxy: String?

    @Option(help: ArgumentHelp("Name and password for the proxy.", valueName: "NAME:PASSWORD"))
    var proxyUser: String?

    @Option(
        help: ArgumentHelp(
            "Connect to ADDRESS for HOST and PORT instead of resolving HOST. Repeatable.",
            valueName: "HOST:PORT:ADDRESS"))
    var resolve: [String] = []

    @Flag(name: [.customShort("4"), .customLong("ipv4")], help: "Use IPv4 addresses only.")
    var usesIPv4 = false

    @Flag(name: [.customShort("6"), .customLong("ipv6")], help: "Use IPv6 addresses only.")
    var usesIPv6 = false

    @Option(
        name: [.long, .customLong("ca-certificate")],
        help: ArgumentHelp("Trust the authorities in this PEM file instead of the system's.", valueName: "FILE"),
        completion: .file(), transform: HomePath.file)
    var cacert: String?

    @Option(
        name: [.long, .customLong("ca-directory")],
        help: ArgumentHelp(
            "Trust the authorities in a directory of PEM files named by hash (openssl rehash).", valueName: "DIR"),
        completion: .directory, transform: HomePath.directory)
    var capath: String?

    @Flag(name: [.long, .customLong("no-check-certificate")], help: "Do not verify certificates.")
    var insecure = false

    @Option(
        parsing: .unconditional,  // A value such as -http begins with a dash.
        help: ArgumentHelp("The allowed schemes in curl's notation, such as =https or -http.", valueName: "LIST"))
    var proto = SchemeList()

    @Flag(help: "Follow redirects from https to http.")
    var allowDowngrade = false

    @Option(
        help: ArgumentHelp(
            "Connect from this network interface or local address. Repeatable; the first usable one counts.",
            valueName: "NAME|ADDRESS"))
    var interface: [String] = []

    /// What to do if a connection would use a metered interface.
    enum Metered: String, Hashable, CaseIterable, ExpressibleByArgument {
        case pause, allow
    }

    @Option(
        help: ArgumentHelp(
            "For a metered interface (mobile broadband, ppp, bluetooth): allow uses it; pause waits for another interface, and fails after --retry attempts.",
            valueName: "pause|allow"))
    var metered = Metered.allow

    @Option(
        help: ArgumentHelp(
            "Receive, decrypt and write on at most N threads each. (default: half of the processors, at most 8; 1 if there are fewer than 4)",
            valueName: "N"))
    var receivingThreads: Int?

    @Option(help: ArgumentHelp("Follow at most N redirects.", valueName: "N"))
    var maxRedirs = 20

    mutating func validate() throws {
        if self.interface.contains("") { throw ValidationError("--interface is empty") }
        if self.maxRedirs < 0 { throw ValidationError("--max-redirs must be 0 or more") }
        if let count = self.receivingThreads, !DownloadConfiguration.receivingThreadsRange.contains(count) {
            throw ValidationError("--receiving-threads must be from 1 to 1024")
        }
        if self.usesIPv4, self.usesIPv6 { throw ValidationError("-4 and -6 exclude each other") }
        if self.proxyUser?.contains(":") == false { throw ValidationError("--proxy-user must be NAME:PASSWORD") }
    }

    func apply(to configuration: inout DownloadConfiguration) throws(DownloadError) {
        let environment = ProcessInfo.processInfo.environment
        configuration.trust.readAuthorities(environment: environment)
        configuration.trust.authorityFile = self.cacert.map { FilePath($0) }
        configuration.trust.authorityDirectory = self.capath.map { FilePath($0) }
        configuration.trust.verifiesCertificates = !self.insecure
        configuration.allowsDowngrade = self.allowDowngrade
        configuration.redirectsMax = self.maxRedirs
        configuration.receivingThreads = self.receivingThreads
        configuration.schemes = self.proto.schemes
        configuration.proxies = try self.proxies(environment)
        for text in self.resolve { configuration.addresses.append(try HostAddress(text)) }
        if !self.interface.isEmpty { configuration.network.interfaces = self.interface }
        configuration.network.allowsMetered = self.metered == .allow
        configuration.network.family = self.usesIPv4 ? .ipv4 : self.usesIPv6 ? .ipv6 : nil
    }

    private func proxies(_ environment: [String: String]) throws(DownloadError) -> ProxyPolicy {
        // With --noproxy '*' a malformed proxy variable is no error.
        if self.noproxy == "*" { return ProxyPolicy() }
        var policy: ProxyPolicy
        switch self.proxy {
        case "": return ProxyPolicy()
        case let text?:
            policy = ProxyPolicy(try Proxy(text))
            // As in curl, no_proxy applies to --proxy too.
            policy.exceptions = ProxyPolicy.exceptions(inEnvironment: environment)
        case nil: policy = ProxyPolicy(environment: environment)
        }
        if let list = self.noproxy { policy.exceptions = ProxyPolicy.exceptions(in: list) }
        guard let parts = self.proxyUser?.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        else { return policy }
        return policy.authenticated(user: String(parts[0]), password: String(parts[1]))
    }
}
