import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Hostile Metalink documents.
@Suite("Hostile Metalink documents")
struct MetalinkHostileTests {
    private static func read(_ content: String) throws -> Metalink { try Metalink(MetalinkTests.four(content).utf8) }

    private static func file(_ name: String) -> String {
        "<file name=\"\(name)\"><url>http://a.example/</url></file>"
    }

    private static func message(_ text: String) -> String? {
        #expect(throws: DownloadError.self) { try Metalink(text.utf8) }?.message
    }

    @Test(
        "A document with a name outside the directory is refused",
        arguments: [
            "../a", "a/../b", "a/..", "..", ".", "./a", "a/./b", "/a", "//a", "a//b", "a/", "", "a\\b", "..\\a", "C:a",
            "c:/a",
            "~/../a", "&#x2e;&#x2e;/a", ".&#46;/a", "a/.. /b", " ",
        ])
    func traversal(name: String) {
        let message = Self.message(MetalinkTests.four("\n\(Self.file(name))"))
        #expect(message?.hasPrefix("the metalink:3: the file name") == true, "\(String(describing: message))")
    }

    @Test(
        "An unsafe name within the directory is made safe, component by component",
        arguments: [
            (".ssh/authorized_keys", "_.ssh/authorized_keys"), ("-rf/--help", "_rf/_-help"), ("~/a", "_/a"),
            ("a/\u{202E}gpj.exe", "a/_gpj.exe"), ("a\u{200B}b", "a_b"), ("x.segdl-part", "x.segdl-part_"),
            ("a.segdl/b", "a.segdl_/b"), ("CC:b", "CC:b"), ("a&#9;b/c&#10;d", "a_b/c_d"),
            ("a/\u{338}b", "a/\u{338}b"),
            ("&lt;&amp;&gt;", "<&>"), ("a&#x7f;", "a_"), ("...", "_..."), ("a ", "a"),
        ])
    func safeNames(name: String, path: String) throws {
        #expect(try Self.read(Self.file(name)).files.map(\.path) == [path])
    }

    @Test("A document with two names that become equal is refused")
    func sameName() {
        #expect(Self.message(MetalinkTests.four(Self.file("-a") + Self.file("~a")))?.contains("another file") == true)
    }

