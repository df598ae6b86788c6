import HTTPTypes
import SegmentedDownloadCore

/// A verdict accepts bytes exactly where the acceptance rule does.
///
/// The rule, which ``isAcceptable(_:_:_:)`` implements independently: status 206, not `multipart/byteranges`, exactly
/// one `Content-Range` in unit bytes, first = a, a <= last <= b, last < total, total as recorded; `Content-Length`, if
/// present, equals the range's length; content coding as recorded; validator equal, or missing from the start. The
/// complete length must be known from some field, and only the transfer coding chunked is allowed.
///
/// The input is text: `FIRST[-LAST][ FLAGS]` for the request (`u` no range, `r` If-Range, `n` If-None-Match), fields of
/// the response that defined the resource, an empty line, a status, and the fields to judge.
enum RangeResponseProperties {
    private typealias Fields = [(name: String, value: String)]

    private struct Asked {
        var first: Int64 = 0
        var last: Int64?
        var flags: [UInt8] = []
    }

    static func check(_ bytes: [UInt8]) throws(Violation) {
        var lines = Reference.split(bytes, at: "\n")[...]
        let asked = Self.asked(lines.popFirst() ?? [])
        let (recordedHead, recordedFields) = Self.fields(&lines)
        let status = Int(Reference.number(lines.popFirst() ?? []) ?? 206)
        let (currentHead, current) = Self.fields(&lines)

        // As at the first response: the recorded identity is the one of an earlier verdict.
        var identity: RemoteResource?
        let recorded: Fields? = recordedFields.isEmpty ? nil : recordedFields
        if recorded != nil {
            let head = ResponseHead(status: 200, fields: recordedHead)
            guard case .whole(let resource) = RangeResponse(request: RangeRequest(isRanged: false), head: head) else {
                return
            }
            identity = resource
        }
        let request = RangeRequest(
            lowerBound: asked.first, upperBound: asked.last.map { $0 + 1 }, isRanged: !asked.flags.contains(0x75),
            identity: identity, sendsIfRange: asked.flags.contains(0x72), sendsIfNoneMatch: asked.flags.contains(0x6E))
        let verdict = RangeResponse(request: request, head: ResponseHead(status: status, fields: currentHead))

        let range = status == 206 ? Self.isAcceptable(asked, recorded, current) : nil
        if case .partial(let found, let resource) = verdict {
            try require(
                range == found.bounds, "\(verdict) although only \(range.map { "\($0)" } ?? "nothing") is allowed")
            try require(found.upperBound <= resource.completeLength ?? -1, "\(verdict) reaches past the end")
        } else {
            try require(range == nil, "\(verdict) although the rule accepts it")
        }
        let isWhole = Self.isSuccess(status) && Self.isWhole(recorded, current)
        if case .whole = verdict {
            try require(isWhole, "\(verdict) although the response is not the complete same file")
        } else {
            try require(!isWhole, "\(verdict) although the response is the complete same file")
        }
        try Self.checkForm(verdict, status)
    }

    /// Whether the status says that the body is the file: any 2xx but 202 and 204 to 206.
    private static func isSuccess(_ status: Int) -> Bool {
        status / 100 == 2 && ![202, 204, 205, 206].contains(status)
    }

    private static func checkForm(_ verdict: RangeResponse, _ status: Int) throws(Violation) {
        try require(!verdict.hasBytes || Self.isSuccess(status) || status == 206, "a \(status) with bytes")
        try require(verdict.bodyStart >= 0 && verdict.bodyEnd ?? .max >= verdict.bodyStart, "\(verdict) ends early")
        if case .unsatisfiable(let length) = verdict {
            try require(status == 416 && length ?? 0 >= 0, "\(verdict) for \(status)")
        }
        let failure = verdict.failure(host: "host")
        let texts = [failure.message, failure.hint ?? ""]
        for text in texts {
            try require(
                text.unicodeScalars.allSatisfy { Reference.isShowable($0) }, "\(text.debugDescription) is shown")
        }
        try require(failure.retryAfter ?? .zero >= .zero, "\(verdict) has a negative wait")
    }

    // MARK: The rule

