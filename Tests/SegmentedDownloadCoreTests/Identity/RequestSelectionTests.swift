import SegmentedDownloadCore
import Testing

/// What a request selects a file with besides its URL.
@Suite("Whether a request selects the same file")
struct RequestSelectionTests {
    private static let values = [
        "accept-language": "de", "cookie": "edition=2", "authorization": "basic", RequestSelection.user: "alice",
        RequestSelection.address: "127.0.0.1",
    ]

    private func clause(_ change: (inout RequestSelection.Values) -> Void, hasStrongTag: Bool = false) -> String? {
        var values = Self.values
        change(&values)
        return RequestSelection(Self.values, salt: 7).contradiction(by: values, hasStrongTag: hasStrongTag)
    }

    @Test("An equal request selects the same, and any other value, or a missing or additional one, another file")
    func values() {
        #expect(self.clause { _ in } == nil)
        for hasStrongTag in [false, true] {
            #expect(
                self.clause({ $0["accept-language"] = "en" }, hasStrongTag: hasStrongTag)
                    == "with another accept-language")
            #expect(
                self.clause({ $0[RequestSelection.user] = "bob" }, hasStrongTag: hasStrongTag)
                    == "with another user name")
            #expect(self.clause({ $0["cookie"] = nil }, hasStrongTag: hasStrongTag) == "without its cookie")
            #expect(self.clause({ $0["x-a"] = "" }, hasStrongTag: hasStrongTag) == "with a x-a")
            #expect(self.clause({ $0 = [:] }, hasStrongTag: hasStrongTag)?.contains("authorization, cookie") == true)
        }
    }

    @Test("Other cookies and tokens may be those of another login, and a strong tag decides")
    func logins() {
        #expect(self.clause { $0["cookie"] = "edition=1" } == "with another cookie")
        #expect(self.clause({ $0["cookie"] = "edition=1" }, hasStrongTag: true) == nil)
        let anonymous = RequestSelection([:], salt: 7)
        #expect(anonymous.contradiction(by: ["authorization": "Bearer x"], hasStrongTag: true) == nil)
        #expect(anonymous.contradiction(by: ["authorization": "Bearer x"], hasStrongTag: false) != nil)
    }

    @Test("Names are stored, and values only as salted hashes")
    func text() throws {
        let selection = RequestSelection(Self.values, salt: 7)
        let text = selection.text
        #expect(RequestSelection(text: text) == selection)
        #expect(!text.contains("edition") && !text.contains("alice") && text.contains("accept-language"))
        #expect(RequestSelection(Self.values, salt: 8).hashes["cookie"] != selection.hashes["cookie"])
        #expect(selection.names == ["address", "user name", "accept-language", "authorization", "cookie"])
        for damaged in ["", "0", text + ";", "zz" + text, text + ";a=00", text.replacing("cookie=", with: "cookie")] {
            #expect(RequestSelection(text: damaged) == nil || damaged == text + ";")
        }
    }
}
