import HTTPTypes
import SegmentedDownloadCore
import Testing

/// What a response that yields no bytes means to a person.
@Suite("Failures of responses")
struct ResponseFailureTests {
    @Test(
        "Each has its code, and only a refusal may pass",
        arguments: [
            (.refused(status: 503, retryAfter: nil), .server, 503),
            (.unauthorized(status: 401, challenge: nil), .auth, 401),
            (.rejected(status: 404), .server, 404), (.malformed("no sense"), .protocol, nil),
            (.ignoresRanges("no ranges"), .protocol, nil),
            (.redirected(status: 302, location: "http://elsewhere/"), .server, 302),
            (.changed("another length"), .changed, nil), (.moved(nil), .changed, nil),
            (.unsatisfiable(completeLength: 5), .protocol, 416), (.notModified(), .protocol, nil),
        ] as [(RangeResponse, DownloadError.Code, Int?)])
    func code(response: RangeResponse, code: DownloadError.Code, status: Int?) {
        let failure = response.failure(host: "host")
        #expect(failure.code == code && failure.status == status)
        #expect(failure.isTransient == (status == 503))
    }

    @Test(
        "A new link is suggested where an old one may have expired",
        arguments: [(403, true), (410, true), (404, false)])
    func expired(status: Int, isSuggested: Bool) {
        let failure = RangeResponse.rejected(status: status).failure(host: "host")
        #expect(failure.hint?.contains("has expired") == isSuggested)
        #expect((failure.message == "host answered 404 (Not Found)") == (status == 404))
    }

    @Test(
        "What a server says about a refusal is shown, printable and not too long",
        arguments: [
            (
                "X-Error-Message", "Access to model a/b is restricted.",
                "host answered 403 (Forbidden): Access to model a/b is restricted."
            ),
            ("x-ms-error-code", "AuthenticationFailed", "host answered 403 (Forbidden): AuthenticationFailed"),
            ("X-Error-Message", "", "host answered 403 (Forbidden)"), ("X-Other", "a", "host answered 403 (Forbidden)"),
            (
                "X-Error-Message", String(repeating: "a", count: 400),
                "host answered 403 (Forbidden): " + String(repeating: "a", count: 300) + "…"
            ),
        ])
    func explanation(name: String, value: String, message: String) throws {
        let name = try #require(HTTPField.Name(name))
        let fields: HTTPFields = [name: value]
        let response = RangeResponse(request: RangeRequest(), head: ResponseHead(status: 403, fields: fields))
        #expect(response.failure(host: "host").message == message)
        let unauthorized = RangeResponse(request: RangeRequest(), head: ResponseHead(status: 401, fields: fields))
        #expect(unauthorized.failure(host: "host").code == .auth)
    }

    @Test("What a server says beside its challenge is shown with it")
    func challenge() throws {
        let name = try #require(HTTPField.Name("X-Error-Message"))
        let fields: HTTPFields = [.wwwAuthenticate: "Bearer error=\"invalid_token\"", name: "Expired"]
        let response = RangeResponse(request: RangeRequest(), head: ResponseHead(status: 401, fields: fields))
        let message = response.failure(host: "host").message
        #expect(message == "host answered 401 (Bearer error=\"invalid_token\"; Expired)")
    }

    @Test("What the body of a refusal says is shown like what its fields say, and no other response has it")
    func body() {
        let rejected = RangeResponse.rejected(status: 403)
        #expect(rejected.isExplainable)
        #expect(rejected.saying("Expired").failure(host: "h").message == "h answered 403 (Forbidden): Expired")
        let asked = RangeResponse.unauthorized(status: 401, challenge: nil)
        #expect(asked.saying("Expired").failure(host: "h").message == "h answered 401 (Expired)")
        let refused = RangeResponse.refused(status: 503, retryAfter: nil)
        #expect(!refused.isExplainable && refused.saying("Expired") == refused)
    }

    @Test("Credentials are suggested for whom they are asked")
    func credentials() {
        let proxy = RangeResponse.unauthorized(status: 407, challenge: "Basic").failure(host: "host")
        #expect(proxy.remedy == .giveProxyCredentials && proxy.message.contains("(Basic)"))
        let origin = RangeResponse.unauthorized(status: 401, challenge: nil).failure(host: "host")
        #expect(origin.remedy == .giveCredentials)
    }
}
