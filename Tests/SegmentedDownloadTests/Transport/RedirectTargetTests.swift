import HTTPTypes
import SegmentedDownloadCore
import Synchronization
import Testing

@testable import SegmentedDownload

@Suite("The remembered target of a redirect")
struct RedirectTargetTests {
    /// Sends the given answers in order, and records what was requested.
    private final class Scripted: HTTPTransport {
        private let answers: Mutex<[ResponseHead]>
        private let requests = Mutex<[TransportRequest]>([])

        init(_ answers: [ResponseHead]) { self.answers = Mutex(answers) }

        /// The value of `Authorization` in each request.
        var authorizations: [String] { self.requests.withLock { $0.map { $0.fields[.authorization] ?? "" } } }

        var cookies: [String] { self.requests.withLock { $0.map { $0.fields[.cookie] ?? "" } } }

        var requested: [String] { self.requests.withLock { $0.map(\.url.path) } }

        /// The optional fields of each request, without its Accept-Encoding if that is the usual one.
        var fields: [String] {
            self.requests.withLock { requests in
                requests.map { request in
                    let coding = request.fields[.acceptEncoding] == "identity" ? [] : ["any coding"]
                    return ([request.fields[.range], request.fields[.ifRange]].compactMap(\.self) + coding)
                        .joined(separator: ", ")
                }
            }
        }

        func withResponse<Answer: Sendable>(
            to request: TransportRequest,
            _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
        ) async throws -> Answer {
            self.requests.withLock { $0.append(request) }
            let head = try self.answers.withLock { answers in
                try #require(!answers.isEmpty)
                return answers.removeFirst()
            }
            return try await consume(head, Empty())
        }

        func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {}
    }

    private struct Empty: ResponseBody {
        func next() async throws -> (any BodyChunk)? { nil }
    }

    private static func redirect(to path: String) -> ResponseHead {
        ResponseHead(status: 302, fields: [.location: path])
    }

    private static let bytes = ResponseHead(
        status: 206, fields: [.contentRange: "bytes 0-9/10", .contentLength: "10", .eTag: "\"a\""])

    @Test("A target with another resource is not remembered: the next request goes to the source again")
    func otherResource() async throws {
        let transport = Scripted([
            Self.redirect(to: "/one"), Self.bytes, ResponseHead(status: 403, fields: [:]),
            Self.redirect(to: "/two"), Self.bytes, Self.redirect(to: "/one"), Self.bytes, Self.bytes,
        ])
        let follower = RedirectFollower(
            source: try SourceURL("http://host/file"), fields: [:], access: Access(), transport: transport)
        let first = try await follower.withResponse(to: RangeRequest(lowerBound: 0)) { _, response, _, _ in response }
        guard case .partial(_, let resource) = first else {
            Issue.record("\(first)")
            return
        }
        let range = RangeRequest(lowerBound: 0, upperBound: 10, identity: resource)
        var answers: [RangeResponse] = []
        for _ in 0..<3 {
            answers.append(try await follower.withResponse(to: range) { _, response, _, _ in response })
        }
        #expect(answers.first == .moved(nil))
        #expect(answers.map(\.hasBytes) == [false, true, true])
        #expect(transport.requested == ["/file", "/one", "/one", "/file", "/two", "/file", "/one", "/one"])
    }

    private static func follower(_ transport: Scripted, _ access: Access = Access(), path: String = "/file") throws
        -> RedirectFollower
    {
        RedirectFollower(
            source: try SourceURL("http://host\(path)"), fields: [:], access: access, transport: transport)
    }

    private static func whole(offersRanges: Bool = false) -> ResponseHead {
        ResponseHead(
            status: 200,
            fields: offersRanges
                ? [.contentLength: "10", .eTag: "\"a\"", .acceptRanges: "bytes"]
                : [.contentLength: "10", .eTag: "\"a\""])
    }

    private static func refusal(_ status: Int) -> ResponseHead { ResponseHead(status: status, fields: [:]) }

