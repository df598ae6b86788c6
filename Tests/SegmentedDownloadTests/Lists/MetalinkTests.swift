import Foundation
import SegmentedDownload
import Testing

/// The contents of Metalink documents, and malformed documents.
@Suite("Metalink documents")
struct MetalinkTests {
    static let sha256 = String(repeating: "a1", count: 32)
    static let sha1 = String(repeating: "b2", count: 20)
    static let md5 = String(repeating: "c3", count: 16)

    /// A document of version 4 with this content.
    static func four(_ content: String) -> String {
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\(content)</metalink>"
    }

    /// The only file of a document of version 4 with this content.
    static func file(_ content: String) throws -> Metalink.File {
        try Metalink(Self.four("<file name=\"f\">\(content)<url>http://a.example/f</url></file>").utf8).files[0]
    }

    /// The same in version 3, with its resources.
    private static func file(verification: String = "", resources: String) throws -> Metalink.File {
        let text = """
            <metalink version="3.0" xmlns="http://www.metalinker.org/"><files><file name="f">
            <verification>\(verification)</verification><resources maxconnections="2">\(resources)</resources>
            </file></files></metalink>
            """
        return try Metalink(text.utf8).files[0]
    }

    @Test("A document of version 4 has names, lengths, digests, pieces and sources by priority")
    func versionFour() throws {
        let text = Self.four(
            """

            <generator>g/1.0</generator><published>2010-05-01T12:15:02Z</published>
            <file name="dir/a.iso">
              <identity>A</identity><size> 25 </size><language>en</language>
              <hash type="sha-256">\(Self.sha256.uppercased())</hash><hash type="SHA-1">\(Self.sha1)</hash>
              <hash type="tiger">00</hash><signature mediatype="application/pgp-signature">x</signature>
              <pieces length="10" type="md5"><hash>\(Self.md5)</hash><hash>\(Self.md5)</hash><hash>\(Self.md5)</hash></pieces>
              <pieces length="20" type="sha-1"><hash>\(Self.sha1)</hash><hash>
                \(Self.sha1)</hash></pieces>
              <pieces length="1" type="tiger"><hash>00</hash></pieces>
              <url>http://last.example/a.iso</url>
              <url location="de" priority="2">https://u:p@second.example/a.iso?x=1</url>
              <url priority="2">http://third.example/ä.iso</url>
              <url priority="1">ftp://first.example/a.iso</url>
              <url priority="1"> http://first.example/a.iso
              </url><url priority="999999">http://first.example/a.iso</url>
              <metaurl mediatype="torrent" priority="1">http://torrent.example/a.torrent</metaurl>
            </file>
            <file name="b"><url>http://b.example/b</url></file>
            """)
        let files = try Metalink(text.utf8).files
        #expect(files.map(\.path) == ["dir/a.iso", "b"])
        let file = files[0]
        #expect(file.length == 25 && file.digests.map(\.description) == ["sha256=\(Self.sha256)", "sha1=\(Self.sha1)"])
        #expect(file.digest?.algorithm == .sha256)
        #expect(file.pieces?.length == 20 && file.pieces?.algorithm == .sha1)
        #expect(file.pieces?.hexes == [Self.sha1, Self.sha1])
        #expect(file.unsupportedHashTypes.contains("tiger"))
        let stored = try JSONDecoder().decode(Metalink.PieceDigests.self, from: JSONEncoder().encode(file.pieces))
        #expect(stored == file.pieces)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(
                Metalink.PieceDigests.self, from: Data(#"{"length":0,"algorithm":"md5","hexes":[]}"#.utf8))
        }
        #expect(
            file.sources.map(\.string) == [
                "http://first.example/a.iso", "https://second.example/a.iso?x=1", "http://third.example/%C3%A4.iso",
                "http://last.example/a.iso",
            ])
        #expect(file.unsupportedSourceCount == 1)
        #expect(files[1].length == nil && files[1].digest == nil && files[1].pieces == nil)
    }

    @Test("A document of version 3 has the same contents in other elements")
    func versionThree() throws {
        let file = try Self.file(
            verification: """
                <hash type="md5">\(Self.md5)</hash><hash type="sha1">\(Self.sha1)</hash><hash type="ed2k">x</hash>
                <pieces length="4" type="sha1"><hash piece="0">\(Self.sha1)</hash><hash piece="1">\(Self.sha1)</hash></pieces>
                """,
            resources: """
                <url type="http">http://none.example/f</url><url type="http" preference="0">http://worst.example/f</url>
                <url type="ftp" preference="100">ftp://x.example/f</url>
                <url type="bittorrent" preference="100">http://x.example/f.torrent</url>
                <url type="http" preference="100">http://best.example/f</url><url preference="90">https://good.example/f</url>
                """)
        #expect(file.digests.map(\.algorithm) == [.md5, .sha1] && file.pieces?.hexes.count == 2)
        #expect(file.sources.map(\.host) == ["best.example", "good.example", "worst.example", "none.example"])
        #expect(file.unsupportedSourceCount == 2)
    }

    @Test("Only elements in their place and in the namespace count")
    func places() throws {
        let file = try Metalink(
            """
            <m:metalink xmlns:m="urn:ietf:params:xml:ns:metalink" xmlns:x="urn:x" xmlns="http://www.metalinker.org/">
            <m:file name="f" x:name="g"><x:url>http://x.example/</x:url><url>http://y.example/</url>
            <x:more><m:url>http://z.example/</m:url><m:size>1</m:size></x:more><resources><m:url>u</m:url></resources>
            <m:description><m:file name="h"/></m:description><m:url><![CDATA[http://a.example/?a&b]]></m:url></m:file>
            <file name="z"/><m:hash type="md5">x</m:hash>
            </m:metalink>
            """.utf8
        ).files
        #expect(file.count == 1)
        #expect(file[0].sources.map(\.string) == ["http://a.example/?a&b"] && file[0].length == nil)
    }

    @Test("A document may be in any common encoding that it declares")
    func encodings() throws {
        let text = Self.four("<file name=\"ä\"><url>http://a.example/</url></file>")
        let latin = text.replacing("UTF-8", with: "ISO-8859-1").unicodeScalars.map { UInt8($0.value) }
        var wide: [UInt8] = [0xFF, 0xFE]
        for unit in text.replacing("UTF-8", with: "UTF-16").utf16 {
            wide += [UInt8(truncatingIfNeeded: unit), UInt8(unit >> 8)]
        }
        for bytes in [Array(text.utf8), [0xEF, 0xBB, 0xBF] + Array(text.utf8), latin, wide] {
            #expect(try Metalink(bytes).files[0].path == "ä")
        }
    }

    @Test("Relative URLs are resolved against the given base, or refused without one")
    func relative() throws {
        let text = Self.four("<file name=\"f\"><url>../f?x</url></file>")
        let file = try Metalink(text.utf8, relativeTo: "http://u:p@a.example/b/c/").files[0]
        #expect(file.sources.map(\.string) == ["http://a.example/b/f?x"])
        #expect(throws: DownloadError.self) { try Metalink(text.utf8) }
    }

    @Test("Files become requests below a directory, with the expected length and all digests")
    func requests() throws {
        let text = Self.four(
            """
            <file name="d/f"><size>7</size><hash type="md5">\(Self.md5)</hash><hash type="sha-256">\(Self.sha256)</hash>
            <url>http://a.example/f</url><url>http://b.example/f</url></file>
            """)
        let requests = try Metalink(text.utf8).requests(in: "isos")
        #expect(requests.map(\.destination) == [.file("isos/d/f")])
        #expect(requests[0].source.host == "a.example" && requests[0].mirrors.map(\.host) == ["b.example"])
        #expect(requests[0].lengthExpected == 7 && requests[0].digests.map(\.algorithm) == [.sha256, .md5])
        #expect(try Metalink(text.utf8).requests(in: "/").map(\.destination) == [.file("/d/f")])
        let metalink = try Metalink(Self.four("<file name=\"f\"><url>http://a.example/f</url></file>").utf8)
        #expect(metalink.requests(in: "x")[0].lengthExpected == nil && metalink.requests(in: "x")[0].digests.isEmpty)
    }

    @Test("A file is found by the end of its path; a single file matches any path")
    func found() throws {
        func metalink(_ names: String...) throws -> Metalink {
            try Metalink(
                Self.four(names.map { "<file name=\"\($0)\"><url>http://a.example/</url></file>" }.joined()).utf8)
        }
        #expect(try metalink("a", "x/a", "b").file(at: "/tmp/x/a")?.path == "x/a")
        #expect(try metalink("a", "x/a", "b").file(at: "a")?.path == "a")
        #expect(try metalink("a", "x/a", "b").file(at: "c") == nil)
        #expect(try metalink("a").file(at: "c")?.path == "a")
    }

    @Test(
        "An error in a document is reported with its line",
        arguments: [
            ("<file name=\"f\">\n<size>1e3</size>", 3, "size"), ("<file name=\"f\"><size>-1</size>", 2, "size"),
            ("<file name=\"f\"><size>99999999999999999999</size>", 2, "size"),
            ("<file name=\"f\"><size/>", 2, "size"),
            ("<file name=\"f\"><size>1</size>\n<size>2</size>", 3, "two sizes"),
            ("<file name=\"f\"><hash type=\"sha-256\">12</hash>", 2, "64 hexadecimal"),
            ("<file name=\"f\"><hash type=\"md5\">\(String(repeating: "x", count: 32))</hash>", 2, "32 hexadecimal"),
            ("<file name=\"f\"><hash>12</hash>", 2, "no type"),
            (
                "<file name=\"f\"><hash type=\"md5\">\(md5)</hash><hash type=\"md5\">\(md5.reversed().map { "\($0)" }.joined())</hash>",
                2, "two digests"
            ),
            ("<file name=\"f\"><pieces type=\"md5\">", 2, "length"),
            ("<file name=\"f\"><pieces type=\"md5\" length=\"0\">", 2, "length"),
            ("<file name=\"f\"><pieces length=\"1\">", 2, "type"),
            ("<file name=\"f\"><pieces length=\"1\" type=\"md5\"/>", 2, "without a hash"),
            ("<file name=\"f\"><pieces length=\"1\" type=\"md5\"><hash>1</hash>", 2, "32 hexadecimal"),
            ("<file name=\"f\"><pieces length=\"1\" type=\"md5\"><hash piece=\"1\">", 2, "piece 0"),
            (
                "\n<file name=\"f\"><size>5</size><url>http://a.example/</url>\n<pieces length=\"2\" type=\"md5\"><hash>\(md5)</hash></pieces></file>",
                3, "make it up"
            ),
            ("<file name=\"f\"><url priority=\"0\">", 2, "priority"),
            ("<file name=\"f\"><url priority=\"1000000\">", 2, "priority"),
            ("<file name=\"f\">\n\n<url>http://[</url>", 4, "cannot be fetched"),
            ("<file name=\"f\"><url>f</url>", 2, "relative"), ("<file name=\"f\"><url>://a/</url>", 2, "relative"),
            ("<file name=\"f\"><url>http://a b/</url>", 2, "not a URL"),
            ("\n<file name=\"f\"><url>ftp://a.example/</url></file>", 3, "no URL of http"),
            ("<file name=\"f\"><metaurl mediatype=\"torrent\">http://a.example/</metaurl></file>", 2, "no URL of http"),
            ("<file><url>http://a.example/</url></file>", 2, "no name"),
            (
                "<file name=\"f\"><url>http://a.example/</url></file>\n<file name=\"f\"><url>http://a.example/</url></file>",
                3, "another file"
            ),
            ("<file name=\"f\"><url>http://a.example/<b/></url>", 2, "element where text"),
            ("<file name=\"f\"></url>", 2, "well-formed"), ("<file name=\"f\"><url>&x;</url>", 2, "well-formed"),
            ("<file name=\"f\" name=\"g\">", 2, "well-formed"), ("", nil, "without a file"),
        ] as [(String, Int?, String)])
    func malformed(content: String, line: Int?, words: String) {
        let error = #expect(throws: DownloadError.self) { try Metalink(Self.four(content).utf8) }
        #expect(error?.code == .usage && error?.message.contains(words) == true, "\(String(describing: error))")
        #expect(
            error?.message.hasPrefix("the metalink:\(line.map { "\($0):" } ?? "") ") == true,
            "\(String(describing: error))")
    }

    @Test("A preference of version 3 is from 0 to 100", arguments: ["101", "-1", "x", ""])
    func preference(_ preference: String) {
        #expect(throws: DownloadError.self) {
            try Self.file(resources: "<url preference=\"\(preference)\">http://a.example/</url>")
        }
    }

    @Test(
        "Other documents are refused",
        arguments: [
            "", " ", "x", "<", "<html/>", "<metalink/>", "<metalink xmlns=\"urn:x\"/>",
            "<file xmlns=\"urn:ietf:params:xml:ns:metalink\" name=\"f\"/>", "<!DOCTYPE html><html/>",
            "http://a.example/",
            "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">",
        ])
    func none(text: String) {
        let error = #expect(throws: DownloadError.self) { try Metalink(text.utf8) }
        #expect(error?.code == .usage)
    }
}
