package import HTTPTypes
package import SegmentedDownloadCore
import Synchronization

/// Finds the way from a source to where its bytes are, and keeps to it.
///
/// The target of a redirect is remembered, so that every segment comes from the same place and is asked for once; it is
/// forgotten when it stops working, as a signed URL does when it expires. What the user sends goes to the origin he named
/// only (RFC 9110 §15.4; curl's CVE-2022-27774 tells why the port counts).
package final class RedirectFollower: Sendable {
    private let source: SourceURL
    private let fields: HTTPFields
    private let access: Access
    private let transport: any HTTPTransport
    private let isNamed: Bool
    /// Where a redirect leads, and what is said of the file there on the way.
    private struct Target {
        var url: SourceURL
        var linked: LinkedFile?
    }

    private struct Route {
        /// Where the source led the last time.
        var pinned: Target?
        /// Where the last request was redirected to, in order.
        var hops: [SourceURL] = []
        /// Whether a response with bytes has ever come.
        var hasWorked = false
    }

    private let route = Mutex(Route())

    /// - Parameters:
    ///   - fields: what the user sends along, to the source's own origin only.
    ///   - isNamed: whether the source is the user's choice.
    package init(
        source: SourceURL, fields: HTTPFields, access: Access, transport: any HTTPTransport, isNamed: Bool = true
    ) {
        self.isNamed = isNamed
        self.source = source
        self.fields = fields
        self.access = access
        self.transport = transport
    }

    /// How often one request asks the source for another target because a new one has expired already: twice in a row is no
    /// accident.
    private static let renewalsMax = 1

    private var hasWorked: Bool { self.route.withLock { $0.hasWorked } }

    /// Where the bytes come from: the last redirect's target, or the source itself.
    package var current: SourceURL { self.route.withLock { $0.pinned?.url } ?? self.source }

    /// Where the last request was redirected to, in order.
    var hops: [SourceURL] { self.route.withLock { $0.hops } }

    private enum Step<Answer: Sendable>: Sendable {
        case done(Answer)
        case redirected(SourceURL, LinkedFile?)
        /// The remembered target does not work any more.
        case expired
    }

    /// Asks for a range and hands the first response that is no redirect to `consume`, with the digests that it and the redirects
    /// before it say.
    ///
    /// - Parameter isBroken: asked after an error, whether the place asked is to blame, and not we that gave it up.
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
            // One that is new may have expired on the way to it, if the source ever led to anything.
            let mayExpire = isPinned || redirects > 0 && renewals < Self.renewalsMax && self.hasWorked
            let request = TransportRequest(
                url: url, fields: self.fields(for: url, range), isIdentified: self.isIdentified(to: url))
            let step: Step<Answer>
            do {
                step = try await self.transport.withResponse(to: request) { head, body in
                    let response = RangeResponse(request: range, head: head, locator: self.locator(of: url))
                    self.access.cookies.note(head.fields[values: .setCookie], from: url)
                    if mayExpire, [401, 403, 404, 410].contains(head.status) {
                        return .expired
                    }
                    if case .redirected(_, let location) = response {
                        return .redirected(
                            try self.target(location, from: url, redirects: redirects), LinkedFile(head.fields))
                    }
                    self.arrive(at: Target(url: url, linked: linked), with: response)
                    let announced = AnnouncedDigests(head, of: response, linked: linked)
                    return .done(try await consume(head, response, announced, body))
                }
            } catch {
                // A target that breaks is asked for anew the next time: the source may know a better one.
                if isPinned, isBroken() { self.route.withLock { $0.pinned = nil } }
                throw error
            }
            switch step {
            case .done(let answer): return answer
            case .expired:
                // Another request may have found a new one meanwhile.
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

    /// Remembers where a response came from.
    private func arrive(at target: Target, with response: RangeResponse) {
        self.route.withLock { route in
            route.pinned = target.url == self.source ? nil : target
            route.hasWorked = route.hasWorked || response.hasBytes
        }
    }

    /// The resource that a URL answers for.
    private func locator(of target: SourceURL) -> ResourceLocator {
        .named(ResourceName(requested: self.source.resourceText, target: target.resourceText))
    }

    private func target(_ location: String, from url: SourceURL, redirects: Int) throws -> SourceURL {
        guard redirects < self.access.redirectsMax else {
            throw Failure(.server, "\(url.host) redirected more than \(self.access.redirectsMax) times")
        }
        let target: SourceURL
        do {
            target = try url.resolve(location: location)
        } catch {
            throw error.failure
        }
        try self.access.check(target)
        if url.origin.scheme == "https", target.origin.scheme == "http", !self.access.allowsDowngrade {
            throw Failure(
                .policy, "\(url.host) redirects from https to http (\(target))",
                hint: "Allow it with --allow-downgrade, if you trust the network")
        }
        return target
    }

    /// Whether a place is shown who the user is.
    private func isIdentified(to url: SourceURL) -> Bool {
        self.isNamed && (url.origin == self.source.origin || self.access.trustsRedirects)
    }

    private func fields(for url: SourceURL, _ range: RangeRequest) -> HTTPFields {
        var fields = HTTPFields()
        let isIdentified = self.isIdentified(to: url)
        if isIdentified { fields = self.fields }
        if let cookies = self.access.cookies.fieldValue(for: url, isNamed: isIdentified) {
            fields[.cookie] = [fields[.cookie], cookies].compactMap(\.self).joined(separator: "; ")
        }
        if fields[.userAgent] == nil {
            fields[.userAgent] = self.fields[.userAgent] ?? "segdl/\(SegmentedDownloadVersion.string)"
        }
        if fields[.accept] == nil { fields[.accept] = "*/*" }
        // Ranges count coded bytes, so a coding would make segments of something else than the file.
        fields[.acceptEncoding] = "identity"
        fields[.range] = range.rangeFieldValue
        fields[.ifRange] = range.ifRangeFieldValue
        fields[.ifNoneMatch] = range.ifNoneMatchFieldValue
        if range.closesConnection { fields[.connection] = "close" }
        return fields
    }
}