    @Test(
        "A target that answers with anything else than what was asked for is forgotten, and the source asked again",
        arguments: [400, 401, 403, 404, 405, 410, 416, 500, 502, 302, 200])
    func expired(status: Int) async throws {
        let page: ResponseHead =
            status == 302
            ? Self.redirect(to: "/expired")
            : ResponseHead(status: status, fields: [.contentLength: "3", .eTag: "\"b\""])
        let transport = Scripted([
            Self.redirect(to: "/obj?token=1"), Self.bytes, page, Self.redirect(to: "/obj?token=2"), Self.bytes,
        ])
        let follower = try Self.follower(transport)
        let first = try await follower.withResponse(to: RangeRequest(lowerBound: 0)) { _, response, _, _ in response }
        let range = RangeRequest(lowerBound: 0, upperBound: 10, identity: first.resource)
        // Another query of the same path is the same file if its strong tag and its length are equal.
        #expect(try await follower.withResponse(to: range) { _, response, _, _ in response.hasBytes })
        #expect(transport.requested == ["/file", "/obj", "/obj", "/file", "/obj"])
    }

    private static func challenge(_ nonce: String, isStale: Bool = false) -> ResponseHead {
        ResponseHead(
            status: 401,
            fields: [.wwwAuthenticate: "Digest realm=\"r\", qop=\"auth\", nonce=\"\(nonce)\", stale=\(isStale)"])
    }

    private static func follower(_ transport: Scripted, hidesPasswords: Bool) throws -> RedirectFollower {
        var access = Access()
        access.hidesPasswords = hidesPasswords
        return RedirectFollower(
            source: try SourceURL("http://host/file?q"), fields: [:], credentials: .basic(user: "u", password: "p"),
            access: access, transport: transport)
    }

    @Test("A Digest challenge is answered, and the nonce used again until it is stale", arguments: [false, true])
    func digest(hidesPasswords: Bool) async throws {
        let transport = Scripted([
            Self.challenge("1"), Self.bytes, Self.bytes, Self.challenge("2", isStale: true), Self.bytes,
            Self.redirect(to: "http://other/"), Self.bytes,
        ])
        let follower = try Self.follower(transport, hidesPasswords: hidesPasswords)
        for _ in 0..<4 {
            #expect(try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response.hasBytes })
        }
        let sent = transport.authorizations
        #expect(sent[0] == (hidesPasswords ? "" : "Basic dTpw"))
        let numbers = sent.map { text in
            AuthChallenge.all(in: [text]).first.map { "\($0["nonce"] ?? "") \($0["nc"] ?? "")" } ?? ""
        }
        #expect(numbers[1...] == ["1 00000001", "1 00000002", "1 00000003", "2 00000001", "2 00000002", ""])
        #expect(sent[1].contains("uri=\"/file?q\""))
    }

