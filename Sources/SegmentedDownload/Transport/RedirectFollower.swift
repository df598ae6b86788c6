package import HTTPTypes
package import SegmentedDownloadCore
import Synchronization

/// Follows redirects from a source to its bytes, and remembers the target.
///
/// All segments are requested from the remembered target. It is forgotten when it stops working, for example when a
/// signed URL expires. Fields, credentials and cookies of the user are sent only to the source's own origin (RFC 9110,
/// section 15.4; curl's CVE-2022-27774 shows why the port counts). Another host gets the credentials of its own
/// entry in the netrc file.
package final class RedirectFollower: Sendable {
    private let source: SourceURL
    private let fields: HTTPFields
    private let access: Access
    private let transport: any HTTPTransport
    private let isNamed: Bool
    private let allowsPrivateAddresses: Bool
    /// The part of the resource that ranges count from; nil for the whole.
    private let part: ResourcePart?
    /// The target of a redirect, and the file that redirects on the way described.
    private struct Target {
        var url: SourceURL
        var linked: LinkedFile?
    }

    private struct Route {
        /// The target that the source last led to.
        var pinned: Target?
        /// The targets of the redirects of the last request, in order.
        var hops: [SourceURL] = []
        /// Whether any response had bytes.
        var hasWorked = false
    }

    private let route = Mutex(Route())

    /// Creates a follower.
    ///
    /// - Parameters:
    ///   - fields: The user's fields, which are sent to the source's own origin only.
    ///   - isNamed: Whether the user named the source.
    ///   - allowsPrivateAddresses: See ``DownloadOptions/allowsPrivateAddresses``.
    ///   - part: See ``DownloadOptions/part``.
    package init(
        source: SourceURL, fields: HTTPFields, access: Access, transport: any HTTPTransport, isNamed: Bool = true,
        allowsPrivateAddresses: Bool = true, part: DownloadOptions.Part? = nil
    ) {
        self.part = part.map { ResourcePart($0) }
        self.isNamed = isNamed
        self.allowsPrivateAddresses = allowsPrivateAddresses
        self.source = source
        self.fields = fields
        self.access = access
        self.transport = transport
    }

    /// 1: how often one request returns to the source because a new target has already expired. Twice in a row is not a
    /// coincidence.
    private static let renewalsMax = 1

    private var hasWorked: Bool { self.route.withLock { $0.hasWorked } }

    /// The URL that the bytes come from: the last redirect's target, or the source itself.
    package var current: SourceURL { self.route.withLock { $0.pinned?.url } ?? self.source }

    /// The targets of the redirects of the last request, in order.
    var hops: [SourceURL] { self.route.withLock { $0.hops } }

    private enum Step<Answer: Sendable>: Sendable {
        case done(Answer)
        case redirected(SourceURL, LinkedFile?)
        /// The remembered target no longer works.
        case expired
    }

    /// Requests a range, follows redirects, and passes the first other response to `consume`, with the digests that it
    /// and the redirects stated.
    ///
    /// - Parameter isBroken: Called after an error; returns whether the server is at fault, and the request was not
    ///   given up here.
    package func withResponse<Answer: Sendable>(
        to range: RangeRequest, isBroken: @Sendable () -> Bool = { true },
        _ consume: (ResponseHead, RangeResponse, AnnouncedDigests, any ResponseBody) async throws -> Answer
    ) async throws -> Answer {
        let pinned = self.route.withLock { $0.pinned }
        var url = pinned?.url ?? self.source
        var linked = pinned?.linked
        var redirects = 0
        var renewals = 0
        while true {
            let isPinned = url != self.source && redirects == 0
            // A new target may already have expired when it is requested, but only if the source has ever led to bytes.
            let mayExpire = isPinned || redirects > 0 && renewals < Self.renewalsMax && self.hasWorked
            var request = TransportRequest(
                url: url, fields: self.fields(for: url, range),
                allowsClientCertificate: self.sendsIdentity(to: url),
                allowsPrivateAddresses: self.allowsPrivateAddresses)
            request.length = range.upperBound.map { $0 - range.lowerBound }
            let step: Step<Answer>
            do {
                step = try await self.transport.withResponse(to: request) { head, body in
                    let response = self.response(head, to: range, from: url)
                    self.access.cookies.note(head.fields[values: .setCookie], from: url)
                    if mayExpire, [401, 403, 404, 410].contains(head.status) {
                        return .expired
                    }
                    if case .redirected(_, let location) = response {
                        return .redirected(
                            try self.target(location, from: url, redirects: redirects), LinkedFile(head.fields))
                    }
                    let announced = AnnouncedDigests(head, of: response, linked: linked)
                    let judged = response.stating(self.digests(announced, of: response, to: range), to: range)
                    self.arrive(at: Target(url: url, linked: linked), with: judged)
                    return .done(try await consume(head, judged, announced, body))
                }
            } catch {
                // After an error the source is asked again next time: it may lead to a better target.
                if isPinned, isBroken() { self.route.withLock { $0.pinned = nil } }
                throw error
            }
            switch step {
            case .done(let answer): return answer
            case .expired:
                // Another request may have found a new target meanwhile.
                self.route.withLock { if $0.pinned?.url == url { $0.pinned = nil } }
                url = self.source
                linked = nil
                renewals += redirects > 0 ? 1 : 0
                redirects = 0
            case .redirected(let target, let said):
                linked = said ?? linked
                self.route.withLock { $0.hops = (redirects == 0 ? [] : $0.hops) + [target] }
                redirects += 1
                url = target
            }
        }
    }

    /// What a response states about the whole file. Records of parts by earlier versions do not say that they are of parts, and a
    /// 304 does not say so either.
    private func digests(
        _ announced: AnnouncedDigests, of response: RangeResponse, to range: RangeRequest
    ) -> [ExpectedDigest] {
        guard self.part != nil, !response.hasBytes, range.identity?.isPart != true else {
            return announced.representation
        }
        return []
    }

    /// Remembers the target that a response came from, unless it has another resource or version than the requested one.
    private func arrive(at target: Target, with response: RangeResponse) {
        switch response {
        case .moved, .changed: return
        case .partial, .whole, .notModified, .unsatisfiable, .ignoresRanges, .redirected, .refused, .unauthorized,
            .rejected,
            .malformed:
            break
        }
        self.route.withLock { route in
            route.pinned = target.url == self.source ? nil : target
            route.hasWorked = route.hasWorked || response.hasBytes
        }
    }

    /// The resource that a target represents.
    private func locator(of target: SourceURL) -> ResourceLocator {
        let requested = self.source.resourceText + (self.part?.suffix ?? "")
        return .named(ResourceName(requested: requested, target: target.resourceText))
    }

    /// The meaning of a response from a target.
    private func response(_ head: ResponseHead, to range: RangeRequest, from target: SourceURL) -> RangeResponse {
        guard let part else { return RangeResponse(request: range, head: head, locator: self.locator(of: target)) }
        return RangeResponse(request: range, head: head, locator: self.locator(of: target), part: part)
    }

    private func target(_ location: String, from url: SourceURL, redirects: Int) throws -> SourceURL {
        guard redirects < self.access.redirectsMax else {
            throw DownloadError(.server, "\(url.host) redirected more than \(self.access.redirectsMax) times")
        }
        let target = try url.resolve(location: location)
        try self.access.check(target)
        if url.origin.scheme == "https", target.origin.scheme == "http", !self.access.allowsDowngrade {
            throw DownloadError(
                .policy, "\(url.host) redirects from https to http (\(target))",
                remedy: .allowDowngrade)
        }
        return target
    }

    /// Whether the user's fields, cookies and client certificate may be sent to a URL.
    private func sendsIdentity(to url: SourceURL) -> Bool {
        self.isNamed && (url.origin == self.source.origin || self.access.trustsRedirects)
    }

    private func fields(for url: SourceURL, _ range: RangeRequest) -> HTTPFields {
        var fields = HTTPFields()
        let sendsIdentity = self.sendsIdentity(to: url)
        if sendsIdentity {
            fields = self.fields
        } else if self.isNamed, url.origin.host != self.source.origin.host {
            fields[.authorization] = self.access.credentials(forTarget: url)?.fieldValue
        }
        if let cookies = self.access.cookies.fieldValue(for: url, isNamed: sendsIdentity) {
            fields[.cookie] = [fields[.cookie], cookies].compactMap(\.self).joined(separator: "; ")
        }
        if fields[.userAgent] == nil {
            fields[.userAgent] = self.fields[.userAgent] ?? "segdl/\(SegmentedDownloadVersion.string)"
        }
        if fields[.accept] == nil { fields[.accept] = "*/*" }
        // Ranges count encoded bytes. With a content coding the segments would not be parts of the file.
        fields[.acceptEncoding] = "identity"
        fields[.range] = self.part?.fieldValue(for: range) ?? range.rangeFieldValue
        fields[.ifRange] = range.ifRangeFieldValue
        fields[.ifNoneMatch] = range.ifNoneMatchFieldValue
        fields[.ifModifiedSince] = range.modifiedSince?.fieldValue
        if range.confirms { fields[.cacheControl] = "no-cache" }
        if range.closesConnection { fields[.connection] = "close" }
        return fields
    }
}
