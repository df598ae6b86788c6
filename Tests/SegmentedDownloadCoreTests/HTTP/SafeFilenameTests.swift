import SegmentedDownloadCore
import Testing

@Suite("Safe file name")
struct SafeFilenameTests {
    @Test(
        "A safe name is unchanged",
        arguments: [
            "a", "a.txt", "archive.tar.gz", "grün €.txt", "日本語.zip", "name with spaces.iso", "a..b", "a-b~c",
            "=?UTF-8?Q?a?=",
            "%2e%2e", "😀.png", "e\u{301}.txt", "CON.txt", "a.segdl.txt", "segdl", "a.segdl-partial",
        ]
    )
    func unchanged(name: String) {
        #expect(SafeFilename(untrusted: name)?.value.utf8.elementsEqual(name.utf8) == true)
    }

    @Test(
        "Only the last component of a path is used",
        arguments: [
            ("../../x", "x"), ("/abs", "abs"), ("..\\..\\x", "x"), ("C:\\Windows\\x", "x"), ("a/b\\c", "c"),
            ("a\\b/c", "c"),
            ("/etc/passwd", "passwd"), ("dir/.bashrc", "_.bashrc"), ("//x", "x"), ("a/\u{301}x", "\u{301}x"),
        ]
    )
    func lastComponent(untrusted: String, value: String) {
        #expect(SafeFilename(untrusted: untrusted)?.value == value)
    }

    @Test(
        "An empty or invisible name is rejected",
        arguments: [
            "", ".", "..", "/", "\\", "a/", "a\\", "../..", "a/..", "a\\.", " ", "   ", ". ", "..  ", "a/ ", "\n",
            "\u{1}\u{2}", "\u{A0}", "\u{2003}", "\u{2800}", "\u{FFF9}", "\u{200B}", "\u{3164}", "\u{115F}", "\u{FEFF}",
            "\u{202E}", "\u{E0041}",
            "\u{FE0F}",
            " \u{200B}\u{A0}\u{2800} ", "a/\u{3000}", "\u{A0}..\u{A0}", ".\u{2003}",
        ]
    )
    func nothing(untrusted: String) {
        #expect(SafeFilename(untrusted: untrusted) == nil)
    }

    @Test(
        "Names that are hidden, look like an option or a home directory, or end in spaces are changed",
        arguments: [
            (".bashrc", "_.bashrc"), ("...", "_..."), ("..a", "_..a"), ("-rf", "_rf"), ("--help", "_-help"), ("-", "_"),
            ("~root", "_root"), ("~", "_"), ("a.txt  ", "a.txt"), (".a ", "_.a"), (".-", "_.-"), (" a", "a"),
            ("\u{A0}a\u{2003}b.txt\u{3000}\u{A0}", "a\u{2003}b.txt"), ("a\r\n", "a"), ("\u{2800}-rf", "_rf"),
            (" .bashrc", "_.bashrc"), ("x.segdl\u{A0}", "x.segdl_"),
        ]
    )
    func defused(untrusted: String, value: String) {
        #expect(SafeFilename(untrusted: untrusted)?.value == value)
    }

    @Test(
        "Control characters and invisible characters become underscores",
        arguments: [
            ("a\u{1B}[2Jb", "a_[2Jb"), ("a\0b", "a_b"), ("a\r\nb", "a__b"), ("a\u{7}b", "a_b"), ("a\u{7F}b", "a_b"),
            ("a\u{9B}b", "a_b"), ("a\u{85}b", "a_b"), ("photo\u{202E}gpj.exe", "photo_gpj.exe"), ("a\u{2066}b", "a_b"),
            ("a\u{200B}b", "a_b"), ("a\u{200D}b", "a_b"), ("a\u{FEFF}b", "a_b"), ("a\u{2060}b", "a_b"),
            ("a\u{61C}b", "a_b"),
            ("a\u{2028}b", "a_b"), ("a\u{2029}b", "a_b"), ("\u{200E}.x", "_.x"), ("\u{1}.", "_."),
            (".\u{200B}.", "_._."),
            ("a\u{200B}\u{301}", "a_\u{301}"),
        ]
    )
    func invisible(untrusted: String, value: String) {
        #expect(SafeFilename(untrusted: untrusted)?.value == value)
    }

