import HTTPTypes
import SegmentedDownloadCore
import Testing

@Suite("Link")
struct LinkFieldsTests {
    @Test("Duplicates are sorted by priority, those without one last, and listed once each")
    func duplicates() throws {
        let links = LinkFields(fieldValues: [
            "<http://c.example/f>; rel=duplicate; pri=2; geo=us, <http://b.example/f>;rel=\"duplicate\";pri=1",
            "<http://d.example/f>; rel=duplicate; pref", "</f?g=1,2;3>; pri=3 ; rel = Duplicate",
            "<http://b.example/f>; rel=duplicate; pri=4; depth=1",
        ])
        #expect(links.duplicates == ["http://b.example/f", "http://c.example/f", "/f?g=1,2;3", "http://d.example/f"])
        #expect(links.metalink == nil)
        let name = try #require(HTTPField.Name("Link"))
        var fields = HTTPFields()
        fields.append(HTTPField(name: name, value: "<b>; rel=duplicate; pri=2"))
        fields.append(HTTPField(name: name, value: "<a>; rel=duplicate; pri=1"))
        #expect(LinkFields(fields).duplicates == ["a", "b"])
    }

    @Test(
        "A metalink has the relation describedby and the type of Metalink documents",
        arguments: [
            ("<f.meta4>; rel=describedby; type=\"application/metalink4+xml\"", "f.meta4"),
            ("<f.meta4>; type=Application/Metalink4+XML; rel=describedby", "f.meta4"),
            ("<f.meta4>; rel=\"alternate describedby\"; type=\"application/metalink4+xml;charset=utf-8\"", "f.meta4"),
            ("<f.asc>; rel=describedby; type=\"application/pgp-signature\", <f.meta4>; rel=describedby", nil),
            ("<f.asc>; rel=describedby; type=\"a/b\", <x>; rel=describedby; type=\"application/metalink4+xml\"", "x"),
            ("<f.meta4>; rel=item; type=\"application/metalink4+xml\"", nil),
        ])
    func metalink(fieldValue: String, target: String?) {
        #expect(LinkFields(fieldValues: [fieldValue]).metalink == target)
        #expect(LinkFields(fieldValues: [fieldValue]).duplicates.isEmpty)
    }

    @Test(
        "Malformed links, and links of another relation or for another resource, are ignored",
        arguments: [
            ("", []), ("<a>", []), ("<a>; rel=next", []), ("a; rel=duplicate", []), ("<a; rel=duplicate", []),
            ("<a b>; rel=duplicate", []), ("<>; rel=duplicate", []), ("<a>; rel=duplicate; anchor=\"#x\"", []),
            ("<a>; rel=next; rel=duplicate", []), ("<a>; rel=\"duplicate", []), ("<a>; rel=duplicat\u{212A}e", []),
            (",, <a>;;rel=duplicate;;,,<b>; rel=duplicate,", ["a", "b"]),
            ("<a>; rel=duplicate, b, <c>; rel=duplicate", ["a"]), ("<a>; rel=duplicate <b>; rel=duplicate", []),
            ("<a>; title=\"<x>; rel=duplicate, \\\"\"; rel=duplicate", ["a"]),
            ("<a>; rel=duplicate; pri=0, <b>; rel=duplicate; pri=999998, <c>; rel=duplicate; pri=-1", ["b", "a", "c"]),
            ("<a>; rel=duplicate; pri=99999999999999999999, <b>; rel=duplicate; pri=\"7\"", ["b", "a"]),
        ] as [(String, [String])])
    func ignored(fieldValue: String, targets: [String]) {
        #expect(LinkFields(fieldValues: [fieldValue]).duplicates == targets)
    }

    @Test("Links, their parameters and the lengths of targets have limits")
    func limits() {
        let many = (0..<LinkFields.linksMax + 1).map { "<\($0)>; rel=duplicate" }.joined(separator: ",")
        #expect(LinkFields(fieldValues: [many, many]).duplicates.count == LinkFields.linksMax)
        let long = String(repeating: "x", count: 8193)
        #expect(
            LinkFields(fieldValues: ["<\(long)>; rel=duplicate, <\(long.dropFirst())>; rel=duplicate"]).duplicates.count
                == 1)
        let parameters = String(repeating: "; a=b", count: 1000)
        #expect(LinkFields(fieldValues: ["<a>\(parameters); rel=duplicate"]).duplicates.isEmpty)
    }

    @Test("Reading any field ends, and a target is a substring of it without blanks", arguments: UInt64(0)..<4)
    func total(seed: UInt64) {
        let examples = [
            "<http://b.example/f>; rel=duplicate; pri=1; geo=us, </f>; rel=\"duplicate\"; pri=2",
            "<f.meta4>; rel=describedby; type=\"application/metalink4+xml\"",
        ]
        for text in HostileText(examples: examples, seed: seed) {
            let links = LinkFields(fieldValues: [text])
            for target in links.duplicates + (links.metalink.map { [$0] } ?? []) {
                let isPart = !target.isEmpty && target.utf8.allSatisfy { $0 > 0x20 && $0 != 0x3E && $0 != 0x7F }
                #expect(isPart, "\(text.debugDescription)")
            }
        }
    }

    @Test("The first link to the next page counts, and none with an anchor")
    func next() {
        let fields = ["<a>; rel=\"prev next\"; anchor=x, <b?cursor=c>; rel=\"NEXT\", <d>; rel=next"]
        #expect(LinkFields(fieldValues: fields).next == "b?cursor=c")
        #expect(LinkFields(fieldValues: ["<a>; rel=nextish"]).next == nil)
    }
}
