import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// What servers are told of the user.
struct IdentityOptions: ParsableArguments {
    @Option(
        name: [.customShort("H", allowingJoined: true), .long],
        help: ArgumentHelp(
            "A field sent to the URL's own server, never to another. Repeatable.", valueName: "NAME: VALUE"))
    var header: [HeaderField] = []

    @Option(
        name: [.customShort("A", allowingJoined: true), .long],
        help: ArgumentHelp("The User-Agent sent, wherever redirects lead.", valueName: "NAME"))
    var userAgent: String?

    @Option(
        name: [.customShort("e", allowingJoined: true), .long],
        help: ArgumentHelp("The Referer sent.", valueName: "URL"))
    var referer: String?

    @Option(
        name: [.customShort("u", allowingJoined: true), .long, .customLong("http-user")],
        help: ArgumentHelp(
            "Name and password for the URL's own server; without a password it is asked for.",
            valueName: "NAME[:PASSWORD]"))
    var user: String?

    @Option(
        name: [.long, .customLong("http-password"), .customLong("http-passwd")],
        help: ArgumentHelp("The password, where --user has the name only.", valueName: "PASSWORD"))
    var password: String?

    @Option(
        name: .customLong("oauth2-bearer"),
        help: ArgumentHelp("A token for the URL's own server.", valueName: "TOKEN"))
    var bearer: String?

    @Flag(help: "Names and passwords by host from ~/.netrc, which only its owner may read.")
    var netrc = false

    @Option(help: ArgumentHelp("The same from another file.", valueName: "FILE"))
    var netrcFile: String?

    @Option(
        name: [.customShort("b", allowingJoined: true), .long],
        help: ArgumentHelp(
            "Cookies for the URL's own server, or a file of them. What servers set in redirects is sent back in any case. Repeatable.",
            valueName: "NAME=VALUE|FILE"))
    var cookie: [String] = []

    @Option(help: ArgumentHelp("A file of cookies in Netscape's form, for the hosts of the URLs.", valueName: "FILE"))
    var loadCookies: [String] = []

    @Option(
        name: [.long, .customLong("certificate")],
        help: ArgumentHelp("A certificate to show to servers that want one, as PEM.", valueName: "FILE"))
    var cert: String?

    @Option(
        name: [.long, .customLong("private-key")],
        help: ArgumentHelp(
            "Its private key, as PEM without a passphrase. (default: in --cert's file)", valueName: "FILE"))
    var key: String?

    @Flag(help: "Send all this also to where redirects lead.")
    var locationTrusted = false

    mutating func validate() throws {
        if self.user?.isEmpty == true { throw ValidationError("--user is empty") }
        if self.user != nil, self.bearer != nil {
            throw ValidationError("--user and --oauth2-bearer are two ways to say who you are: give one")
        }
        if self.password != nil, self.user?.contains(":") ?? true {
            throw ValidationError("--password goes with a --user that has the name only")
        }
        if self.key != nil, self.cert == nil { throw ValidationError("--key goes with --cert") }
        for cookie in self.cookie where cookie.contains("=") {
            guard HeaderField(argument: "Cookie: \(cookie)") != nil else {
                throw ValidationError("--cookie holds a control character")
            }
        }
    }

    /// The fields, in order; an option's own wins over one given by name.
    var fields: [(name: String, value: String)] {
        var fields = self.header.map { (name: $0.name, value: $0.value) }
        let cookies = self.cookie.filter { $0.contains("=") }
        for (name, value) in [
            ("User-Agent", self.userAgent), ("Referer", self.referer),
            ("Cookie", cookies.isEmpty ? nil : cookies.joined(separator: "; ")),
        ] {
            guard let value else { continue }
            fields.removeAll { $0.name.lowercased() == name.lowercased() }
            fields.append((name, value))
        }
        return fields
    }

    func apply(to request: inout DownloadRequest) throws(DownloadError) {
        request.fields = self.fields
        if let bearer = self.bearer { request.credentials = .bearer(token: bearer) }
        guard let user = self.user else { return }
        let parts = user.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        if let password = parts.dropFirst().first ?? self.password {
            request.credentials = .basic(user: parts[0], password: password)
        } else {
            request.credentials = .basic(user: parts[0], password: try Self.passwords.password(of: parts[0]))
        }
    }

    func apply(to configuration: inout DownloadConfiguration) throws(DownloadError) {
        configuration.trust.certificateFile = self.cert
        configuration.trust.keyFile = self.key
        configuration.trustsRedirects = self.locationTrusted
        if let path = self.netrcFile {
            configuration.netrc = try Netrc(contentsOf: path)
        } else if self.netrc {
            configuration.netrc = try Netrc(contentsOf: try Self.netrcPath)
        }
        for path in self.loadCookies + self.cookie.filter({ !$0.contains("=") && !$0.isEmpty }) {
            try configuration.cookies.load(path)
        }
    }

    private static var netrcPath: String {
        get throws(DownloadError) {
            guard let home = getenv("HOME").map({ String(cString: $0) }), !home.isEmpty else {
                throw DownloadError(.usage, "--netrc needs HOME; name the file with --netrc-file")
            }
            return "\(home)/.netrc"
        }
    }

    private static let passwords = PasswordPrompt()
}

extension DownloadRequest {
    /// Leaves out what the user says of himself where a server's list names another one's file: it is not for whom that list names
    /// (curl's CVE-2021-22923).
    mutating func hideIdentity(namedBy list: InputFile) throws(DownloadError) {
        guard list.isRemote else { return }
        let origin = try SourceURL(list.path).origin
        self.foreignSources.formUnion(([self.source] + self.mirrors).filter { $0.origin != origin })
        if self.source.origin != origin { self.hideIdentity() }
    }

    /// Leaves out what the user says of himself.
    mutating func hideIdentity() {
        self.fields.removeAll { $0.name.lowercased() != "user-agent" }
        self.credentials = nil
    }
}
