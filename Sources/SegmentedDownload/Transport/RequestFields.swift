import HTTPTypes
import SegmentedDownloadCore

/// The fields that a source and the targets of its redirects are sent.
///
/// Fields, credentials and cookies of the user are sent only to the source's own origin (RFC 9110, section 15.4; curl's
/// CVE-2022-27774 shows why the port counts). Another host gets the credentials of its own entry in the netrc file.
struct RequestFields: Sendable {
    let source: SourceURL
    /// The user's fields.
    let given: HTTPFields
    /// The user's credentials.
    let credentials: Credentials?
    let access: Access
    /// Whether the user named the source.
    let isNamed: Bool
    /// The part of the resource that ranges count from; nil for the whole.
    let part: ResourcePart?

    /// Whether the user's fields, cookies and client certificate may be sent to a URL.
    func sendsIdentity(to url: SourceURL) -> Bool {
        self.isNamed && (url.origin == self.source.origin || self.access.trustsRedirects)
    }

    /// The fields of one request.
    ///
    /// - Parameters:
    ///   - login: The answer to the challenge of a refusal just now; nil for the last one of the server.
    ///   - isFirst: Whether no redirect led to it, which may have set a cookie for it.
    func fields(for url: SourceURL, _ range: RangeRequest, login: DigestLogin?, isFirst: Bool = true) -> HTTPFields {
        let sendsIdentity = self.sendsIdentity(to: url)
        var fields = sendsIdentity ? self.given : HTTPFields()
        if fields[.authorization] == nil { fields[.authorization] = self.authorization(for: url, login) }
        let cookies = self.access.cookies.fieldValue(
            for: url, isNamed: sendsIdentity, fromFilesOnly: range.leavesSession && isFirst)
        if let cookies {
            fields[.cookie] = [fields[.cookie], cookies].compactMap(\.self).joined(separator: "; ")
        }
        if fields[.userAgent] == nil {
            fields[.userAgent] = self.given[.userAgent] ?? "segdl/\(SegmentedDownloadVersion.string)"
        }
        if fields[.accept] == nil { fields[.accept] = "*/*" }
        // Ranges count encoded bytes. With a content coding the segments would not be parts of the file.
        fields[.acceptEncoding] = range.omitted.contains(.coding) ? nil : "identity"
        fields[.range] = self.part?.fieldValue(for: range) ?? range.rangeFieldValue
        fields[.ifRange] = range.ifRangeFieldValue
        fields[.ifNoneMatch] = range.ifNoneMatchFieldValue
        if !range.omitted.contains(.conditions) {
            fields[.ifModifiedSince] = range.modifiedSince?.fieldValue
            if range.confirms { fields[.cacheControl] = "no-cache" }
        }
        if range.closesConnection { fields[.connection] = "close" }
        return fields
    }

    /// The login to try after a refusal; nil if there is none.
    ///
    /// - Parameter sent: The value of `Authorization` in the refused request.
    func login(after head: ResponseHead, from url: SourceURL, sent: String?) -> DigestLogin? {
        guard head.status == 401, case .basic = self.credentials(for: url) else { return nil }
        return self.access.logins.begin(head.challenges, by: url.origin.text, after: sent)
    }

    /// The value of `Authorization`: the answer to the server's challenge if it has made one.
    private func authorization(for url: SourceURL, _ login: DigestLogin?) -> String? {
        let credentials = self.credentials(for: url)
        guard case .basic(let user, let password) = credentials else { return credentials?.fieldValue }
        if let login = login ?? self.access.logins[url.origin.text] {
            return login.answer(user: user, password: password, method: "GET", target: url.target)
        }
        return self.access.hidesPasswords ? nil : credentials?.fieldValue
    }

    /// The user's credentials for a URL.
    private func credentials(for url: SourceURL) -> Credentials? {
        if self.sendsIdentity(to: url) { return self.credentials }
        guard self.isNamed, url.origin.host != self.source.origin.host else { return nil }
        return self.access.credentials(forTarget: url)
    }
}
