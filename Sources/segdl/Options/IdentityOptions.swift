import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Header fields, credentials and cookies.
struct IdentityOptions: FileOptionGroup {
    @Option(file: "header") var header: [FileEdit] = []
    @Option(file: "user-agent") var userAgent: FileEdit?
    @Option(file: "referer") var referer: FileEdit?
    @Option(file: "user") var user: FileEdit?
    @Option(file: "password") var password: FileEdit?
    @Option(file: "oauth2-bearer") var bearer: FileEdit?

    @Flag(help: "Read names and passwords from ~/.netrc, which must be readable by its owner only.")
    var netrc = false

    @Option(
        help: ArgumentHelp("Read names and passwords from this file instead of ~/.netrc.", valueName: "FILE"),
        completion: .file(), transform: HomePath.file)
    var netrcFile: String?

    @Flag(
        help: """
            Like --netrc, and a file that is missing, malformed or readable by others is no error. With --netrc-file, for \
            this file.
            """)
    var netrcOptional = false

    @Flag(help: "Never send a password itself, but only digests of it, to servers that ask for them.")
    var digest = false

    @Option(file: "cookie") var cookie: [FileEdit] = []

    @Option(
        help: ArgumentHelp("Read cookies from a file in Netscape format. Repeatable.", valueName: "FILE"),
        completion: .file(), transform: HomePath.file)
    var loadCookies: [String] = []

    @Option(
        name: [.long, .customLong("certificate")],
        help: ArgumentHelp("The client certificate, as PEM.", valueName: "FILE"), completion: .file(),
        transform: HomePath.file)
    var cert: String?

    @Option(
        name: [.long, .customLong("private-key")],
        help: ArgumentHelp(
            "The private key of --cert, as PEM without a passphrase. (default: in --cert's file)", valueName: "FILE"),
        completion: .file(), transform: HomePath.file)
    var key: String?

    @Flag(help: "Also send credentials, cookies and header fields to servers that redirects lead to.")
    var locationTrusted = false

    mutating func validate() throws {
        if self.user != nil, self.bearer != nil {
            throw ValidationError("--user and --oauth2-bearer exclude each other")
        }
        if self.password != nil, self.user?.text.contains(":") ?? true {
            throw ValidationError("--password needs a --user without a password")
        }
        if self.key != nil, self.cert == nil { throw ValidationError("--key needs --cert") }
    }

    /// Applies the file options alone, for commands that have no other layers.
    func apply(to request: inout DownloadRequest) throws(DownloadError) {
        var draft = RequestDraft(request: request)
        try OptionLayers(line: self.edits).apply(to: &draft)
        request = draft.request
    }

    /// - Parameter cookieFiles: Files of cookies besides those of `--load-cookies`.
    func apply(to configuration: inout DownloadConfiguration, cookieFiles: [String]) throws(DownloadError) {
        configuration.trust.certificateFile = self.cert.map { FilePath($0) }
        configuration.trust.keyFile = self.key.map { FilePath($0) }
        configuration.trustsRedirects = self.locationTrusted
        configuration.hidesPasswords = self.digest
        if let path = self.netrcFile.map({ FilePath($0) }) {
            configuration.netrc = self.netrcOptional ? Netrc(optional: path) : try Netrc(contentsOf: path)
        } else if self.netrcOptional {
            configuration.netrc = (try? Self.netrcPath).map { Netrc(optional: $0) }
        } else if self.netrc {
            configuration.netrc = try Netrc(contentsOf: try Self.netrcPath)
        }
        for path in self.loadCookies + cookieFiles {
            try configuration.cookies.load(FilePath(path))
        }
    }

    private static var netrcPath: FilePath {
        get throws(DownloadError) {
            guard let home = getenv("HOME").map({ String(cString: $0) }), !home.isEmpty else {
                throw DownloadError(.usage, "--netrc needs the variable HOME; give the file with --netrc-file")
            }
            return FilePath(home).appending(".netrc")
        }
    }
}

extension DownloadRequest {
    /// Removes credentials and fields if a list from a server names a file on another one. They are not meant for
    /// servers that a list chooses (curl's CVE-2021-22923).
    mutating func removeCredentialsAndFields(namedBy list: InputFile) throws(DownloadError) {
        guard list.isRemote else { return }
        let origin = try SourceURL(list.path).origin
        self.foreignSources.formUnion(([self.source] + self.mirrors).filter { $0.origin != origin })
        if self.source.origin != origin { self.removeCredentialsAndFields() }
    }

    /// Removes credentials and fields.
    mutating func removeCredentialsAndFields() {
        self.fields.removeAll { $0.name != .userAgent }
        self.credentials = nil
    }
}
