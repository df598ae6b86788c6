import SegmentedDownloadCore
import Testing

@Suite("Content-Disposition")
struct ContentDispositionTests {
    @Test(
        "A file name is read from a token or a quoted string",
        arguments: [
            ("attachment; filename=a.txt", "a.txt"), ("attachment; filename=\"a.txt\"", "a.txt"),
            ("inline; filename=a.txt", "a.txt"), ("ATTACHMENT; FileName=\"a.txt\"", "a.txt"),
            ("attachment;filename=a.txt", "a.txt"), ("attachment ; filename = \"a.txt\" ", "a.txt"),
            ("attachment;\tfilename=a.txt;", "a.txt"), ("attachment;; filename=a.txt; ;", "a.txt"),
            ("attachment; filename=\"a;b; filename=c.txt\"", "a;b; filename=c.txt"),
            ("attachment; filename=\"say \\\"hi\\\".txt\"", "say \"hi\".txt"),
            ("attachment; filename=\"a\\\\b\"", "a\\b"),
            ("attachment; filename=\"grün €.txt\"", "grün €.txt"), ("attachment; filename=\"\u{301}a\"", "\u{301}a"),
            ("attachment; filename=\"\"", ""), ("attachment; filename=\"a%20b.txt\"", "a%20b.txt"),
            ("attachment; size=12; filename=a.txt; x-y=\"z\"", "a.txt"), ("attachment; filename=it's.txt", "it's.txt"),
            ("attachment; filename=\"../../x\"", "../../x"),
        ]
    )
    func plain(fieldValue: String, filename: String) throws {
        let disposition = try #require(ContentDisposition(fieldValue: fieldValue))
        #expect(disposition.filename == filename)
    }

    @Test(
        "An extended name takes precedence over a plain one, in any order",
        arguments: [
            ("attachment; filename*=UTF-8''gr%C3%BCn.txt", "grün.txt"),
            ("attachment; filename*=utf-8'de'%E2%82%AC%20rates", "€ rates"),
            ("attachment; filename*=ISO-8859-1'en'%A3%20rates", "£ rates"),
            ("attachment; filename*=iso-8859-1''na%efve", "naïve"),
            ("attachment; filename=\"plain.txt\"; filename*=UTF-8''extended.txt", "extended.txt"),
            ("attachment; filename*=UTF-8''extended.txt; filename=\"plain.txt\"", "extended.txt"),
            ("attachment; FILENAME*=UTF-8''a.txt", "a.txt"), ("attachment; filename*=\"UTF-8''a.txt\"", "a.txt"),
            ("attachment; filename*=UTF-8''report%20(1).txt", "report (1).txt"),
            ("attachment; filename*=UTF-8''it's.txt", "it's.txt"), ("attachment; filename*=UTF-8''a%252Fb", "a%2Fb"),
            ("attachment; filename*=UTF-8''..%2f..%2Fetc", "../../etc"), ("attachment; filename*=UTF-8''a%00b", "a\0b"),
        ]
    )
    func extended(fieldValue: String, filename: String) throws {
        let disposition = try #require(ContentDisposition(fieldValue: fieldValue))
        #expect(disposition.filename == filename)
    }

    @Test(
        "If an extended name does not decode, the plain one is used",
        arguments: [
            "UTF-8''%FF", "UTF-8''%C3", "UTF-8''%C3%28", "UTF-8''%C0%AF", "UTF-8''%ED%A0%80", "UTF-8''%F4%90%80%80",
            "UTF-8''%", "UTF-8''%2", "UTF-8''%zz", "UTF-16''a", "UTF-8'a", "UTF-8", "''a", "a", "\"\"", "\"UTF-8''ä\"",
        ]
    )
    func undecodable(value: String) throws {
        let alone = try #require(ContentDisposition(fieldValue: "attachment; filename*=\(value)"))
        #expect(alone.filename == nil)
        let both = try #require(ContentDisposition(fieldValue: "attachment; filename*=\(value); filename=plain.txt"))
        #expect(both.filename == "plain.txt")
    }

    @Test(
        "A field without a file name is well formed",
        arguments: ["attachment", "inline", "form-data; name=x", "x ;"]
    )
    func nameless(fieldValue: String) throws {
        let disposition = try #require(ContentDisposition(fieldValue: fieldValue))
        #expect(disposition.filename == nil)
    }

    @Test(
        "A field with a duplicate parameter is ignored",
        arguments: [
            "attachment; filename=a; filename=b", "attachment; filename=a; filename=a",
            "attachment; filename=a; FILENAME=b",
            "attachment; filename*=UTF-8''a; filename*=UTF-8''b", "attachment; x=1; filename=a; x=2",
        ]
    )
    func duplicate(fieldValue: String) {
        #expect(ContentDisposition(fieldValue: fieldValue) == nil)
    }

    @Test(
        "A malformed field is ignored",
        arguments: [
            "", " ", ";", "; filename=a", "filename=a", "\"attachment\"; filename=a", "attachment filename=a",
            "attachment, filename=a", "attachment; filename", "attachment; filename=", "attachment; =a",
            "attachment; filename=;", "attachment; filename=a b", "attachment; filename=a.txt x",
            "attachment; filename=a/b",
            "attachment; filename=a\\b", "attachment; filename=ä", "attachment; filename='a b'",
            "attachment; filename=\"a",
            "attachment; filename=\"a\\", "attachment; filename=\"a\\\"", "attachment; filename=\"a\"b",
            "attachment; filename=\"a\" filename=b", "attachment; filename=\"a\r\nb\"", "attachment; filename=\"a\0b\"",
            "attachment; filename=\"a\u{1B}[2J\"", "attachment; filename=\"a\\\u{1B}\"", "attachment; file name=a",
            "attachment; filename**=a b", "attachment; filename*=UTF-8''grün", "attachment\u{301}; filename=a",
            "attachment; filename=a, inline; filename=b", "\u{FEFF}attachment; filename=a",
        ]
    )
    func garbage(fieldValue: String) {
        #expect(ContentDisposition(fieldValue: fieldValue) == nil)
    }

    @Test("A field with too many parameters is ignored")
    func endless() {
        let parameters = (0..<100_000).map { "; p\($0)=1" }.joined()
        #expect(ContentDisposition(fieldValue: "attachment\(parameters)") == nil)
    }

    @Test("Hostile text never traps", arguments: UInt64(0)..<4)
    func hostile(seed: UInt64) {
        let examples = [
            "attachment; filename=\"a \\\"b\\\".txt\"", "attachment; filename*=UTF-8''%e2%82%ac.txt; filename=e.txt",
            "inline; filename=a.txt", "attachment; filename*=ISO-8859-1'en'%A3",
        ]
        var named = 0
        for text in HostileText(examples: examples, seed: seed)
        where ContentDisposition(fieldValue: text)?.filename != nil {
            named += 1
        }
        #expect(named > 0, "seed \(seed)")
    }
}
