import TestSupport
import Testing

@testable import SegmentedDownload

/// Replays `Fixtures/Cases/source-urls.json`: URLs as users type them.
@Suite("URLs of other programs' tests")
struct SourceURLCaseTests {
    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        var input: String
        /// The URL that is requested; nil if the input is refused.
        var url: String?
        /// The host that is compared, where it is written differently in the URL.
        var host: String?
        /// Why the value is another one than that of WHATWG or curl.
        var why: String?

        var testDescription: String { self.input.debugDescription }
    }

    private struct File: Decodable { var cases: [Case] }

    static let cases = caseFile("source-urls", as: File.self).cases

    @Test("The URL that is requested", arguments: Self.cases)
    func replay(given: Case) {
        let url = try? SourceURL(given.input)
        #expect(url?.string == given.url, "\(given.why ?? "")")
        if let host = given.host { #expect(url?.origin.host == host) }
    }

    @Test("No case is lost")
    func count() {
        #expect(Self.cases.count >= 320)
    }
}
