import HTTPTypes

/// What was asked of an origin: the part of a request that its response is judged by.
package struct RangeRequest: Hashable, Sendable {
    /// The first byte wanted.
    package let lowerBound: Int64
    /// The end of the bytes asked for, absent for "to the end".
    package let upperBound: Int64?
    /// Whether a `Range` field is sent. Without one the whole representation is asked for.
    package let isRanged: Bool
    /// What the response must agree with, absent on first contact.
    package let identity: RemoteResource?
    /// Whether the identity's validator is compared: not for the first answer of another source, which has its own.
    package let comparesValidator: Bool
    /// Whether the identity's strong entity tag is sent as `If-Range` (RFC 9110 §13.1.5).
    package let sendsIfRange: Bool
    /// Whether the identity's entity tag is sent as `If-None-Match`: asks whether a finished file is still current.
    package let sendsIfNoneMatch: Bool
    /// Whether the connection is not to be used again: the next request then may reach another node of a server farm.
    package var closesConnection = false

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

    /// The `Range` field value, absent if none is sent.
    package var rangeFieldValue: String? {
        guard self.isRanged else { return nil }
        guard let upperBound = self.upperBound else { return "bytes=\(self.lowerBound)-" }
        return ByteRange(self.lowerBound..<upperBound).fieldValue
    }

    /// Why a response does not have bytes of the resource that it must be of; nil if it may have them.
    fileprivate func objection(to resource: RemoteResource) -> RangeResponse? {
        guard let identity = self.identity else { return nil }
        guard self.comparesValidator else {
            return identity.differenceInContent(from: resource).map { .changed($0) }
        }
        return switch identity.verdict(on: resource) {
        case .same, .unproven: nil
        case .changed(let difference): .changed(difference)
        case .elsewhere(let difference): .moved(difference)
        }
    }

    /// As ``objection(to:)``, for a response that says nothing of the resource but where it is.
    fileprivate func objection(to locator: ResourceLocator?, saying difference: String? = nil) -> RangeResponse? {
        guard self.comparesValidator, let identity = self.identity,
            !identity.isSameResource(as: RemoteResource(completeLength: nil, locator: locator))
        else { return nil }
        return .moved(difference)
    }

    package var ifRangeFieldValue: String? {
        self.sendsIfRange ? self.identity?.validator.ifRangeFieldValue : nil
    }

    package var ifNoneMatchFieldValue: String? {
        self.sendsIfNoneMatch ? self.identity?.validator.entityTag?.fieldValue : nil
    }
}

