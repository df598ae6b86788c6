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
    var netrc: Netrc?
    var cookies = CookieJar()
    /// The addresses that the user gave hosts.
    var addresses: [HostAddress] = []
    /// What the origins refuse that were asked so far.
    let refused = RefusedFields()

    package init() {}

    init(_ configuration: DownloadConfiguration) {
        self.redirectsMax = configuration.redirectsMax
        self.allowsDowngrade = configuration.allowsDowngrade
        self.trustsRedirects = configuration.trustsRedirects
        self.schemes = configuration.schemes
        self.netrc = configuration.netrc
        self.cookies = configuration.cookies
        self.addresses = configuration.addresses
    }

    /// The fields to send to a source, with its credentials: those in the source's URL, else those of the request, else
    /// those in the netrc file.
    func fields(for source: SourceURL, of request: DownloadRequest) -> HTTPFields {
        // The request's fields are for the origin of the source that the user named first.
        let isOwn = source.origin == request.source.origin && self.isNamed(source, of: request)
        var fields = isOwn ? request.fields : request.fields.forAnybody
        guard self.isNamed(source, of: request) else { return fields }
        guard fields[.authorization] == nil else { return fields }
        var credentials = source.credentials ?? (isOwn ? request.credentials : nil)
        if case .basic(let user, password: "") = credentials {
            // Only the name was given.
            credentials = self.netrc?.credentials(for: source.origin.host, user: user) ?? credentials
        }
        fields[.authorization] = (credentials ?? self.netrc?.credentials(for: source.origin.host))?.fieldValue
        return fields
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
