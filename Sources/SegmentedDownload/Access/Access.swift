import HTTPTypes
import SegmentedDownloadCore

/// What is shown to a source and to where it leads, and how far it may lead.
package struct Access: Sendable {
    /// Browsers stop at 20, too.
    package var redirectsMax = 20
    /// Whether https may lead to http.
    package var allowsDowngrade = false
    /// Whether other origins are shown what the source's own is.
    package var trustsRedirects = false
    package var schemes: Set<String> = ["http", "https"]
    var netrc: Netrc?
    var cookies = CookieJar()

    package init() {}

    init(_ configuration: DownloadConfiguration) {
        self.redirectsMax = configuration.redirectsMax
        self.allowsDowngrade = configuration.allowsDowngrade
        self.trustsRedirects = configuration.trustsRedirects
        self.schemes = configuration.schemes
        self.netrc = configuration.netrc
        self.cookies = configuration.cookies
    }

    /// What a source of a request is shown: what is said of it there, in its URL, or in the netrc file.
    ///
    /// - Parameter fields: the request's own.
    func fields(_ fields: HTTPFields, for source: SourceURL, of request: DownloadRequest) -> HTTPFields {
        // What the user sends along is for the origin he named first.
        let isOwn = source.origin == request.source.origin && self.isNamed(source, of: request)
        var fields = isOwn ? fields : fields.forAnybody
        guard self.isNamed(source, of: request) else { return fields }
        guard fields[.authorization] == nil else { return fields }
        let credentials = source.credentials ?? (isOwn ? request.credentials : nil)
        fields[.authorization] = (credentials ?? self.netrc?.credentials(for: source.origin.host))?.fieldValue
        return fields
    }

    /// Whether a request's source is the user's choice.
    func isNamed(_ source: SourceURL, of request: DownloadRequest) -> Bool {
        !request.foreignSources.contains(source)
    }

    /// - Throws: ``Failure`` with code `policy` where a scheme is not allowed.
    func check(_ url: SourceURL) throws(Failure) {
        guard !self.schemes.contains(url.origin.scheme) else { return }
        throw Failure(.policy, "\(url): \(url.origin.scheme) is not among the schemes allowed by --proto")
    }
}

extension HTTPFields {
    /// Those that say nothing of the user's relation to one origin.
    fileprivate var forAnybody: HTTPFields {
        var fields = HTTPFields()
        fields[.userAgent] = self[.userAgent]
        return fields
    }
}
