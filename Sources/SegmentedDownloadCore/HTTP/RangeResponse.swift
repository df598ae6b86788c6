import HTTPTypes

/// A request for bytes of a resource, with everything that is needed to judge its response.
package struct RangeRequest: Hashable, Sendable {
    /// The first byte requested.
    package let lowerBound: Int64
    /// The end of the bytes requested, absent if the range is open-ended.
    package let upperBound: Int64?
    /// Whether a `Range` field is sent. Without it, the request is for the whole representation.
    package let isRanged: Bool
    /// The identity that the response must match, absent for the first request.
    package let identity: RemoteResource?
    /// Whether the answer must be from the identity's own place, or prove by a validator that it is the same version.
    ///
    /// The first answer of another source, or of another place that the bytes are compared with, need not. It must not
    /// contradict the identity in any case.
    package let comparesValidator: Bool
    /// Whether an answer that neither proves nor contradicts the identity is like one from another place, because nothing
    /// else compares the bytes with it.
    package var requiresProof = false
    /// Whether the identity's strong entity tag is sent as `If-Range` (RFC 9110 §13.1.5).
    package let sendsIfRange: Bool
    /// Whether the identity's entity tag is sent as `If-None-Match`, which asks whether a complete file is still
    /// current.
    package let sendsIfNoneMatch: Bool
    /// Whether the connection is closed after the response, so that the next request may reach another node of a server
    /// farm.
    package var closesConnection = false
    /// Whether cookies that servers have set are not sent with it, because they may lead to the same node.
    package var leavesSession = false
    /// Whether the answer only shows that a complete file has not changed. Caches are then asked to revalidate (RFC 9111
    /// §5.2.1.4), and an answer without the range counts only if it has a validator to compare: instead of a file that
    /// has expired, a server may send a page.
    package var confirms = false
    /// The date to send as `If-Modified-Since`, which asks whether a file of that date is still current. Absent if none is sent.
    package var modifiedSince: HTTPDate?
    /// What is not sent, because the server refuses it.
    package var omitted: OmittedFields = []
    /// Whether the source has another connection. A refusal may then concern the number of connections, so nothing is left out
    /// after it.
    package var isAdditional = false
    /// Whether the whole file may be asked for in the end, although bytes of it are there, if the range is refused again and again.
    package var mayGetWhole = false

    package init(
        lowerBound: Int64 = 0,
        upperBound: Int64? = nil,
        isRanged: Bool = true,
        identity: RemoteResource? = nil,
        comparesValidator: Bool = true,
        sendsIfRange: Bool = false,
        sendsIfNoneMatch: Bool = false
    ) {
        precondition(lowerBound >= 0, "a range starts at or after zero")
        precondition(upperBound.map { $0 > lowerBound } ?? true, "an empty range cannot be requested")
        precondition(isRanged || lowerBound == 0, "without a range the whole representation is asked for")
        self.lowerBound = lowerBound
        self.upperBound = upperBound
        self.isRanged = isRanged
        self.identity = identity
        self.comparesValidator = comparesValidator
        self.sendsIfRange = sendsIfRange
        self.sendsIfNoneMatch = sendsIfNoneMatch
    }

    /// The same request, to reach another node of a server farm if the last answers were from one with another version.
    func avoidingNode(of disagreements: Disagreement...) -> RangeRequest {
        var request = self
        request.closesConnection = disagreements.contains(where: \.isOpen)
        request.leavesSession = disagreements.contains(where: \.mayDependOnSession)
        return request
    }

    /// The value of the `Range` field, absent if none is sent.
    package var rangeFieldValue: String? {
        guard self.isRanged, !self.omitted.contains(.range) else { return nil }
        guard let upperBound = self.upperBoundSent else { return "bytes=\(self.lowerBound)-" }
        return ByteRange(self.lowerBound..<upperBound).fieldValue
    }

    /// The number of bytes requested, absent if the range is open-ended.
    package var length: Int64? { self.upperBound.map { $0 - self.lowerBound } }

    /// The end of the bytes that are asked for, which may be fewer than those that are wanted.
    package var upperBoundSent: Int64? {
        guard self.omitted.contains(.distantEnd), self.length ?? .max > OmittedFields.rangeMax else {
            return self.upperBound
        }
        return self.lowerBound + OmittedFields.rangeMax
    }

    /// Whether it has one of the fields that are called conditions in ``OmittedFields``.
    var isConditional: Bool {
        self.ifRangeFieldValue != nil || self.ifNoneMatchFieldValue != nil || self.modifiedSince != nil || self.confirms
    }

    /// The reason why the response is not from the expected resource or version; nil if it may be.
    func objection(to resource: RemoteResource) -> RangeResponse? {
        guard let identity = self.identity else { return nil }
        let verdict = identity.verdict(on: resource)
        guard self.comparesValidator else { return verdict.contradiction.map { .changed($0) } }
        return switch verdict {
        case .same: nil
        case .unproven: self.requiresProof ? .moved(nil) : nil
        case .changed(let difference): .changed(difference)
        case .elsewhere(let difference): .moved(difference)
        }
    }

    /// What a 304 says against the file on disk. It may omit fields; those that it has must be the recorded ones. A weak tag
    /// satisfies `If-None-Match`, and is no strong one.
    fileprivate func objection(toUnmodified head: ResponseHead) -> RangeResponse? {
        let stated = Validator(head, sent: head.date)
        guard let identity = self.identity else {
            guard let asked = self.modifiedSince, let date = stated.lastModified, date > asked else { return nil }
            return .changed("the remote file is newer, although the server says that it was not modified")
        }
        if let difference = identity.validator.difference(fromUnmodified: stated) { return .changed(difference) }
        // 0 and the length of the requested range are common mistakes: RFC 9110 §8.6 wants that of the 200 response.
        let asked = self.length
        guard case .exact(let length) = ContentLength.parse(head.values(.contentLength)), length > 0, length != asked
        else { return nil }
        let current = RemoteResource(completeLength: length, contentEncoding: identity.contentEncoding)
        return identity.differenceInContent(from: current).map { .changed($0) }
    }

    /// Like ``objection(to:)``, for a 304 or 416, which identify the resource only by its location.
    fileprivate func objection(to locator: ResourceLocator?, saying difference: String? = nil) -> RangeResponse? {
        guard self.comparesValidator, let identity = self.identity,
            !identity.isSameResource(as: RemoteResource(completeLength: nil, locator: locator))
        else { return nil }
        return .moved(difference)
    }

    package var ifRangeFieldValue: String? {
        self.sendsIfRange && !self.omitted.contains(.conditions) ? self.identity?.validator.ifRangeFieldValue : nil
    }

    package var ifNoneMatchFieldValue: String? {
        self.sendsIfNoneMatch && !self.omitted.contains(.conditions)
            ? self.identity?.validator.entityTag?.fieldValue : nil
    }
}

