import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// What servers are sent about the user.
struct IdentityOptions: FileOptionGroup {
    @Option(file: "header") var header: [FileEdit] = []
    @Option(file: "user-agent") var userAgent: FileEdit?
    @Option(file: "referer") var referer: FileEdit?
    @Option(file: "user") var user: FileEdit?
    @Option(file: "password") var password: FileEdit?
    @Option(file: "oauth2-bearer") var bearer: FileEdit?

    @Flag(help: "Names and passwords by host from ~/.netrc, which only its owner may read.")
    var netrc = false

    @Option(help: ArgumentHelp("The same from another file.", valueName: "FILE"))
    var netrcFile: String?

    @Option(file: "cookie") var cookie: [FileEdit] = []

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
        if self.user != nil, self.bearer != nil {
            throw ValidationError("--user and --oauth2-bearer are two ways to authenticate: give one")
        }
        if self.password != nil, self.user?.text.contains(":") ?? true {
            throw ValidationError("--password goes with a --user that has the name only")
        }
        if self.key != nil, self.cert == nil { throw ValidationError("--key goes with --cert") }
    }

    /// Applies the file options alone, for commands that have no other layers.
    func apply(to request: inout DownloadRequest) throws(DownloadError) {
        var draft = RequestDraft(request: request)
        try OptionLayers(line: self.edits).apply(to: &draft)
        request = draft.request
    }

    /// - Parameter cookieFiles: Files of cookies besides those of `--load-cookies`.
    func apply(to configuration: inout DownloadConfiguration, cookieFiles: [String]) throws(DownloadError) {
        configuration.trust.certificateFile = self.cert
        configuration.trust.keyFile = self.key
        configuration.trustsRedirects = self.locationTrusted
        if let path = self.netrcFile {
            configuration.netrc = try Netrc(contentsOf: path)
        } else if self.netrc {
            configuration.netrc = try Netrc(contentsOf: try Self.netrcPath)
        }
        for path in self.loadCookies + cookieFiles {
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
}

extension DownloadRequest {
    /// Removes credentials and fields if a list from a server names a file on another one. They are not meant for servers that a
    /// list chooses (curl's CVE-2021-22923).
    mutating func hideIdentity(namedBy list: InputFile) throws(DownloadError) {
        guard list.isRemote else { return }
        let origin = try SourceURL(list.path).origin
        self.foreignSources.formUnion(([self.source] + self.mirrors).filter { $0.origin != origin })
        if self.source.origin != origin { self.hideIdentity() }
    }

    /// Removes credentials and fields.
    mutating func hideIdentity() {
        self.fields.removeAll { $0.name.lowercased() != "user-agent" }
        self.credentials = nil
    }
}
