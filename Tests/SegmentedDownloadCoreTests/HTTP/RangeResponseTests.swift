import HTTPTypes
import SegmentedDownloadCore
import Testing

@Suite("Range response")
struct RangeResponseTests {
    private static let resource = RemoteResource.tagged("\"a\"", length: 1000)
    private static let first = RangeRequest()
    private static let middle = RangeRequest(lowerBound: 100, upperBound: 200, identity: resource)

    private static func judge(
        _ request: RangeRequest, _ status: Int, _ fields: [(HTTPField.Name, String)] = []
    ) -> RangeResponse {
        var all = HTTPFields()
        for (name, value) in fields { all.append(HTTPField(name: name, value: value)) }
        return RangeResponse(request: request, head: ResponseHead(status: status, fields: all))
    }

    private enum Kind: String {
        case partial, whole, notModified, unsatisfiable, changed, moved, ignoresRanges, redirected, refused,
            unauthorized
        case rejected, malformed
    }

    private static func kind(_ response: RangeResponse) -> Kind {
        switch response {
        case .partial: .partial
        case .whole: .whole
        case .notModified: .notModified
        case .unsatisfiable: .unsatisfiable
        case .changed: .changed
        case .moved: .moved
        case .ignoresRanges: .ignoresRanges
        case .redirected: .redirected
        case .refused: .refused
        case .unauthorized: .unauthorized
        case .rejected: .rejected
        case .malformed: .malformed
        }
    }

    private static let good: [(HTTPField.Name, String)] = [
        (.contentRange, "bytes 100-199/1000"), (.contentLength, "100"), (.eTag, "\"a\""),
    ]

    /// The verdict on the good answer to `middle` with one field replaced or removed.
    private static func answer(_ name: HTTPField.Name, _ value: String?) -> Kind {
        let rest = Self.good.filter { $0.0 != name }
        return Self.kind(Self.judge(Self.middle, 206, rest + (value.map { [(name, $0)] } ?? [])))
    }

    @Test("A 206 with the recorded range, length, total and validator is accepted")
    func accepted() {
        #expect(Self.judge(Self.middle, 206, Self.good) == .partial(ByteRange(100..<200), Self.resource))
        #expect(Self.judge(Self.middle, 206, Self.good).bodyEnd == 200)
        #expect(Self.judge(Self.middle, 206, Self.good).bodyStart == 100)
        #expect(Self.answer(.contentLength, nil) == .partial)
    }