/// The meaning of a response head for the range that was asked for: a total function, and the only way to a written byte.
///
/// The acceptance rule follows RFC 9110 §13.1.5, §14.2, §14.4 and §15.3.7. What it cannot accept is either an origin that
/// does no ranges (``ignoresRanges(_:)``), a changed resource (``changed(_:)``) or a broken answer (``malformed(_:)``).
package enum RangeResponse: Hashable, Sendable {
    /// The body holds exactly these bytes of this resource.
    case partial(ByteRange, RemoteResource)
    /// The body is the whole representation, from its first byte.
    case whole(RemoteResource)
    /// 304 to `If-None-Match`: what we have is current.
    case notModified
    /// 416: nothing lies in the range; the complete length where the origin says so.
    case unsatisfiable(completeLength: Int64?)
    /// The origin now holds another version of the resource; the clause says how it differs.
    case changed(String)
    /// The answer is another resource's; the clause says how that differs, if it does for certain.
    case moved(String?)
    /// The answer is no usable answer to a range: this origin serves one stream at best. The clause says why.
    case ignoresRanges(String)
    case redirected(status: Int, location: String)
    /// A refusal that may pass: 408, 421, 425, 429, 500, 502, 503, 504.
    case refused(status: Int, retryAfter: RetryAfter?)
    /// 401 or 407.
    case unauthorized(status: Int, challenge: String?)
    /// Any other status.
    case rejected(status: Int)
    /// The head breaks HTTP in a way that leaves its body without meaning.
    case malformed(String)

    /// Judges the head of the response to `request`.
    ///
    /// - Parameter locator: where it came from; absent where only one resource exists.
    package init(request: RangeRequest, head: ResponseHead, locator: ResourceLocator? = nil) {
        switch head.status {
        case 200: self = Self.whole(request, head, locator)
        case 206: self = Self.partial(request, head, locator)
        case 304 where request.sendsIfNoneMatch: self = request.objection(to: locator) ?? .notModified
        case 301, 302, 303, 307, 308: self = Self.redirect(head)
        case 401, 407:
            let name: HTTPField.Name = head.status == 401 ? .wwwAuthenticate : .proxyAuthenticate
            self = .unauthorized(status: head.status, challenge: head.values(name).first)
        case 408, 421, 425, 429, 500, 502, 503, 504:
            self = .refused(status: head.status, retryAfter: Self.retryAfter(head))
        case 416: self = Self.unsatisfiable(request, head, locator)
        case 400...599: self = .rejected(status: head.status)
        default: self = .malformed("status \(head.status) answers no request for a file")
        }
    }

    /// Where in the resource the body ends, as far as the head says.
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

    /// The resource that the body holds bytes of.
    package var resource: RemoteResource? {
        switch self {
        case .partial(_, let resource), .whole(let resource): resource
        case .notModified, .unsatisfiable, .changed, .moved, .ignoresRanges, .redirected, .refused, .unauthorized,
            .rejected,
            .malformed:
            nil
        }
    }

    /// Whether the body holds bytes of the resource.
    package var hasBytes: Bool { self.resource != nil }

    /// Whether the body holds all bytes of the resource, as a 206 does, too, that begins with the first and ends with the last.
    package var hasAllBytes: Bool {
        guard let resource = self.resource else { return false }
        return self.bodyStart == 0 && self.bodyEnd == resource.completeLength
    }

    /// Where in the resource the body begins.
    package var bodyStart: Int64 {
        if case .partial(let range, _) = self { return range.lowerBound }
        return 0
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
        if let objection = request.objection(to: resource) { return objection }
        return .whole(resource)
    }

    private static func partial(
        _ request: RangeRequest, _ head: ResponseHead, _ locator: ResourceLocator?
    ) -> RangeResponse {
        let isMultipart = head.values(.contentType).contains {
            $0.asciiLowercased.starts(with: "multipart/byteranges".utf8)
        }
        guard !isMultipart else {
            return .ignoresRanges("one range was asked for and multipart/byteranges came")
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
            return .ignoresRanges("byte \(request.lowerBound) was asked for and byte \(range.lowerBound) came")
        }
        if let upperBound = request.upperBound, range.upperBound > upperBound {
            return .ignoresRanges("bytes up to \(upperBound - 1) were asked for and up to \(range.upperBound - 1) came")
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
            return .ignoresRanges("it does not say the complete length")
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
        guard let location = head.single(.location), !location.isEmpty else {
            return .malformed("a \(head.status) redirect needs exactly one Location field")
        }
        return .redirected(status: head.status, location: location)
    }

    /// The announced body length; none where a transfer coding frames the body (RFC 9112 §6.3).
    private static func bodyLength(_ head: ResponseHead) -> ContentLength.Result {
        guard head.values(.transferEncoding).isEmpty else { return .absent }
        return ContentLength.parse(head.values(.contentLength))
    }

    /// Only chunked is undone by the client; bytes under another transfer coding are not the file's (RFC 9112 §6.1).
    private static func unknownTransferCoding(_ head: ResponseHead) -> String? {
        let codings = head.values(.transferEncoding)
        guard !codings.isEmpty else { return nil }
        guard codings.count > 1 || codings[0].asciiLowercased != Array("chunked".utf8) else { return nil }
        return "its Transfer-Encoding \"\(codings.joined(separator: ", ").printable)\" is not understood"
    }

    private static func resource(
        _ head: ResponseHead, completeLength: Int64?, _ locator: ResourceLocator?
    ) -> RemoteResource {
        let codings = head.values(.contentEncoding)
            .flatMap { $0.asciiLowercased.split(separator: UInt8(ascii: ",")) }
            .map { String(decoding: $0.trimmingFieldWhitespace, as: UTF8.self) }
            .filter { !$0.isEmpty && $0 != "identity" }
        return RemoteResource(
            completeLength: completeLength,
            validator: Validator(tagFields: head.values(.eTag), dateFields: head.values(.lastModified)),
            contentEncoding: codings.isEmpty ? nil : codings.joined(separator: ","),
            locator: locator
        )
    }

    private static func retryAfter(_ head: ResponseHead) -> RetryAfter? {
        let date = head.single(.date).flatMap { HTTPDate(fieldValue: $0) }
        return head.values(.retryAfter).first.flatMap { RetryAfter(fieldValue: $0, date: date, fallbackNow: nil) }
    }
}
