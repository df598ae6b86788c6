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

    @Test("Credentials are suggested for whom they are asked")
    func credentials() {
        let proxy = RangeResponse.unauthorized(status: 407, challenge: "Basic").failure(host: "host")
        #expect(proxy.remedy == .giveProxyCredentials && proxy.message.contains("(Basic)"))
        let origin = RangeResponse.unauthorized(status: 401, challenge: nil).failure(host: "host")
        #expect(origin.remedy == .giveCredentials)
    }
}
