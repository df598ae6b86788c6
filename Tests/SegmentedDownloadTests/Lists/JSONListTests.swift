import Testing

@testable import SegmentedDownload

/// Lists in JSON.
@Suite("JSON lists")
struct JSONListTests {
    /// The entries of a document, each as `place url name`.
    static func read(
        _ text: String, path: String? = nil, url: String = "url", name: String? = nil
    ) throws -> [String] {
        let path = try path.map { try #require(JSONPath($0)) }
        let list = JSONList(path: path, urlKey: url, nameKey: name)
        return try list.entries(in: Array(text.utf8)).map { entry in
            [entry.place, entry.url, entry.name].compactMap { $0 }.joined(separator: " ")
        }
    }

    @Test("Elements are URLs, or objects with a URL and optionally a name")
    func elements() throws {
        #expect(try Self.read(#"["http://a/b", {"url": "c"}]"#) == ["[0] http://a/b", "[1] c"])
        let document =
            #"{"list": [{"path": "p", "name": "n"}, {"path": "q"}, "r"], "a b": [[{"url": 1}, {"url": "u"}]]}"#
        #expect(
            try Self.read(document, path: ".list[]", url: "path", name: "name")
                == [".list[0] p n", ".list[1] q", ".list[2] r"])
        #expect(try Self.read(document, path: #"."a b"[][1]"#) == [#"."a b"[0][1] u"#])
        #expect(try Self.read(document, path: ".list[1]", url: "path") == [".list[1] q"])
        #expect(try Self.read("\u{FEFF}[]") == [])
    }

    @Test("A name in a document stays in its directory, and is not an option or a hidden file")
    func names() throws {
        let document = #"[{"url": "u", "n": "../../etc/passwd"}, {"url": "u", "n": ".ssh"}, {"url": "u", "n": "-rf"}]"#
        #expect(
            try Self.read(document, name: "n") == ["[0] u passwd", "[1] u _.ssh", "[2] u _rf"])
    }

    @Test(
        "An error names its place in the document",
        arguments: [
            ("{}", nil, ""), ("[1]", nil, "[0]"), ("[[]]", nil, "[0]"), (#"[{"uri": "x"}]"#, nil, "[0]"),
            (#"[{"url": 1}]"#, nil, "[0]"), ("[", nil, ""), ("", ".a", ""), ("[1] x", nil, ""),
            (#"{"a": 1}"#, ".b", ".b"), (#"{"a": 1}"#, ".a[]", ".a"), (#"{"a": [1]}"#, ".a[1]", ".a"),
            (#"{"a": ["x"]}"#, ".a", ".a"), (#"{"a": ["x"]}"#, ".a.b", ".a"),
        ] as [(String, String?, String)])
    func problems(document: String, path: String?, place: String) {
        let problem = #expect(throws: ListProblem.self) { try Self.read(document, path: path) }
        #expect(problem?.place == .element(place))
    }

    @Test("A document is refused before its nesting exhausts the stack")
    func depth() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + #""u""# + String(repeating: "]", count: depth)
        }
        let path = String(repeating: "[]", count: JSONValue.depthMax)
        #expect(try Self.read(nested(JSONValue.depthMax), path: path).count == 1)
        for depth in [JSONValue.depthMax + 1, 500, 100_000] {
            #expect(throws: ListProblem.self) { try Self.read(nested(depth), path: path) }
        }
    }

    @Test(
        "A path consists of keys and elements",
        arguments: [
            (".", []), ("[]", [.each]), (".[]", [.each]), (".a", [.key("a")]),
            (".a.b[3]", [.key("a"), .key("b"), .index(3)]),
            (#"."a b".é"#, [.key("a b"), .key("é")]), (#"."\"\\]""#, [.key(#""\]"#)]), ("", []),
        ] as [(String, [JSONPath.Step])])
    func path(text: String, steps: [JSONPath.Step]) {
        #expect(JSONPath(text)?.steps == steps)
    }

    @Test(
        "A malformed path is refused",
        arguments: ["a", "..", ".a.", ".a[", ".a[x]", ".a[-1]", ".a]", #".""#, #"."a"#, ".a[99999999999999999999]"])
    func noPath(text: String) {
        #expect(JSONPath(text) == nil)
    }
}
