import TestSupport
import Testing

@testable import SegmentedDownload

/// Replays `Fixtures/Cases/locations.json`: `Location` fields and the URLs that they redirect to.
@Suite("Redirects of other programs' tests")
struct LocationCaseTests {
    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        var base: String
        var location: String
        /// The URL that is requested next; nil if the redirect is refused.
        var url: String?
        /// Why the value is another one than that of WHATWG or curl.
        var why: String?

        var testDescription: String { "\(self.location.debugDescription) from \(self.base)" }
    }

    private struct File: Decodable { var cases: [Case] }

    static let cases = caseFile("locations", as: File.self).cases

    @Test("The URL that a Location leads to", arguments: Self.cases)
    func replay(given: Case) throws {
        let base = try SourceURL(given.base)
        let url = try? base.resolve(location: given.location)
        #expect(url?.string == given.url, "\(given.why ?? "")")
    }

    @Test("No case is lost")
    func count() {
        #expect(Self.cases.count >= 186)
    }
}
