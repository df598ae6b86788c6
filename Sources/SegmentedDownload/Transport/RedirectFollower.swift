package import HTTPTypes
package import SegmentedDownloadCore
import Synchronization

/// Follows redirects from a source to its bytes, and remembers the target and what the servers on the way refuse.
///
/// All segments are requested from the remembered target. Whatever else it answers than what was asked for, the source is asked
/// again: a signed URL may have expired, or be valid once only. Only then the answer counts.
///
/// A server that refuses an optional field is asked again without it, see ``OmittedFields``.
package final class RedirectFollower: Sendable {
    private let source: SourceURL
    private let fields: RequestFields
    private let access: Access
    private let transport: any HTTPTransport
    private let allowsPrivateAddresses: Bool
    /// The part of the resource that ranges count from; nil for the whole.
    private let part: ResourcePart?
    /// The target of a redirect, and the file that redirects on the way described.
    private struct Target {
        var url: SourceURL
        var linked: LinkedFile?
        /// Whether nothing was requested from it yet, because the redirect to it asked to wait.
        var isDeferred = false
    }

    private struct Route {
        /// The target that the source last led to.
        var pinned: Target?
        /// The targets of the redirects of the last request, in order.
        var hops: [SourceURL] = []
        /// Whether any response had bytes.
        var hasWorked = false
        /// What the last request with an answer did not have.
        var omitted: OmittedFields = []
        /// The statuses that requests get whatever they leave out.
        var settled: Set<Int> = []
        /// Consecutive failures that may be temporary.
        var failures = 0

        /// Forgets a target. Another request may have found another one meanwhile.
        mutating func forget(_ target: Target) {
            if self.pinned?.url == target.url, self.pinned?.isDeferred == target.isDeferred { self.pinned = nil }
        }
    }

    /// One request: where it is on its way, and what can still be tried.
    private struct Trip {
        var range: RangeRequest
        var target: Target
        /// The number of redirects since the source was asked.
        var redirects = 0
        /// How often the source was asked again because a new target had already expired.
        var renewals = 0
        /// What else can be left out; nil before a refusal.
        var attempts: [OmittedFields]?
        /// The answer to the challenge of the target that was asked last.
        var login: DigestLogin?
        /// How often a challenge was answered.
        var logins = 0

        /// Returns to the source.
        mutating func restart(at source: SourceURL) {
            self.target = Target(url: source)
            self.redirects = 0
            self.login = nil
        }
    }

    private let route = Mutex(Route())

    /// Creates a follower.
    ///
    /// - Parameters:
    ///   - fields: The user's fields, which are sent to the source's own origin only.
    ///   - credentials: The user's credentials for the source's own origin.
    ///   - isNamed: Whether the user named the source.
    ///   - allowsPrivateAddresses: See ``DownloadOptions/allowsPrivateAddresses``.
    ///   - part: See ``DownloadOptions/part``.
    package init(
        source: SourceURL, fields: HTTPFields, credentials: Credentials? = nil, access: Access,
        transport: any HTTPTransport, isNamed: Bool = true, allowsPrivateAddresses: Bool = true,
        part: DownloadOptions.Part? = nil
    ) {
        let part = part.map { ResourcePart($0) }
        self.part = part
        self.allowsPrivateAddresses = allowsPrivateAddresses
        self.source = source
        self.fields = RequestFields(
            source: source, given: fields, credentials: credentials, access: access, isNamed: isNamed, part: part)
        self.access = access
        self.transport = transport
    }

    /// 1: how often one request returns to the source because a new target has already expired. Twice in a row is not a
    /// coincidence.
    private static let renewalsMax = 1

    /// 2: after as many failures that may be temporary, every other request is a plain one if no other is open, or while bytes are
    /// there one without conditions and a plain one in turn. The server may refuse optional fields with a status or an end of the
    /// connection that otherwise is temporary.
    private static let failuresBeforePlain = 2

    /// 3: so often in a row the remembered target may refuse one more request or connection before the source is asked for
    /// another.
    private static let refusalsMax = 3

    /// 4: so often one request answers challenges, each with a nonce that the server chose. Some servers accept a nonce once only.
    private static let loginsMax = 4

    /// The URL that the bytes come from: the last redirect's target, or the source itself.
    package var current: SourceURL { self.route.withLock { $0.pinned?.url } ?? self.source }

    /// The targets of the redirects of the last request, in order.
    var hops: [SourceURL] { self.route.withLock { $0.hops } }

    private enum Step<Answer: Sendable>: Sendable {
        case done(Answer)
        case redirected(SourceURL, LinkedFile?)
        /// The target does not work any more.
        case expired
        /// The same request is made without the first of these.
        case again([OmittedFields])
        /// The same request is made with an answer to the server's challenge.
        case challenged(DigestLogin)
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
        var trip = self.begin(range)
        while true {
            let now = trip
            let url = now.target.url
            var request = TransportRequest(
                url: url,
                fields: self.fields.fields(for: url, now.range, login: now.login, isFirst: now.redirects == 0),
                allowsClientCertificate: self.fields.sendsIdentity(to: url),
                allowsPrivateAddresses: self.allowsPrivateAddresses)
            request.length = now.range.upperBoundSent.map { $0 - now.range.lowerBound }
            let authorization = request.fields[.authorization]
            let step: Step<Answer>
            do {
                step = try await self.transport.withResponse(to: request) { head, body in
                    let answer = self.response(head, to: now.range, from: url)
                    self.access.cookies.note(head.fields[values: .setCookie], from: url)
                    if now.logins < Self.loginsMax,
                        let login = self.fields.login(after: head, from: url, sent: authorization)
                    {
                        return .challenged(login)
                    }
                    let deferral = self.deferral(answer, head, from: url)
                    if deferral == nil {
                        if self.isExpired(now, answer, status: head.status) { return .expired }
                        let attempts = self.attempts(after: answer, now)
                        if !attempts.isEmpty { return .again(attempts) }
                        if case .redirected(_, let location) = answer {
                            return .redirected(
                                try self.target(location, from: url, redirects: now.redirects), LinkedFile(head.fields))
                        }
                    }
                    let response = deferral ?? answer
                    let announced = AnnouncedDigests(head, of: response, linked: now.target.linked)
                    let judged = response.stating(self.digests(announced, of: response, to: now.range), to: now.range)
                    self.note(judged, now)
                    let explained = await judged.explained(by: body, after: head)
                    return .done(try await consume(head, explained, announced, body))
                }
            } catch {
                if isBroken() { self.noteFailure(error, now) }
                throw error
            }
            switch step {
            case .done(let answer): return answer
            case .expired:
                self.route.withLock { $0.forget(now.target) }
                trip.renewals += trip.redirects > 0 ? 1 : 0
                trip.restart(at: self.source)
            case .again(let attempts):
                trip.range.omitted = attempts[0]
                trip.attempts = Array(attempts.dropFirst())
                // A target may be valid once only.
                trip.restart(at: self.source)
            case .challenged(let login):
                trip.login = login
                trip.logins += 1
            case .redirected(let target, let said):
                self.route.withLock { $0.hops = (now.redirects == 0 ? [] : $0.hops) + [target] }
                trip.redirects += 1
                trip.login = nil
                trip.target = Target(url: target, linked: said ?? now.target.linked)
            }
        }
    }

    /// Begins a request at the remembered target, without what is refused.
    private func begin(_ range: RangeRequest) -> Trip {
        self.route.withLock { route in
            var trip = Trip(range: range, target: route.pinned ?? Target(url: self.source))
            trip.redirects = trip.target.isDeferred ? 1 : 0
            trip.range.omitted = route.omitted
            let isUnsure = route.failures >= Self.failuresBeforePlain && !range.isAdditional
            let isEven = route.failures.isMultiple(of: 2)
            if range.identity != nil {
                if isUnsure, isEven { trip.range.omitted.insert(.conditions) }
                if isUnsure, !isEven, range.mayGetWhole { trip.range.omitted.formUnion(self.mayOmit) }
            } else if isUnsure, isEven {
                trip.range.omitted.formUnion(self.mayOmit)
            } else if !route.hasWorked {
                trip.range.omitted.formUnion(self.access.refused.take(for: self.source.origin))
            }
            return trip
        }
    }

    /// What may be left out. A server that does not know `Range` cannot send a part.
    private var mayOmit: OmittedFields { self.part == nil ? .all : OmittedFields.all.subtracting(.range) }

    /// A redirect to the same resource that asks to wait, as a refusal: the file is not there yet. Its target is asked next. Other
    /// redirects are followed at once, as by other clients.
    private func deferral(_ answer: RangeResponse, _ head: ResponseHead, from url: SourceURL) -> RangeResponse? {
        guard case .redirected(let status, let location) = answer, let wait = RangeResponse.retryAfter(head),
            wait.seconds > 0,
            let target = try? url.resolve(location: location), target.origin == url.origin, target.path == url.path
        else { return nil }
        self.route.withLock { $0.pinned = Target(url: target, isDeferred: true) }
        return .refused(status: status, retryAfter: wait)
    }

    /// Whether an answer says no more than that a target does not work any more.
    private func isExpired(_ trip: Trip, _ response: RangeResponse, status: Int) -> Bool {
        guard trip.target.url != self.source else { return false }
        guard trip.redirects == 0 else {
            // A new target may already have expired when it is requested, but only if the source has ever led to bytes.
            guard trip.renewals < Self.renewalsMax, self.route.withLock({ $0.hasWorked }) else { return false }
            return switch response {
            case .rejected, .unauthorized: true
            default: false
            }
        }
        switch response {
        case .partial, .notModified, .ignoresRanges: return false
        // Instead of bytes it may be a page that says so. With another validator it may be from another node of a server farm.
        case .whole, .changed, .moved: return status == 200 && trip.range.isRanged && trip.range.identity != nil
        case .refused(let status, _) where TransientStatus.refusals.contains(status):
            return self.route.withLock { $0.failures >= Self.refusalsMax }
        case .redirected, .refused, .unauthorized, .rejected, .malformed, .unsatisfiable: return true
        }
    }

    /// What can be left out of a request that was refused. The number of connections is not the reason.
    private func attempts(after response: RangeResponse, _ trip: Trip) -> [OmittedFields] {
        let status: Int
        switch response {
        // Without a challenge, credentials are not what is missing.
        case .rejected(let said, _), .unauthorized(status: let said, challenge: nil): status = said
        case .unsatisfiable(completeLength: nil): status = 416
        default: return []
        }
        guard !trip.range.isAdditional, !self.route.withLock({ $0.settled.contains(status) }) else { return [] }
        if let attempts = trip.attempts {
            if attempts.isEmpty { self.route.withLock { _ = $0.settled.insert(status) } }
            return attempts
        }
        let omitted = trip.range.omitted
        let attempts = OmittedFields.attempts(after: status, to: trip.range)
            .map { $0.intersection(self.mayOmit.union(.distantEnd)).union(omitted) }
            .filter { $0 != omitted }
        // Another file of the origin needed what was left out.
        return omitted.isEmpty ? attempts : attempts + [[]]
    }

    /// Remembers a target that has answered with what was asked for, and what was left out.
    private func note(_ response: RangeResponse, _ trip: Trip) {
        let pinned = trip.target.url == self.source ? nil : Target(url: trip.target.url, linked: trip.target.linked)
        self.route.withLock { route in
            switch response {
            case .partial, .whole, .notModified:
                route.pinned = pinned
                // That a plain request was served does not end the failures of those for a range of bytes that are missing.
                let isProof = trip.range.identity == nil || !trip.range.omitted.contains(.range)
                route.failures = isProof ? 0 : route.failures + 1
                route.hasWorked = route.hasWorked || response.hasBytes
                // A range of the file that is refused now may be served later.
                let omitted = trip.range.identity == nil ? trip.range.omitted : trip.range.omitted.subtracting(.range)
                if case .whole = response {
                    route.omitted = omitted
                } else {
                    route.omitted = omitted.subtracting(.range)
                }
            case .ignoresRanges, .unsatisfiable: route.pinned = pinned
            case .refused(let status, _) where TransientStatus.refusals.contains(status):
                (route.pinned, route.failures) = (pinned, route.failures + 1)
            case .refused(_, let retryAfter):
                // With a time, it says that the file will be there.
                route.failures += retryAfter == nil ? 1 : 0
                route.forget(trip.target)
            case .redirected, .unauthorized, .rejected, .malformed: route.forget(trip.target)
            // The next attempts need not be refused first.
            case .moved, .changed: if trip.attempts != nil { route.omitted = trip.range.omitted }
            }
        }
        if response.hasBytes, trip.range.identity == nil {
            self.access.refused.note(trip.range.omitted, by: self.source.origin)
        }
    }

    /// After an error the source is asked again next time: it may lead to a better target.
    private func noteFailure(_ error: any Error, _ trip: Trip) {
        let isOfNetwork = (error as? DownloadError)?.code == .network
        self.route.withLock { route in
            // A target that was found a moment ago may still be the best one.
            if trip.redirects == 0 || trip.target.isDeferred { route.forget(trip.target) }
            if isOfNetwork { route.failures += 1 }
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

    /// The resource that a target represents.
    private func locator(of target: SourceURL) -> ResourceLocator {
        let requested = self.source.resourceText + (self.part?.suffix ?? "")
        return .named(ResourceName(requested: requested, target: target.resourceText))
    }

    /// The meaning of a response from a target.
    private func response(_ head: ResponseHead, to range: RangeRequest, from target: SourceURL) -> RangeResponse {
        guard let part else {
            let response = RangeResponse(request: range, head: head, locator: self.locator(of: target))
            // The answer to a plain request does not show whether the server serves ranges, but may say so.
            guard range.omitted.contains(.range), range.isRanged, range.identity == nil,
                case .whole(let resource) = response,
                let length = resource.completeLength, length > 0, head.offersRanges
            else { return response }
            return .partial(ByteRange(0..<length), resource)
        }
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
}

extension ResponseHead {
    /// Whether the server says that it serves ranges of bytes (RFC 9110 §14.3).
    fileprivate var offersRanges: Bool {
        self.fields[values: .acceptRanges].contains { $0.lowercased().contains("bytes") }
    }
}
