import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

/// Replays `Fixtures/Cases/cookies.json`: `Set-Cookie` fields, and the `Cookie` field of a later request.
@Suite("Cookies of other programs' tests")
struct CookieCaseTests {
    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        /// The `Set-Cookie` fields of one response.
        var set: [String]
        /// The URL of that response.
        var from: String
        /// The URL of the request that follows.
        var to: String
        /// The `Cookie` field of that request; nil if it has none.
        var sent: String?
        /// Why the value is another one than that of RFC 6265 or curl.
        var why: String?

        var testDescription: String { "\(self.set) from \(self.from) to \(self.to)" }
    }

    struct Date: Decodable, Sendable, CustomTestStringConvertible {
        /// The value of `Expires`.
        var date: String
        /// Seconds since 1970; nil if it is not a date.
        var seconds: Int64?

        var testDescription: String { self.date.debugDescription }
    }

    private struct File: Decodable, Sendable {
        /// The time of the response and the request, in seconds since 1970.
        var now: Double
        var cases: [Case]
        var dates: [Date]
    }

    private static let file = caseFile("cookies", as: File.self)
    static let cases = Self.file.cases
    static let dates = Self.file.dates

    @Test("The cookies that a request sends", arguments: Self.cases)
    func replay(given: Case) throws {
        let (response, request) = (try SourceURL(given.from), try SourceURL(given.to))
        let now = Self.file.now
        let jar = CookieJar(suffixes: { nil }, now: { now })
        jar.note(given.set, from: response)
        #expect(jar.fieldValue(for: request, isNamed: true) == given.sent, "\(given.why ?? "")")
    }

    @Test("The time at which a cookie expires", arguments: Self.dates)
    func date(given: Date) {
        #expect(HTTPDate(cookieDate: given.date)?.secondsSinceEpoch == given.seconds)
    }

    @Test("No case is lost")
    func count() {
        #expect(Self.cases.count >= 260 && Self.dates.count >= 114)
    }
}
