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
    func plain(fieldValue: String, filename: String) {
        #expect(ContentDisposition(fieldValue: fieldValue).filename == filename)
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
    func extended(fieldValue: String, filename: String) {
        #expect(ContentDisposition(fieldValue: fieldValue).filename == filename)
    }

    @Test(
        "If an extended name does not decode, the plain one is used",
        arguments: [
            "UTF-8''%FF", "UTF-8''%C3", "UTF-8''%C3%28", "UTF-8''%C0%AF", "UTF-8''%ED%A0%80", "UTF-8''%F4%90%80%80",
            "UTF-8''%", "UTF-8''%2", "UTF-8''%zz", "UTF-16''a", "UTF-8'a", "UTF-8", "''a", "a", "\"\"", "\"UTF-8''ä\"",
        ]
    )
    func undecodable(value: String) {
        let alone = ContentDisposition(fieldValue: "attachment; filename*=\(value)")
        #expect(alone.filename == nil)
        let both = ContentDisposition(fieldValue: "attachment; filename*=\(value); filename=plain.txt")
        #expect(both.filename == "plain.txt")
    }

    @Test(
        "A field without a file name is well formed",
        arguments: ["attachment", "inline", "form-data; name=x", "x ;"]
    )
    func nameless(fieldValue: String) {
        #expect(ContentDisposition(fieldValue: fieldValue).filename == nil)
    }

    @Test(
        "What violates the grammar is read as browsers and curl read it",
        arguments: [
            ("attachment; filename=a; filename=b", "a"), ("attachment; filename=a; FILENAME=b", "a"),
            ("attachment; filename*=UTF-8''a; filename*=UTF-8''b", "a"), ("attachment; x=1; filename=a; x=2", "a"),
            ("filename=a", "a"), ("; filename=a", "a"), ("\"attachment\"; filename=a", "a"),
            ("attachment; filename=a b", "a b"),
            ("attachment; filename=Survey. Leaf, mulch.txt", "Survey. Leaf, mulch.txt"),
            ("attachment; filename=myFile(1).dmg", "myFile(1).dmg"), ("attachment; filename=[x] a.mkv", "[x] a.mkv"),
            ("attachment; filename=ä", "ä"), ("attachment; filename=报告.pdf ; size=1", "报告.pdf"),
            ("attachment; filename=a/b", "a/b"), ("attachment; filename=a\\b", "a\\b"),
            ("attachment; filename=\"a.zip", "a.zip"), ("attachment; filename=\"a.zip; size=1", "a.zip"),
            ("attachment; filename=\"a\"b", "a"), ("attachment; filename=\"a.zip\"; size=", "a.zip"),
            ("attachment; filename=a;b.zip", "a"), ("attachment; file name=x; filename=a", "a"),
            ("attachment, x; filename=a", "a"), ("attachment; filename; filename=a", "a"),
            ("attachment; filename=; filename=a", "a"),
        ]
    )
    func lenient(fieldValue: String, filename: String) {
        #expect(ContentDisposition(fieldValue: fieldValue).filename == filename)
    }

    @Test(
        "A field in which no parameter is a name has none",
        arguments: [
            "", " ", ";", "attachment filename=a", "attachment, filename=a", "attachment; filename",
            "attachment; filename=",
            "attachment; =a", "attachment; filename=;", "attachment; filename=\"a\r\nb\"",
            "attachment; filename=\"a\0b\"",
            "attachment; filename=\"a\u{1B}[2J\"", "attachment; filename=a\0b", "attachment; file name=a",
            "attachment; filename**=a b", "attachment; filename*=UTF-8''grün",
        ]
    )
    func garbage(fieldValue: String) {
        #expect(ContentDisposition(fieldValue: fieldValue).filename == nil)
    }

    @Test("Of too many parameters the first ones are read")
    func endless() {
        let parameters = (0..<100_000).map { "; p\($0)=1" }.joined()
        #expect(ContentDisposition(fieldValue: "attachment; filename=a\(parameters)").filename == "a")
        #expect(ContentDisposition(fieldValue: "attachment\(parameters); filename=a").filename == nil)
    }

    @Test("Hostile text never traps", arguments: UInt64(0)..<4)
    func hostile(seed: UInt64) {
        let examples = [
            "attachment; filename=\"a \\\"b\\\".txt\"", "attachment; filename*=UTF-8''%e2%82%ac.txt; filename=e.txt",
            "inline; filename=a.txt", "attachment; filename*=ISO-8859-1'en'%A3",
        ]
        var named = 0
        for text in HostileText(examples: examples, seed: seed)
        where ContentDisposition(fieldValue: text).filename != nil {
            named += 1
        }
        #expect(named > 0, "seed \(seed)")
    }
}
