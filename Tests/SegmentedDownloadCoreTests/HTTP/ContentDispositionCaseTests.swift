import SegmentedDownloadCore
import TestSupport
import Testing

/// Replays `Fixtures/Cases/disposition-names.json`: `Content-Disposition` fields and the names that they suggest.
@Suite("Content-Disposition of other programs' tests")
struct ContentDispositionCaseTests {
    struct Case: Decodable, Sendable, CustomTestStringConvertible {
        var field: String
        /// The name, before it is made safe; nil if the field has none.
        var name: String?
        /// Why the value is another one than that of the RFC, a browser or curl.
        var why: String?

        var testDescription: String { self.field.debugDescription }
    }

    private struct File: Decodable { var cases: [Case] }

    static let cases = caseFile("disposition-names", as: File.self).cases

    @Test("The file name that a field suggests", arguments: Self.cases)
    func replay(given: Case) {
        let name = ContentDisposition(fieldValue: given.field).filename
        // Bytes, because names that look alike are different files.
        #expect(name.map { Array($0.utf8) } == given.name.map { Array($0.utf8) }, "\(name ?? "no name")")
    }

    @Test("No case is lost")
    func count() {
        #expect(Self.cases.count >= 183)
    }
}