    @Test("A long name is refused, and a long component cut")
    func longNames() throws {
        let long = String(repeating: "x", count: 300)
        #expect(try Self.read(Self.file("d/" + long)).files[0].path.utf8.count == 2 + SafeFilename.lengthMax)
        #expect(
            Self.message(MetalinkTests.four(Self.file(String(repeating: "x/", count: 40) + "x")))?.contains(
                "41 components") == true)
        #expect(
            Self.message(MetalinkTests.four(Self.file(String(repeating: "x", count: 1025))))?.contains("1025 bytes")
                == true)
    }

    @Test(
        "A document with a document type is refused, so that nothing is expanded or fetched",
        arguments: [
            "<!DOCTYPE m [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;\">]>",
            "<!DOCTYPE m [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>",
            "<!DOCTYPE m SYSTEM \"http://x.example/m.dtd\">",
            "<!DOCTYPE m PUBLIC \"-//X\" \"http://x.example/m.dtd\" [<!ENTITY % p \"x\"> %p;]>", "<!DOCTYPE metalink>",
        ])
    func documentTypes(prologue: String) {
        let root = "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\(Self.file("f"))</metalink>"
        #expect(Self.message(prologue + root)?.contains("DOCTYPE") == true)
        #expect(Self.message("<?xml version=\"1.0\"?>\n" + prologue + root)?.hasPrefix("the metalink:2:") == true)
    }

    @Test("Entities that expand exponentially are refused")
    func billionLaughs() {
        var text = "<!DOCTYPE m [<!ENTITY l0 \"ha\">"
        for level in 1...30 { text += "<!ENTITY l\(level) \"\(String(repeating: "&l\(level - 1);", count: 10))\">" }
        text += "]><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\(Self.file("&l30;"))</metalink>"
        #expect(Self.message(text)?.contains("DOCTYPE") == true)
    }

    @Test(
        "Nesting, files, URLs and texts have limits"
    )
    func limits() throws {
        // Two levels surround the nested elements.
        func nested(_ count: Int) -> String {
            let inner = String(repeating: "<x>", count: count) + String(repeating: "</x>", count: count)
            return "<file name=\"f\">\(inner)<url>http://a.example/</url></file>"
        }
        #expect(try Self.read(nested(MetalinkScanner.depthMax - 2)).files.count == 1)
        #expect(Self.message(MetalinkTests.four(nested(MetalinkScanner.depthMax - 1)))?.contains("levels") == true)
        #expect(
            Self.message(MetalinkTests.four(String(repeating: "<x>", count: 1_000_000)))?.contains("levels") == true)

        let max = MetalinkReader.urlsPerFileMax
        func urls(_ count: Int) -> String {
            let urls = (0..<count).map { "\n<url>http://a.example/\($0)</url>" }.joined()
            return "<file name=\"f\">\(urls)</file>"
        }
        #expect(try Self.read(urls(max)).files[0].sources.count == max)
        #expect(
            Self.message(MetalinkTests.four(urls(100_000)))?.hasPrefix("the metalink:\(max + 3): there are more")
                == true)

        func text(_ count: Int) -> String {
            let text = String(repeating: "x", count: count - "http://a/".utf8.count)
            return "<file name=\"f\"><url>http://a/\(text)</url></file>"
        }
        #expect(try Self.read(text(MetalinkScanner.textLengthMax)).files.count == 1)
        #expect(
            Self.message(MetalinkTests.four(text(MetalinkScanner.textLengthMax + 1)))?.contains("text has more") == true
        )
        // Text of unknown elements may have any length.
        let description = "<description>\(String(repeating: "x", count: 1 << 20))</description>"
        #expect(try Self.read("<file name=\"f\">\(description)<url>http://a/</url></file>").files.count == 1)
    }

    @Test("The number of files has a limit")
    func filesMax() throws {
        let files = (0...MetalinkReader.filesMax).map { "<file name=\"\($0)\"><url>http://a/</url></file>" }
        #expect(Self.message(MetalinkTests.four(files.joined()))?.contains("\(MetalinkReader.filesMax) files") == true)
    }

    @Test("A document longer than the limit is refused without being parsed")
    func tooLong() {
        let bytes = [UInt8](repeating: UInt8(ascii: " "), count: MetalinkScanner.lengthMax + 1)
        let error = #expect(throws: DownloadError.self) { try Metalink(bytes) }
        #expect(error?.message.contains("\(MetalinkScanner.lengthMax)") == true)
    }

    @Test("NULs and other invalid bytes are reported with their line", arguments: [0, 1, 0x0B, 0xFF] as [UInt8])
    func badBytes(byte: UInt8) {
        var bytes = Array(MetalinkTests.four("\n\n").utf8)
        bytes.insert(byte, at: bytes.count - "</metalink>".utf8.count)
        let error = #expect(throws: DownloadError.self) { try Metalink(bytes) }
        #expect(
            error?.message.hasPrefix("the metalink:4: it is not well-formed XML") == true,
            "\(String(describing: error))"
        )
    }

    @Test("No password and no control character of a document is shown")
    func messages() {
        let content = "<file name=\"f\"><url>http://user:secret@[/\u{202E}</url>"
        let message = Self.message(MetalinkTests.four(content))
        #expect(message?.contains("secret") == false && message?.contains("\u{202E}") == false)
        let hash = Self.message(MetalinkTests.four("<file name=\"f\"><hash type=\"md5\">\u{9B}2J</hash>"))
        #expect(hash?.unicodeScalars.contains("\u{9B}") == false)
    }

    @Test("Reading any document ends, and paths stay below their directory", arguments: UInt64(0)..<4)
    func total(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        let pieces = [
            "<file name=\"", "a/b", "..", "\">", "<url>", "http://a.example/", "</url>", "</file>", "<size>", "5",
            "</size>",
            "<hash type=\"md5\">", MetalinkTests.md5, "</hash>", "<pieces length=\"5\" type=\"md5\">", "</pieces>", "/",
            "\\",
            "&amp;", "&#0;", "\0", "<![CDATA[", "]]>", "<!--", "-->", " priority=\"1\"", "<x:y/>", "\u{202E}",
        ]
        for _ in 0..<500 {
            let content = (0..<Int.random(in: 0..<24, using: &generator))
                .map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            let whole = content + Self.file("last")
            guard let metalink = try? Self.read(whole) else { continue }
            for file in metalink.files {
                let isSafe = file.path.split(separator: "/", omittingEmptySubsequences: false)
                    .allSatisfy { SafeFilename(untrusted: String($0))?.value == String($0) }
                #expect(isSafe && !file.sources.isEmpty, "\(whole.debugDescription)")
            }
        }
    }
}