    @Test("A2: Accept-Ranges is ignored; a 200 is the complete file, from its first byte")
    func acceptRanges() {
        let fields: [(HTTPField.Name, String)] = [(.acceptRanges, "bytes"), (.contentLength, "1000"), (.eTag, "\"a\"")]
        let response = Self.judge(Self.middle, 200, fields)
        #expect(response == .whole(Self.resource))
        #expect(response.bodyStart == 0 && response.bodyEnd == 1000)
        #expect(
            Self.judge(Self.first, 200, []) == .whole(RemoteResource(completeLength: nil, endsWithConnection: true)))
        #expect(Self.judge(Self.first, 200, []).bodyEnd == nil)
    }

    @Test("A4: a 206 that begins at another offset is refused", arguments: ["0-99", "99-198", "101-200", "101-150"])
    func otherStart(range: String) {
        let rest = Self.good.filter { $0.0 == .eTag }
        #expect(
            Self.kind(Self.judge(Self.middle, 206, rest + [(.contentRange, "bytes \(range)/1000")])) == .ignoresRanges)
    }

    @Test("A7: a 206 needs exactly one Content-Range")
    func contentRangeCount() {
        #expect(Self.answer(.contentRange, nil) == .ignoresRanges)
        #expect(Self.kind(Self.judge(Self.middle, 206, Self.good + [Self.good[0]])) == .ignoresRanges)
    }

    @Test(
        "A9, A13: a Content-Range that is malformed or exceeds Int64 is refused",
        arguments: [
            "", "bytes", "bytes 100-199", "100-199/1000", "bytes=100-199/1000", "bytes 199-100/1000",
            "bytes 100-199/100",
            "bytes 100-199/18446744073709551616", "bytes 100-9223372036854775807/*", "items 100-199/1000",
            "bytes */1000",
            "bytes -100/1000", "bytes 100-199/1000, 300-399/1000",
        ]
    )
    func malformedContentRange(value: String) {
        #expect(Self.answer(.contentRange, value) == .ignoresRanges)
    }

    @Test("A10: another total means another resource")
    func otherTotal() {
        #expect(Self.answer(.contentRange, "bytes 100-199/1001") == .changed)
        #expect(Self.answer(.contentRange, "bytes 100-199/999") == .changed)
    }

    @Test("A11: an unknown total is accepted if it is known from elsewhere")
    func unknownTotal() {
        #expect(Self.answer(.contentRange, "bytes 100-199/*") == .partial)
        #expect(Self.kind(Self.judge(Self.first, 206, [(.contentRange, "bytes 0-99/*")])) == .ignoresRanges)
        let end = RangeRequest(lowerBound: 990, identity: Self.resource)
        let beyond: [(HTTPField.Name, String)] = [(.contentRange, "bytes 990-1000/*"), (.eTag, "\"a\"")]
        #expect(Self.kind(Self.judge(end, 206, beyond)) == .changed)
    }

    @Test("A14: a shorter 206 than requested is accepted for its own range")
    func shorter() {
        let fields: [(HTTPField.Name, String)] = [
            (.contentRange, "bytes 100-100/1000"), (.contentLength, "1"), (.eTag, "\"a\""),
        ]
        #expect(Self.judge(Self.middle, 206, fields).bodyEnd == 101)
    }

    @Test("A15: a longer 206 than requested is refused by its head")
    func longer() {
        let fields: [(HTTPField.Name, String)] = [(.contentRange, "bytes 100-200/1000"), (.eTag, "\"a\"")]
        #expect(Self.kind(Self.judge(Self.middle, 206, fields)) == .ignoresRanges)
    }

    @Test(
        "A17: multipart/byteranges to one range is refused in any spelling",
        arguments: ["multipart/byteranges", "Multipart/ByteRanges; boundary=x", "multipart/byteranges;boundary=x"]
    )
    func multipart(type: String) {
        #expect(Self.answer(.contentType, type) == .ignoresRanges)
        #expect(Self.answer(.contentType, "application/octet-stream") == .partial)
    }

    @Test("A17: multipart/byteranges after another Content-Type is refused too")
    func hiddenMultipart() {
        let types: [(HTTPField.Name, String)] = [(.contentType, "text/plain"), (.contentType, "multipart/byteranges")]
        #expect(Self.kind(Self.judge(Self.middle, 206, Self.good + types)) == .ignoresRanges)
    }

    @Test("A18: a 206 to a request without Range is accepted from byte 0 only")
    func unasked() {
        let request = RangeRequest(isRanged: false)
        #expect(Self.judge(request, 206, [(.contentRange, "bytes 0-99/1000")]).bodyEnd == 100)
        #expect(Self.kind(Self.judge(request, 206, [(.contentRange, "bytes 1-99/1000")])) == .ignoresRanges)
    }

    @Test(
        "A19, A21: a negative, ambiguous or too large Content-Length makes the response malformed",
        arguments: ["-1", "100, 200", "1e2", "18446744073709551716", "0x64", "", "100 100", "+100"]
    )
    func malformedLength(value: String) {
        #expect(Self.answer(.contentLength, value) == .malformed)
        #expect(Self.kind(Self.judge(Self.first, 200, [(.contentLength, value)])) == .malformed)
    }

    @Test("A19: identical lengths count as one, in one field or in two")
    func repeatedLength() {
        #expect(Self.answer(.contentLength, "100, 100") == .partial)
        #expect(Self.kind(Self.judge(Self.middle, 206, Self.good + [(.contentLength, "100")])) == .partial)
        #expect(Self.kind(Self.judge(Self.middle, 206, Self.good + [(.contentLength, "101")])) == .malformed)
    }

    @Test("A Content-Length that disagrees with the Content-Range is refused")
    func otherLength() {
        #expect(Self.answer(.contentLength, "99") == .ignoresRanges)
        #expect(Self.answer(.contentLength, "101") == .ignoresRanges)
    }

    @Test("A22: a transfer coding takes precedence over Content-Length, and such a part is not reliable")
    func transferEncoding() {
        let chunked: [(HTTPField.Name, String)] = [(.transferEncoding, "chunked"), (.contentLength, "50")]
        #expect(Self.judge(Self.first, 200, chunked) == .whole(RemoteResource(completeLength: nil)))
        #expect(
            Self.kind(Self.judge(Self.middle, 206, Self.good.filter { $0.0 != .contentLength } + chunked))
                == .ignoresRanges)
    }

    @Test("A26: a 416 gives the complete length if its Content-Range is well formed")
    func unsatisfiable() {
        #expect(Self.judge(Self.middle, 416, [(.contentRange, "bytes */7")]) == .unsatisfiable(completeLength: 7))
        for value in ["bytes */x", "bytes 0-1/7", "bytes */*"] {
            #expect(Self.judge(Self.middle, 416, [(.contentRange, value)]) == .unsatisfiable(completeLength: nil))
        }
        #expect(Self.judge(Self.middle, 416) == .unsatisfiable(completeLength: nil))
    }

    @Test("B1, B2, B6: a different, weak or missing entity tag means another resource, in a 206 and in a 200")
    func otherTag() {
        for tag in ["\"b\"", "W/\"a\"", nil, "a"] as [String?] {
            #expect(Self.answer(.eTag, tag) == .changed)
            let fields: [(HTTPField.Name, String)] = tag.map { [(.eTag, $0)] } ?? []
            #expect(Self.kind(Self.judge(Self.middle, 200, fields)) == .changed)
        }
        #expect(Self.kind(Self.judge(Self.middle, 206, Self.good + [(.eTag, "\"a\"")])) == .changed)
    }

    @Test("B7: a different or missing Last-Modified means another resource if there is no strong tag")
    func otherDate() {
        let date = "Tue, 14 Nov 2023 22:13:20 GMT"
        let identity = RemoteResource(
            completeLength: 1000, validator: Validator(entityTag: nil, lastModified: HTTPDate(fieldValue: date)))
        let request = RangeRequest(lowerBound: 100, upperBound: 200, identity: identity)
        let range = Self.good.filter { $0.0 == .contentRange }
        #expect(Self.kind(Self.judge(request, 206, range + [(.lastModified, date)])) == .partial)
        #expect(Self.kind(Self.judge(request, 206, range)) == .changed)
        let other = "Tue, 14 Nov 2023 22:13:21 GMT"
        #expect(Self.kind(Self.judge(request, 206, range + [(.lastModified, other)])) == .changed)
    }

    @Test("A date proves nothing if the response's Date is less than two seconds later, or is unknown and it is new")
    func newDate() {
        let modified = (HTTPField.Name.lastModified, "Tue, 14 Nov 2023 22:13:20 GMT")
        let now = HTTPDate(fieldValue: "Tue, 14 Nov 2023 22:13:50 GMT")
        for (dates, isWeak) in [
            (["Tue, 14 Nov 2023 22:13:21 GMT"], true), (["Tue, 14 Nov 2023 22:13:22 GMT"], false),
            // Not exactly one valid field: the date counts as sent when it was received, by another clock.
            ([], true), (["now"], true), (["Tue, 14 Nov 2023 22:13:22 GMT", "Tue, 14 Nov 2023 22:13:22 GMT"], true),
        ] {
            var fields: HTTPFields = [.contentLength: "1000"]
            fields.append(HTTPField(name: modified.0, value: modified.1))
            for date in dates { fields.append(HTTPField(name: .date, value: date)) }
            for (received, isWeak) in [(now, isWeak), (nil, isWeak && dates.first?.hasSuffix("21 GMT") == true)] {
                let head = ResponseHead(status: 200, fields: fields, received: received)
                let response = RangeResponse(request: RangeRequest(isRanged: false), head: head)
                #expect(response.resource?.validator.isDateWeak == isWeak, "\(dates)")
            }
        }
    }

    @Test("B4: without a recorded validator, an answer without one is accepted, and one with a validator is a change")
    func noValidator() {
        let request = RangeRequest(
            lowerBound: 100, upperBound: 200, identity: RemoteResource(completeLength: 1000))
        let bare = Self.good.filter { $0.0 != .eTag && $0.0 != .lastModified }
        #expect(Self.kind(Self.judge(request, 206, bare)) == .partial)
        #expect(Self.kind(Self.judge(request, 206, bare + [(.eTag, "\"a\"")])) == .changed)
    }

    @Test(
        "Names are compared as bytes: similar text does not match",
        arguments: ["chun\u{212A}ed", "chun ked", "chunked\u{301}"])
    func foreignTransferCoding(value: String) {
        #expect(Self.kind(Self.judge(Self.first, 200, [(.transferEncoding, value)])) == .malformed)
    }

    @Test("Two codings that only look alike are different")
    func foreignContentCoding() {
        let composed = RemoteResource(completeLength: 1, contentEncoding: "\u{E9}")
        let decomposed = RemoteResource(completeLength: 1, contentEncoding: "e\u{301}")
        #expect(composed.differenceInContent(from: decomposed) != nil)
        #expect(Self.answer(.contentType, "multipart/byteranges\u{301}") == .ignoresRanges)
    }

    @Test("F1, F2: the content coding is part of the resource's identity")
    func contentEncoding() {
        #expect(Self.answer(.contentEncoding, "gzip") == .changed)
        #expect(Self.answer(.contentEncoding, "identity") == .partial)
        guard case .whole(let resource) = Self.judge(Self.first, 200, [(.contentEncoding, " GZIP , identity, br")])
        else {
            Issue.record("not accepted")
            return
        }
        #expect(resource.contentEncoding == "gzip,br")
    }

    @Test(
        "D1, D3: a Retry-After is relative to the server's own date",
        arguments: [
            ("120", 120), ("99999999999999999999", 1 << 31), ("-1", nil), ("soon", nil),
            ("Tue, 14 Nov 2023 22:14:20 GMT", 60), ("Tue, 14 Nov 2023 22:00:00 GMT", 0),
        ] as [(String, Int64?)]
    )
    func retryAfter(value: String, seconds: Int64?) {
        let fields: [(HTTPField.Name, String)] = [(.retryAfter, value), (.date, "Tue, 14 Nov 2023 22:13:20 GMT")]
        guard case .refused(429, let retryAfter) = Self.judge(Self.first, 429, fields) else {
            Issue.record("not refused")
            return
        }
        #expect(retryAfter?.seconds == seconds)
    }

    @Test(
        "Each status has one meaning",
        arguments: [
            (408, Kind.refused), (425, .refused), (429, .refused), (500, .refused), (502, .refused), (503, .refused),
            (504, .refused), (401, .unauthorized), (407, .unauthorized), (400, .rejected), (403, .rejected),
            (404, .rejected), (410, .rejected), (412, .rejected), (421, .refused), (451, .rejected), (501, .rejected),
            (505, .rejected), (100, .malformed), (201, .whole), (204, .malformed), (205, .malformed),
            (300, .malformed), (304, .malformed), (305, .malformed), (600, .malformed), (0, .malformed),
            (-1, .malformed), (301, .malformed), (302, .malformed),
        ] as [(Int, Kind)]
    )
    private func statuses(status: Int, kind: Kind) {
        #expect(Self.kind(Self.judge(Self.first, status)) == kind)
    }

    @Test("A redirect needs one Location, which may be repeated", arguments: [301, 302, 303, 307, 308])
    func redirects(status: Int) {
        #expect(Self.judge(Self.first, status, [(.location, "/x")]) == .redirected(status: status, location: "/x"))
        #expect(Self.kind(Self.judge(Self.first, status, [(.location, "/x"), (.location, "/y")])) == .malformed)
        #expect(Self.kind(Self.judge(Self.first, status, [])) == .malformed)
        let twice = Self.judge(Self.first, status, [(.location, "/x"), (.location, "/x")])
        #expect(twice == .redirected(status: status, location: "/x"))
    }

    @Test("Other statuses of success bring the file, but for those without one", arguments: [201, 203, 207, 226, 299])
    func success(status: Int) {
        #expect(Self.judge(Self.first, status, []) == Self.judge(Self.first, 200, []))
        for without in [202, 204, 205] { #expect(Self.kind(Self.judge(Self.first, without, [])) != .whole) }
    }

    @Test("304 is accepted only as an answer to If-None-Match or If-Modified-Since")
    func notModified() {
        var dated = RangeRequest(lowerBound: 0, upperBound: 1)
        #expect(Self.kind(Self.judge(dated, 304)) == .malformed)
        dated.modifiedSince = HTTPDate(secondsSinceEpoch: 1_700_000_000)
        #expect(Self.judge(dated, 304) == .notModified())
        let request = RangeRequest(lowerBound: 0, upperBound: 1, identity: Self.resource, sendsIfNoneMatch: true)
        #expect(Self.judge(request, 304) == .notModified())
        #expect(request.ifNoneMatchFieldValue == "\"a\"")
        #expect(Self.kind(Self.judge(Self.middle, 304)) == .malformed)
    }

    @Test("A 200 with a Content-Range is malformed")
    func wholeWithRange() {
        #expect(Self.kind(Self.judge(Self.first, 200, [(.contentRange, "bytes 0-99/1000")])) == .malformed)
    }

    @Test("If-Range contains a strong tag or is absent")
    func ifRange() {
        func value(_ tag: String, sends: Bool) -> String? {
            RangeRequest(identity: .tagged(tag, length: 5), sendsIfRange: sends).ifRangeFieldValue
        }
        #expect(value("\"a\"", sends: true) == "\"a\"")
        #expect(value("\"a\"", sends: false) == nil)
        #expect(value("W/\"a\"", sends: true) == nil)
    }
}
