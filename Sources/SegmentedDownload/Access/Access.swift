import HTTPTypes
import SegmentedDownloadCore

/// The rules for what is sent to a source and to the targets of its redirects, and for which redirects are followed.
package struct Access: Sendable {
    /// 20, as in browsers.
    package var redirectsMax = 20
    /// Whether a redirect may lead from `https` to `http`.
    package var allowsDowngrade = false
    /// Whether fields, credentials and cookies are also sent to other origins that a redirect leads to.
    package var trustsRedirects = false
    package var schemes: Set<String> = ["http", "https"]
    /// Whether passwords are never sent themselves, but only digests of them.
    var hidesPasswords = false
    var netrc: Netrc?
    var cookies = CookieJar()
    /// The addresses that the user gave hosts.
    var addresses: [HostAddress] = []
    /// What the origins refuse that were asked so far.
    let refused = RefusedFields()
    /// How the origins want digests of passwords.
    let logins = DigestLogins()

    package init() {}

    init(_ configuration: DownloadConfiguration) {
        self.redirectsMax = configuration.redirectsMax
        self.allowsDowngrade = configuration.allowsDowngrade
        self.trustsRedirects = configuration.trustsRedirects
        self.schemes = configuration.schemes
        self.hidesPasswords = configuration.hidesPasswords
        self.netrc = configuration.netrc
        self.cookies = configuration.cookies
        self.addresses = configuration.addresses
    }

    /// The way to a source of a request.
    func follower(
        to source: SourceURL, of request: DownloadRequest, over transport: any HTTPTransport
    ) -> RedirectFollower {
        RedirectFollower(
            source: source, fields: self.fields(for: source, of: request),
            credentials: self.credentials(for: source, of: request), access: self, transport: transport,
            isNamed: self.isNamed(source, of: request), allowsPrivateAddresses: request.allowsPrivateAddresses,
            part: request.part)
    }

    /// The fields to send to a source.
    func fields(for source: SourceURL, of request: DownloadRequest) -> HTTPFields {
        self.isOwn(source, of: request) ? request.fields : request.fields.forAnybody
    }

    /// The credentials for a source: those in its URL, else those of the request, else those in the netrc file. None if the request's
    /// fields have some.
    func credentials(for source: SourceURL, of request: DownloadRequest) -> Credentials? {
        guard self.isNamed(source, of: request), self.fields(for: source, of: request)[.authorization] == nil else {
            return nil
        }
        let credentials = source.credentials ?? (self.isOwn(source, of: request) ? request.credentials : nil)
        if case .basic(let user, password: "") = credentials {
            // Only the name was given.
            return self.netrc?.credentials(for: source.origin.host, user: user) ?? credentials
        }
        return credentials ?? self.netrc?.credentials(for: source.origin.host)
    }

    /// The request's fields and credentials are for the origin of the source that the user named first.
    private func isOwn(_ source: SourceURL, of request: DownloadRequest) -> Bool {
        source.origin == request.source.origin && self.isNamed(source, of: request)
    }

    /// The credentials for the target of a redirect: those of the host's own entry in the netrc file, as a central login
    /// needs them. They are sent over TLS only, because anyone on the path can redirect a request without TLS.
    func credentials(forTarget url: SourceURL) -> Credentials? {
        guard url.origin.scheme == "https" else { return nil }
        return self.netrc?.credentials(for: url.origin.host, hasDefault: false)
    }

    /// Whether the user named a source, as opposed to a server's list.
    func isNamed(_ source: SourceURL, of request: DownloadRequest) -> Bool {
        !request.foreignSources.contains(source)
    }

    /// Checks the scheme of a URL.
    ///
    /// - Throws: ``DownloadError`` with code `policy` if the scheme is not allowed.
    func check(_ url: SourceURL) throws(DownloadError) {
        guard !self.schemes.contains(url.origin.scheme) else { return }
        throw DownloadError(
            .policy, "\(url): \(url.origin.scheme) is not among the allowed schemes", remedy: .allowScheme)
    }
}

extension HTTPFields {
    /// The fields that may be sent to any origin: only `User-Agent`.
    fileprivate var forAnybody: HTTPFields {
        var fields = HTTPFields()
        fields[.userAgent] = self[.userAgent]
        return fields
    }
}