/// The meaning of a response head for the requested range.
///
/// The initializer is a total function of the request and the head, and its result alone determines whether a body may
/// be written. The acceptance rule follows RFC 9110 §13.1.5, §14.2, §14.4 and §15.3.7.
package enum RangeResponse: Hashable, Sendable {
    /// The body holds exactly these bytes of this resource.
    case partial(ByteRange, RemoteResource)
    /// The body is the whole representation, from its first byte.
    case whole(RemoteResource)
    /// 304 to `If-None-Match` or `If-Modified-Since`: the file on disk is current, if it has these digests.
    case notModified(stating: [ExpectedDigest] = [])
    /// 416: the range contains no bytes. The complete length is present if the origin sent it.
    case unsatisfiable(completeLength: Int64?)
    /// The origin now serves another version of the resource. The clause says how it differs.
    case changed(String)
    /// The response is from another resource. The clause says how its content differs, if that is certain.
    case moved(String?)
    /// Not a usable answer to a range request. The origin can serve one stream at best. The clause says why.
    case ignoresRanges(String)
    case redirected(status: Int, location: String)
    /// A refusal that may be temporary, see ``TransientStatus``.
    case refused(status: Int, retryAfter: RetryAfter?)
    /// 401 or 407.
    case unauthorized(status: Int, challenge: String?)
    /// Any other 4xx or 5xx status, and what the server says about it, see ``RefusalText``.
    case rejected(status: Int, saying: String? = nil)
    /// The response violates HTTP in a way that makes its body unusable, or has an unexpected status. The clause says
    /// why.
    case malformed(String)

    /// Judges the head of the response to `request`.
    ///
    /// - Parameter locator: Where the response came from, absent if only one resource exists.
    package init(request: RangeRequest, head: ResponseHead, locator: ResourceLocator? = nil) {
        switch head.status {
        case _ where head.isWhole: self = Self.whole(request, head, locator)
        case 206: self = Self.partial(request, head, locator)
        case 304 where request.sendsIfNoneMatch || request.modifiedSince != nil:
            self = request.objection(to: locator) ?? request.objection(toUnmodified: head) ?? .notModified()
        // Other clients follow 300 too, and unknown ones are treated as 300 (RFC 9110 §15).
        case 300...399 where head.status != 304: self = Self.redirect(head)
        case 401, 407:
            let name: HTTPField.Name = head.status == 401 ? .wwwAuthenticate : .proxyAuthenticate
            let challenges = head.values(name).filter { !$0.isEmpty }.joined(separator: ", ")
            let said = [challenges, RefusalText.inFields(of: head) ?? ""].filter { !$0.isEmpty }
            self = .unauthorized(status: head.status, challenge: said.isEmpty ? nil : said.joined(separator: "; "))
        case _ where TransientStatus.contains(head.status):
            self = .refused(status: head.status, retryAfter: Self.retryAfter(head))
        case 400...599 where Self.retryAfter(head) != nil:
            self = .refused(status: head.status, retryAfter: Self.retryAfter(head))
        case 416: self = Self.unsatisfiable(request, head, locator)
        case 400...599: self = .rejected(status: head.status, saying: RefusalText.inFields(of: head))
        default: self = .malformed("status \(head.status) is no valid answer to a request for a file")
        }
    }

    /// Judges the digests of the whole file that the response's head states, and adds them to its resource.
    package func stating(_ digests: [ExpectedDigest], to request: RangeRequest) -> RangeResponse {
        guard !digests.isEmpty else { return self }
        switch self {
        case .partial(let range, var resource):
            resource.state(digests)
            return request.objection(to: resource) ?? .partial(range, resource)
        case .whole(var resource):
            resource.state(digests)
            return request.objection(to: resource) ?? .whole(resource)
        case .notModified:
            let difference = request.identity?.differenceInDigests(from: digests)
            return difference.map { .changed($0) } ?? .notModified(stating: digests)
        case .unsatisfiable, .changed, .moved, .ignoresRanges, .redirected, .refused, .unauthorized, .rejected,
            .malformed:
            return self
        }
    }

    /// The offset in the resource at which the body ends, if the head says so.
    package var bodyEnd: Int64? {
        switch self {
        case .partial(let range, _): range.upperBound
        case .whole(let resource): resource.completeLength
        case .notModified, .unsatisfiable, .changed, .moved, .ignoresRanges, .redirected, .refused, .unauthorized,
            .rejected,
            .malformed:
            nil
        }
    }

    /// The resource whose bytes the body contains, absent if the body is not used.
    package var resource: RemoteResource? {
        switch self {
        case .partial(_, let resource), .whole(let resource): resource
        case .notModified, .unsatisfiable, .changed, .moved, .ignoresRanges, .redirected, .refused, .unauthorized,
            .rejected,
            .malformed:
            nil
        }
    }

    /// Whether the body contains bytes of the resource.
    package var hasBytes: Bool { self.resource != nil }

    /// Whether the body contains all bytes of the file. A 206 may do so too.
    package var hasAllBytes: Bool {
        guard let resource = self.resource, !resource.isPart else { return false }
        return self.bodyStart == 0 && self.bodyEnd == resource.completeLength
    }

    /// The offset in the resource at which the body begins.
    package var bodyStart: Int64 {
        if case .partial(let range, _) = self { return range.lowerBound }
        return 0
    }

    /// The bytes of the resource that the body has, if the head says so; nil for none.
    package var bodyRange: Range<Int64>? {
        self.bodyEnd.flatMap { $0 > self.bodyStart ? self.bodyStart..<$0 : nil }
    }

    private static func whole(
        _ request: RangeRequest, _ head: ResponseHead, _ locator: ResourceLocator?
    ) -> RangeResponse {
        guard head.values(.contentRange).isEmpty else {
            return .malformed("a 200 response has a Content-Range field")
        }
        if let coding = Self.unknownTransferCoding(head) { return .malformed(coding) }
        let length: Int64?
        switch Self.bodyLength(head) {
        case .malformed: return .malformed("its Content-Length is malformed")
        case .absent: length = nil
        case .exact(let value): length = value
        }
        var resource = Self.resource(head, completeLength: length, locator)
        resource.endsWithConnection = length == nil && head.values(.transferEncoding).isEmpty
        if let objection = request.objection(to: resource) {
            guard !request.confirms || request.identity?.validator.hasFields(of: resource.validator) == true else {
                return .ignoresRanges("it sent something else instead of a range")
            }
            return objection
        }
        return .whole(resource)
    }

    private static func partial(
        _ request: RangeRequest, _ head: ResponseHead, _ locator: ResourceLocator?
    ) -> RangeResponse {
        let isMultipart = head.values(.contentType).contains {
            $0.asciiLowercased.starts(with: "multipart/byteranges".utf8)
        }
        guard !isMultipart else {
            return .ignoresRanges("requested one range, received multipart/byteranges")
        }
        if let coding = Self.unknownTransferCoding(head) { return .malformed(coding) }
        guard head.values(.contentLength).isEmpty || head.values(.transferEncoding).isEmpty else {
            return .ignoresRanges("it has both Content-Length and Transfer-Encoding")
        }
        guard let value = head.single(.contentRange) else {
            return .ignoresRanges("a 206 response needs exactly one Content-Range field")
        }
        guard case .satisfied(let range, let completeLength) = ContentRange(fieldValue: value) else {
            return .ignoresRanges("its Content-Range \"\(value.printable)\" is malformed")
        }
        let resource = Self.resource(head, completeLength: completeLength ?? request.identity?.completeLength, locator)
        if let objection = request.objection(to: resource) { return objection }
        guard range.lowerBound == request.lowerBound else {
            return .ignoresRanges("requested byte \(request.lowerBound), received byte \(range.lowerBound)")
        }
        if let upperBound = request.upperBound, range.upperBound > upperBound {
            return .ignoresRanges(
                "requested bytes up to \(upperBound - 1), received bytes up to \(range.upperBound - 1)")
        }
        if let total = resource.completeLength, range.upperBound > total {
            return .changed("its length was \(total) bytes and now reaches byte \(range.upperBound - 1)")
        }
        switch Self.bodyLength(head) {
        case .malformed: return .malformed("its Content-Length is malformed")
        case .exact(let length) where length != range.length:
            return .ignoresRanges("its Content-Length is \(length) and its Content-Range holds \(range.length) bytes")
        case .absent, .exact: break
        }
        guard resource.completeLength != nil else {
            return .ignoresRanges("its Content-Range has no complete length")
        }
        return .partial(range, resource)
    }

    private static func unsatisfiable(
        _ request: RangeRequest, _ head: ResponseHead, _ locator: ResourceLocator?
    ) -> RangeResponse {
        var length: Int64?
        if let value = head.single(.contentRange), case .unsatisfied(let said) = ContentRange(fieldValue: value) {
            length = said
        }
        let difference = request.identity?.differenceInContent(
            from: RemoteResource(completeLength: length, contentEncoding: request.identity?.contentEncoding))
        return request.objection(to: locator, saying: difference) ?? .unsatisfiable(completeLength: length)
    }

    private static func redirect(_ head: ResponseHead) -> RangeResponse {
        let locations = Set(head.values(.location))
        guard locations.count == 1, let location = locations.first, !location.isEmpty else {
            return .malformed("a \(head.status) redirect needs one Location field, and no other one that differs")
        }
        return .redirected(status: head.status, location: location)
    }

    /// The announced body length, absent if a transfer coding delimits the body (RFC 9112 §6.3).
    private static func bodyLength(_ head: ResponseHead) -> ContentLength.Result {
        guard head.values(.transferEncoding).isEmpty else { return .absent }
        return ContentLength.parse(head.values(.contentLength))
    }

    /// Objects to any transfer coding except `chunked`: the HTTP client decodes no other (RFC 9112 §6.1).
    private static func unknownTransferCoding(_ head: ResponseHead) -> String? {
        let codings = head.values(.transferEncoding)
        guard !codings.isEmpty else { return nil }
        guard codings.count > 1 || codings[0].asciiLowercased != Array("chunked".utf8) else { return nil }
        return "its Transfer-Encoding \"\(codings.joined(separator: ", ").printable)\" is not supported"
    }

    private static func resource(
        _ head: ResponseHead, completeLength: Int64?, _ locator: ResourceLocator?
    ) -> RemoteResource {
        let codings = head.values(.contentEncoding)
            .flatMap { $0.asciiLowercased.split(separator: UInt8(ascii: ",")) }
            .map { String(decoding: $0.trimmingFieldWhitespace, as: UTF8.self) }
            .filter { !$0.isEmpty && $0 != "identity" }
        // Read once, because each reading of a field costs an allocation.
        let date = head.date
        var resource = RemoteResource(
            completeLength: completeLength, validator: Validator(head, sent: date),
            contentEncoding: codings.isEmpty ? nil : codings.joined(separator: ","), locator: locator)
        resource.begunAt = date ?? head.received
        return resource
    }

    /// How long the server asks to wait, by the first `Retry-After` field.
    package static func retryAfter(_ head: ResponseHead) -> RetryAfter? {
        head.values(.retryAfter).first.flatMap { RetryAfter(fieldValue: $0, date: head.date, fallbackNow: nil) }
    }
}

extension Validator {
    /// The validator that a response's head states.
    ///
    /// - Parameter date: The head's own date.
    fileprivate init(_ head: ResponseHead, sent date: HTTPDate?) {
        self.init(
            tagFields: head.values(.eTag), dateFields: head.values(.lastModified), sent: date, received: head.received)
    }
}