    @Test("A wrong password, and a server that never accepts a nonce, end after a few requests")
    func wrongPassword() async throws {
        let wrong = Scripted([Self.challenge("1"), Self.challenge("1")])
        let follower = try Self.follower(wrong, hidesPasswords: false)
        let answer = try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response }
        guard case .unauthorized = answer else {
            Issue.record("\(answer)")
            return
        }
        let endless = Scripted((1...5).map { Self.challenge("\($0)") })
        let other = try Self.follower(endless, hidesPasswords: false)
        _ = try await other.withResponse(to: RangeRequest()) { _, response, _, _ in response }
        #expect(endless.requested.count == 5)
    }

    @Test("A redirect to the same resource that asks to wait is a refusal, and its target is asked next")
    func deferred() async throws {
        let wait = ResponseHead(status: 301, fields: [.location: "/file?n=1", .retryAfter: "2"])
        let elsewhere = ResponseHead(status: 301, fields: [.location: "/other", .retryAfter: "2"])
        let transport = Scripted([wait, wait, elsewhere, Self.bytes])
        let follower = try Self.follower(transport)
        for _ in 0..<2 {
            let answer = try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response }
            #expect(
                answer == .refused(status: 301, retryAfter: RetryAfter(fieldValue: "2", date: nil, fallbackNow: nil)))
        }
        #expect(try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response.hasBytes })
        #expect(transport.requested == ["/file", "/file", "/file", "/other"])
    }

    @Test(
        "What a server refuses is left out of the request, which is made again, and of the first one for another file",
        arguments: [
            (405, Self.whole(), ["bytes=0-", "any coding"], "any coding"),
            (404, Self.whole(offersRanges: true), ["bytes=0-", "any coding"], "any coding"),
            (406, Self.bytes, ["bytes=0-", "bytes=0-, any coding"], "bytes=0-, any coding"),
            (400, Self.bytes, ["bytes=0-", "bytes=0-67108863"], "bytes=0-67108863"),
            (416, Self.bytes, ["bytes=0-", "bytes=0-67108863"], "bytes=0-67108863"),
        ])
    func refused(status: Int, answer: ResponseHead, requests: [String], next: String) async throws {
        let transport = Scripted([Self.refusal(status), answer, answer])
        let access = Access()
        let response = try await Self.follower(transport, access).withResponse(to: RangeRequest()) {
            _, response, _, _ in response
        }
        // A server that says so serves ranges, although it refused this one.
        #expect(response.hasBytes && response.hasAllBytes)
        if answer == Self.whole(offersRanges: true) {
            guard case .partial = response else { throw DownloadError(.internal, "\(response)") }
        }
        _ = try await Self.follower(transport, access, path: "/other").withResponse(to: RangeRequest()) {
            _, response, _, _ in response
        }
        #expect(transport.fields == requests + [next])
    }

    @Test("A status that a request gets whatever it leaves out is final, and is not asked about again")
    func final() async throws {
        let transport = Scripted(Array(repeating: Self.refusal(403), count: 4))
        let follower = try Self.follower(transport)
        for _ in 0..<2 {
            #expect(
                try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response }
                    == .rejected(status: 403))
        }
        #expect(transport.fields == ["bytes=0-", "bytes=0-67108863", "any coding", "bytes=0-"])
    }

    @Test("Nothing is left out of an additional request, which may be one too many, and not the range of a part")
    func additional() async throws {
        var range = RangeRequest(lowerBound: 0, upperBound: 10)
        range.isAdditional = true
        let transport = Scripted([Self.refusal(403), Self.refusal(405), Self.refusal(405)])
        let answer = try await Self.follower(transport).withResponse(to: range) { _, response, _, _ in response }
        #expect(answer == .rejected(status: 403) && transport.fields.count == 1)
        let part = RedirectFollower(
            source: try SourceURL("http://host/file"), fields: [:], access: Access(), transport: transport,
            part: DownloadOptions.Part(first: 5, last: 9))
        #expect(
            try await part.withResponse(to: RangeRequest()) { _, response, _, _ in response } == .rejected(status: 405))
        #expect(transport.fields == ["bytes=0-9", "bytes=5-9", "bytes=5-9, any coding"])
    }

    @Test("After two failures that may be temporary, every other request for the first bytes is a plain one")
    func temporary() async throws {
        let transport = Scripted(Array(repeating: Self.refusal(503), count: 4) + [Self.whole()])
        let follower = try Self.follower(transport)
        for _ in 0..<4 {
            let answer = try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response }
            #expect(answer == .refused(status: 503, retryAfter: nil))
        }
        #expect(try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response }.hasAllBytes)
        #expect(transport.fields == ["bytes=0-", "bytes=0-", "any coding", "bytes=0-", "any coding"])
    }

    @Test("If a range is refused again and again, the whole file is asked for in turn, unless another request is open")
    func refusedRange() async throws {
        for isAdditional in [false, true] {
            let transport = Scripted([Self.bytes] + Array(repeating: Self.refusal(500), count: 6))
            let follower = try Self.follower(transport)
            let first = try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response }
            var range = RangeRequest(lowerBound: 5, upperBound: 10, identity: first.resource, sendsIfRange: true)
            (range.mayGetWhole, range.isAdditional) = (true, isAdditional)
            for _ in 0..<6 {
                _ = try await follower.withResponse(to: range) { _, response, _, _ in response }
            }
            let asked = "bytes=5-9, \"a\""
            let expected = isAdditional ? [] : ["bytes=5-9", "any coding", "bytes=5-9", "any coding"]
            let rest = Array(repeating: asked, count: 4 - expected.count)
            #expect(transport.fields == ["bytes=0-", asked, asked] + expected + rest)
        }
    }

    @Test("That the whole file is sent does not show that a range of it is served")
    func refusedRangeOfServedFile() async throws {
        let whole = ResponseHead(status: 200, fields: [.contentLength: "10", .eTag: "\"a\""])
        let refusal = Self.refusal(500)
        let transport = Scripted([Self.bytes, refusal, refusal, refusal, whole, refusal, whole, Self.bytes])
        let follower = try Self.follower(transport)
        let first = try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response }
        var range = RangeRequest(lowerBound: 0, upperBound: 10, identity: first.resource)
        range.mayGetWhole = true
        for _ in 0..<7 { _ = try await follower.withResponse(to: range) { _, response, _, _ in response } }
        let (asked, askedPlainly) = ("bytes=0-9", "bytes=0-9, any coding")
        #expect(
            transport.fields
                == ["bytes=0-", asked, asked, asked, "any coding", askedPlainly, "any coding", askedPlainly])
    }

    @Test("A request for missing bytes is made again without If-Range")
    func conditional() async throws {
        let transport = Scripted([Self.bytes, Self.refusal(412), Self.bytes])
        let follower = try Self.follower(transport)
        let first = try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response }
        let range = RangeRequest(
            lowerBound: 0, upperBound: 10, identity: first.resource, sendsIfRange: true)
        #expect(try await follower.withResponse(to: range) { _, response, _, _ in response }.hasBytes)
        #expect(transport.fields == ["bytes=0-", "bytes=0-9, \"a\"", "bytes=0-9"])
    }

    @Test("What an origin refuses is left out for a hundred files, and then sent again")
    func forgotten() throws {
        let refused = RefusedFields()
        let origin = try SourceURL("http://host/").origin
        refused.note(.all, by: origin)
        #expect((0..<101).map { _ in refused.take(for: origin) } == Array(repeating: .all, count: 100) + [[]])
        #expect(refused.take(for: try SourceURL("https://host/").origin) == [])
    }

    @Test("Another node is sought without the cookies that servers have set, but for those of redirects")
    func session() async throws {
        let other = ResponseHead(status: 200, fields: [.contentLength: "10", .eTag: "\"b\"", .setCookie: "node=b"])
        let transport = Scripted([other, other, other, Self.redirect(to: "/two"), other])
        let follower = try Self.follower(transport)
        let first = RemoteResource(completeLength: 10)
        for leavesSession in [false, false, true, true] {
            var range = RangeRequest(lowerBound: 0, upperBound: 10, identity: first)
            range.leavesSession = leavesSession
            _ = try await follower.withResponse(to: range) { _, response, _, _ in response }
        }
        #expect(transport.cookies == ["", "node=b", "", "", "node=b"])
    }

    @Test("A refusal is not met again by each attempt to see the recorded version")
    func refusedAndChanged() async throws {
        let other = ResponseHead(status: 200, fields: [.contentLength: "10", .eTag: "\"b\""])
        let transport = Scripted([Self.bytes, Self.refusal(405), other, other])
        let follower = try Self.follower(transport)
        let first = try await follower.withResponse(to: RangeRequest()) { _, response, _, _ in response }
        let range = RangeRequest(lowerBound: 0, upperBound: 10, identity: first.resource)
        for _ in 0..<2 {
            let answer = try await follower.withResponse(to: range) { _, response, _, _ in response }
            guard case .changed = answer else { throw DownloadError(.internal, "\(answer)") }
        }
        #expect(transport.fields == ["bytes=0-", "bytes=0-9", "any coding", "any coding"])
    }
}