    @Test(
        "A name like one of segdl's own files is changed",
        arguments: [
            ("x.segdl", "x.segdl_"), ("x.segdl-part", "x.segdl-part_"), ("x.SegDL", "x.SegDL_"), (".segdl", "_.segdl_"),
            ("x.segdl  ", "x.segdl_"), ("x.segdl-part.segdl", "x.segdl-part.segdl_"),
            ("x.segdl-new", "x.segdl-new_"), ("x.segdl-old", "x.segdl-old_"),
        ]
    )
    func ours(untrusted: String, value: String) {
        #expect(SafeFilename(untrusted: untrusted)?.value == value)
    }

    @Test(
        "A long name is cut between characters, with a hash and its extension",
        arguments: [
            (String(repeating: "ä", count: 300) + ".tar.gz", ".tar.gz"),
            (String(repeating: "a", count: 241) + ".pdf", ".pdf"),
            (String(repeating: "日", count: 100) + ".flatpakref", ".flatpakref"),
            (String(repeating: "x", count: 300), ""),
            (String(repeating: "a", count: 300) + ". Not an extension", ""),
            (String(repeating: "a", count: 300) + ".abcdefghijklmnop", ""),
            (String(repeating: "a", count: 300) + ".", ""),
            (String(repeating: "a.", count: 300) + "b.c", ".b.c"), (String(repeating: ".", count: 300), ""),
            (String(repeating: "a", count: 300) + " 2. part.pdf", ".pdf"),
            (String(repeating: "a", count: 300) + ".ä", ".ä"),
            (String(repeating: "a", count: 236) + ".segdl", ".segdl_"),
            ("e" + String(repeating: "\u{301}", count: 300), ""),
            (String(repeating: "😀", count: 100) + ".png", ".png"), (String(repeating: "-", count: 300), ""),
        ]
    )
    func long(untrusted: String, pathExtension: String) throws {
        let value = try #require(SafeFilename(untrusted: untrusted)).value
        #expect(237...SafeFilename.lengthMax ~= value.utf8.count)
        #expect(value.utf8.reversed().starts(with: pathExtension.utf8.reversed()))

        let hashed = value.utf8.dropLast(pathExtension.utf8.count).suffix(9)
        #expect(hashed.first == UInt8(ascii: "~"))
        #expect(hashed.dropFirst().allSatisfy { "0123456789abcdef".utf8.contains($0) })
        #expect(!value.unicodeScalars.contains("\u{FFFD}"))
    }

    @Test("A name at the limit is not cut")
    func limit() {
        let name = String(repeating: "a", count: 236) + ".pdf"
        #expect(SafeFilename(untrusted: name)?.value == name)
        #expect(SafeFilename(untrusted: "a" + name)?.value != "a" + name)
    }

    @Test("Long names that differ only after the cut stay different, and are the same every time")
    func hash() throws {
        let stem = String(repeating: "a", count: 250)
        let first = try #require(SafeFilename(untrusted: stem + "1.txt"))
        let second = try #require(SafeFilename(untrusted: stem + "2.txt"))
        #expect(first != second)
        #expect(first == SafeFilename(untrusted: stem + "1.txt"))
        // FNV-1a 64 of 300 "x" is E78DDF9F1BA85555 by an independent implementation: the name must not change.
        #expect(SafeFilename(untrusted: String(repeating: "x", count: 300))?.value.hasSuffix("~fc258aca") == true)
    }