    private static func isAcceptable(_ asked: Asked, _ recorded: Fields?, _ current: Fields) -> Range<Int64>? {
        let lengths = Self.values("content-length", current)
        let transferCodings = Self.values("transfer-encoding", current)
        let ranges = Self.values("content-range", current)
        let multipart = Array("multipart/byteranges".utf8)
        guard
            !Self.values("content-type", current).contains(where: {
                Reference.lowercased($0.utf8).starts(with: multipart)
            }), Self.isChunkedOrAbsent(transferCodings), lengths.isEmpty || transferCodings.isEmpty,
            ranges.count == 1, let range = Reference.contentRange(ranges[0]),
            range.first == asked.first, range.last <= asked.last ?? .max
        else { return nil }
        let recordedLength = recorded.flatMap { Self.bodyLength($0) }
        guard let total = range.total ?? recordedLength, range.last < total, total == recordedLength ?? total else {
            return nil
        }
        switch Reference.contentLength(lengths) {
        case .malformed: return nil
        case .exact(let length): if length != range.last - range.first + 1 { return nil }
        case .absent: break
        }
        return Self.isSame(recorded, current) ? range.first..<range.last + 1 : nil
    }

    private static func isWhole(_ recorded: Fields?, _ current: Fields) -> Bool {
        let transferCodings = Self.values("transfer-encoding", current)
        guard Self.values("content-range", current).isEmpty, Self.isChunkedOrAbsent(transferCodings),
            !transferCodings.isEmpty || Reference.contentLength(Self.values("content-length", current)) != .malformed
        else { return false }
        if let was = recorded.flatMap({ Self.bodyLength($0) }), let now = Self.bodyLength(current), was != now {
            return false
        }
        return Self.isSame(recorded, current)
    }

    /// Compares validator and coding; the caller compares lengths.
    private static func isSame(_ recorded: Fields?, _ current: Fields) -> Bool {
        guard let recorded else { return true }
        func validator(_ fields: Fields) -> (tags: [String], dates: [String]) {
            (Self.values("etag", fields), Self.values("last-modified", fields))
        }
        return ValidatorProperties.expected(validator(recorded), validator(current)) != .changed
            && Self.codings(recorded) == Self.codings(current)
    }

    private static func bodyLength(_ fields: Fields) -> Int64? {
        guard Self.values("transfer-encoding", fields).isEmpty,
            case .exact(let length) = Reference.contentLength(Self.values("content-length", fields))
        else { return nil }
        return length
    }

    private static func isChunkedOrAbsent(_ values: [String]) -> Bool {
        values.isEmpty || (values.count == 1 && Reference.lowercased(values[0].utf8) == Array("chunked".utf8))
    }

    private static func codings(_ fields: Fields) -> [[UInt8]] {
        Self.values("content-encoding", fields).flatMap { Reference.split($0.utf8, at: ",") }
            .map { Reference.lowercased(Reference.trimmed($0)) }
            .filter { !$0.isEmpty && $0 != Array("identity".utf8) }
    }

    private static func values(_ name: String, _ fields: Fields) -> [String] {
        fields.filter { $0.name == name }.map(\.value)
    }

    // MARK: Reading the bytes

    private static func asked(_ line: [UInt8]) -> Asked {
        let words = Reference.split(line, at: " ")
        let ends = Reference.split(words[0], at: "-")
        var asked = Asked()
        asked.flags = words.count > 1 ? words[1] : []
        // Without a range the request is for the complete file.
        guard !asked.flags.contains(0x75) else { return asked }
        asked.first = min(Reference.number(ends[0]) ?? 0, .max - 2)
        if ends.count > 1, let last = Reference.number(ends[1]), last >= asked.first, last < .max { asked.last = last }
        return asked
    }

    /// Reads fields up to an empty line or the end: as the transport builds them, and as plain pairs.
    private static func fields(_ lines: inout ArraySlice<[UInt8]>) -> (HTTPFields, Fields) {
        var fields = HTTPFields()
        var pairs: Fields = []
        while let line = lines.popFirst(), !line.isEmpty {
            guard let colon = line.firstIndex(of: 0x3A),
                let name = HTTPField.Name(String(decoding: line[..<colon], as: UTF8.self))
            else { continue }
            let field = HTTPField(name: name, value: String(decoding: line[(colon + 1)...], as: UTF8.self))
            fields.append(field)
            pairs.append((name.canonicalName, field.value))
        }
        return (fields, pairs)
    }
}