    @Test(
        "A URL's last component is decoded once and then made safe",
        arguments: [
            ("/dir/a.txt", "a.txt"), ("/a%20b.txt", "a b.txt"), ("/gr%C3%BCn.txt", "grün.txt"), ("a.txt", "a.txt"),
            ("/..%2f..%2fetc", "etc"), ("/x/..%5C..%5cetc", "etc"), ("/%2E%2E%2Fx", "x"), ("/a%00b", "a_b"),
            ("/%1B%5B2J", "_[2J"), ("/%E2%80%AEgpj.exe", "_gpj.exe"), ("/%252e%252e%252fx", "%2e%2e%2fx"),
            ("/%2Ebashrc", "_.bashrc"), ("/%FF%C3%BC", "%FFü"), ("/%c3(", "%c3("), ("/%C0%AFx", "%C0%AFx"),
            ("/%ED%A0%80", "%ED%A0%80"), ("/%E2%82", "%E2%82"), ("/100%", "100%"), ("/%zz%4", "%zz%4"), ("/a\\b", "b"),
            ("/%C3é", "%C3é"), ("/%2Drf", "_rf"), ("/%7Eroot", "_root"), ("/\u{301}x", "\u{301}x"),
        ]
    )
    func path(path: String, value: String) {
        #expect(SafeFilename.fromURLPath(path)?.value == value)
    }

    @Test(
        "A path without a last component has no name",
        arguments: ["", "/", "/dir/", "/..", "/%2e%2e", "/x%2F", "/%20"]
    )
    func pathOfNothing(path: String) {
        #expect(SafeFilename.fromURLPath(path) == nil)
    }

    @Test(
        "The server's name comes before the URL's, the URL's before the host's, and there is always a name",
        arguments: [
            ("attachment; filename=a.txt", "/b.txt", "host", "a.txt"), (nil, "/b.txt", "host", "b.txt"),
            ("garbage?", "/b.txt", "host", "b.txt"), ("inline", "/b.txt", "host", "b.txt"),
            ("attachment; filename=..", "/b.txt", "host", "b.txt"),
            ("attachment; filename=\"\"", "/b.txt", "host", "b.txt"),
            ("attachment; filename*=UTF-8''%C2%A0%E2%80%8B", "/b.txt", "host", "b.txt"),
            (nil, "/%E2%A0%80", "host", "host"),
            ("attachment; filename=\"../../x\"", "/b.txt", "host", "x"),
            ("attachment; filename=\"/abs\"", "/b.txt", "host", "abs"),
            ("attachment; filename*=UTF-8''..%2F..%5Cx", "/b.txt", "host", "x"),
            ("attachment; filename=a; filename=b", "/b.txt", "host", "a"), (nil, "/", "example.org", "example.org"),
            (nil, "", "[::1]", "[::1]"), (nil, "/", "", "download"), (nil, "/..", "..", "download"),
        ] as [(String?, String, String, String)]
    )
    func choice(contentDisposition: String?, urlPath: String, host: String, value: String) {
        let name = SafeFilename.choose(contentDisposition: contentDisposition, urlPath: urlPath, host: host)
        #expect(name.value == value)
        #expect(name.description == value)
    }

    @Test("Hostile text never traps, and an accepted name is safe and stable", arguments: UInt64(0)..<4)
    func hostile(seed: UInt64) {
        let examples = [
            "a.txt", "../../x", "..\\..\\x", ".bashrc", "-rf", "~", "x.segdl", "..%2f..%2fetc",
            String(repeating: "ä", count: 300) + ".tar.gz", String(repeating: "a", count: 230) + ".segdl-part",
        ]
        for text in HostileText(examples: examples, seed: seed) {
            for name in [SafeFilename(untrusted: text), SafeFilename.fromURLPath(text)].compactMap({ $0 }) {
                #expect(Self.isSafe(name.value), "\(text.debugDescription), seed \(seed)")
                #expect(SafeFilename(untrusted: name.value) == name, "\(text.debugDescription), seed \(seed)")
            }
        }
    }

    /// A second definition of a safe name, independent of the code.
    private static func isSafe(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        let forbidden: Set<Unicode.Scalar> = ["/", "\\", "\0", "\r", "\n", "\u{1B}", "\u{7F}", "\u{202E}", "\u{200B}"]
        return !bytes.isEmpty && bytes.count <= 240
            && !name.unicodeScalars.contains { forbidden.contains($0) }
            && !".-~".utf8.contains(bytes[0])
            && !name.hasSuffix(".segdl") && !name.hasSuffix(".segdl-part")
            && !name.hasSuffix(".segdl-new") && !name.hasSuffix(".segdl-old") && !name.hasSuffix(" ")
    }
}
