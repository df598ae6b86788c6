import Foundation
import Origin
import Testing

@testable import SegmentedDownload

/// Metalinks with the real command.
@Suite("Metalinks on the command line")
struct MetalinkCommandTests {
    /// A metalink of version 4 with one file: its elements, and its URLs with the best one first.
    static func metalink(_ name: String, _ content: String = "", urls: String...) -> String {
        let urls = urls.enumerated().map { number, url in
            "<url priority=\"\(number + 1)\">\(url.replacing("&", with: "&amp;"))</url>"
        }
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <metalink xmlns="urn:ietf:params:xml:ns:metalink">
            <file name="\(name)">\(content)\(urls.joined())</file></metalink>
            """
    }

    static func digest(_ bytes: [UInt8], _ algorithm: ExpectedDigest.Algorithm = .sha256) -> String {
        var digest = RunningDigest(algorithm)
        bytes.withUnsafeBytes { digest.update($0) }
        return digest.hex
    }

    /// The elements for the length and digest of 1 MiB of an origin.
    private static let facts: String = {
        let bytes = OriginContent(seed: 1).bytes(0..<1 << 20)
        return "<size>\(bytes.count)</size><hash type=\"sha-256\">\(Self.digest(bytes))</hash>"
    }()

    /// A URL on a port without a listener.
    private static func dead() throws -> String { "http://127.0.0.1:\(try Nginx.freePorts(1)[0])/1M/a.bin" }

    @Test(
        "A metalink's file is fetched from the available source, under its name in the directory",
        arguments: [
            (["-i", "list"], "list"), (["--metalink-file", "list"], "list"), (["--input-metalink=list"], "list"),
            (["./list.meta4"], "list.meta4"), (["list.METALINK"], "list.METALINK"),
        ])
    func fetched(arguments: [String], name: String) async throws {
        let dead = try Self.dead()
        let text = { (origin: Origin) in
            Self.metalink("sub/a.bin", Self.facts, urls: dead, origin.url("/1M/a.bin"), "ftp://a.example/a.bin")
        }
        try await ListCommandTests.run(text, named: name) { command, origin in
            let outcome = try await command.run(["-d", "down"] + arguments)
            #expect(outcome.status == 0, "\(outcome)")
            #expect(ListCommandTests.isRight(command.path("down/sub/a.bin")))
            #expect(outcome.errors.contains("verified by sha256") && outcome.errors.contains("1 URL that is neither"))
            // The existing file is verified against the digest, and no server is contacted.
            let requests = origin.log.snapshot().requests.count
            let again = try await command.run(["-d", "down"] + arguments)
            #expect(again.status == 0 && origin.log.snapshot().requests.count == requests, "\(again)")
        }
    }

    @Test("The user may choose another name for the only file, and another directory for all")
    func chosenName() async throws {
        let text = { (origin: Origin) in Self.metalink("sub/a.bin", Self.facts, urls: origin.url("/1M/a.bin")) }
        try await ListCommandTests.run(text) { command, _ in
            for (output, path) in [("mine.bin", "down/mine.bin"), ("other/", "down/other/sub/a.bin")] {
                let outcome = try await command.run("-d", "down", "-o", output, "-i", "list")
                #expect(outcome.status == 0, "\(outcome)")
                #expect(ListCommandTests.isRight(command.path(path)), "\(outcome)")
            }
            #expect(!command.exists("down/sub/a.bin"))
        }
    }

    @Test("A wrong digest fails, and the final name never appears")
    func wrongDigest() async throws {
        let content = "<hash type=\"sha-256\">\(String(repeating: "0", count: 64))</hash>"
        try await ListCommandTests.run {
            Self.metalink("sub/a.bin", content, urls: $0.url("/1M/a.bin"))
        } _: { command, _ in
            let outcome = try await command.run("-i", "list")
            #expect(outcome.status == 9 && !command.exists("sub/a.bin"), "\(outcome)")
        }
    }

    @Test("A wrong digest fails beside a right one that is stronger")
    func oneWrongDigest() async throws {
        let wrong = "<hash type=\"md5\">\(String(repeating: "0", count: 32))</hash>"
        try await ListCommandTests.run {
            Self.metalink("sub/a.bin", Self.facts + wrong, urls: $0.url("/1M/a.bin"))
        } _: { command, _ in
            let outcome = try await command.run("-i", "list")
            #expect(outcome.status == 9 && !command.exists("sub/a.bin"), "\(outcome)")
        }
    }

    /// Digests of the pieces of 1 MiB of an origin, the last one wrong if it is to be.
    private static func pieces(isRight: Bool) -> String {
        let bytes = OriginContent(seed: 1).bytes(0..<1 << 20)
        var hexes = stride(from: 0, to: bytes.count, by: 400_000).map { start in
            Self.digest(Array(bytes[start..<min(start + 400_000, bytes.count)]))
        }
        if !isRight { hexes[2] = String(repeating: "0", count: 64) }
        return "<pieces type=\"sha-256\" length=\"400000\">" + hexes.map { "<hash>\($0)</hash>" }.joined() + "</pieces>"
    }

    @Test("Without another digest the pieces are verified before the file gets its name", arguments: [true, false])
    func pieces(isRight: Bool) async throws {
        try await ListCommandTests.run {
            Self.metalink("a.bin", Self.pieces(isRight: isRight), urls: $0.url("/1M/a.bin"))
        } _: { command, origin in
            let outcome = try await command.run("-i", "list")
            #expect(outcome.status == (isRight ? 0 : 9) && command.exists("a.bin") == isRight, "\(outcome)")
            #expect(
                outcome.errors.contains(isRight ? "verified by the digests of its pieces" : "at byte 800000"),
                "\(outcome)")
            // A file that segdl fetched without the metalink is held against the pieces as well.
            let plain = try await command.run(
                "-q", "--if-exists", "overwrite", "--continue", "no", origin.url("/1M/a.bin"))
            #expect(plain.status == 0, "\(plain)")
            let again = try await command.run("-i", "list")
            #expect(again.status == (isRight ? 0 : 12), "\(again)")
        }
    }

    @Test("Hashes of unsupported types alone are reported, and nothing is said of them beside one that is supported")
    func unsupportedTypes() async throws {
        let unknown = "<hash type=\"sha-384\">00</hash><pieces type=\"tiger\" length=\"1\"><hash>00</hash></pieces>"
        for (content, isReported) in [(unknown, true), (unknown + Self.facts, false)] {
            try await ListCommandTests.run {
                Self.metalink("a.bin", content, urls: $0.url("/1M/a.bin"))
            } _: { command, _ in
                let outcome = try await command.run("-i", "list")
                #expect(outcome.status == 0, "\(outcome)")
                let remark = "a.bin, whose hashes have unsupported types (sha-384, tiger)"
                #expect(outcome.errors.contains(remark) == isReported, "\(outcome)")
            }
        }
    }

    @Test(
        "A file with another length than in the metalink is an error with both lengths, also if the server states none",
        arguments: ["", "?ranges=no&length=chunked"], [-1, 1])
    func wrongLength(query: String, difference: Int) async throws {
        try await ListCommandTests.run {
            Self.metalink("a.bin", "<size>\(1 << 20 + difference)</size>", urls: $0.url("/1M/a.bin\(query)"))
        } _: { command, _ in
            let outcome = try await command.run("-i", "list")
            #expect(outcome.status == 9 && !command.exists("a.bin"), "\(outcome)")
            #expect(outcome.errors.contains("\(1 << 20 + difference)"), "\(outcome)")
            let isCut = difference < 0 && !query.isEmpty
            #expect(outcome.errors.contains("\(1 << 20) ") || isCut, "\(outcome)")
        }
    }

    @Test("A source whose file has another length is skipped")
    func otherLength() async throws {
        try await ListCommandTests.run {
            Self.metalink("a.bin", Self.facts, urls: $0.url("/2M/a.bin"), $0.url("/1M/a.bin"))
        } _: { command, _ in
            let outcome = try await command.run("-i", "list")
            #expect(outcome.status == 0 && ListCommandTests.isRight(command.path("a.bin")), "\(outcome)")
        }
    }

    @Test("An existing file with another length is not accepted as the metalink's")
    func existing() async throws {
        try await ListCommandTests.run {
            Self.metalink("a.bin", "<size>\(1 << 20 + 1)</size>", urls: $0.url("/1M/a.bin"))
        } _: { command, origin in
            #expect(try await command.run("-q", origin.url("/1M/a.bin")).status == 0)
            let outcome = try await command.run("-i", "list")
            #expect(outcome.status == 12 && ListCommandTests.isRight(command.path("a.bin")), "\(outcome)")
        }
    }

    @Test("Every file of a metalink of version 3 is fetched, from standard input too")
    func versionThree() async throws {
        try await ListCommandTests.run { origin in
            let files = (1...2).map { number in
                """
                <file name="\(number).bin"><size>\(number << 20)</size><resources>
                <url type="ftp">ftp://x.example/</url><url type="http">\(origin.url("/\(number)M/x"))</url></resources></file>
                """
            }
            return
                "\n  <metalink version=\"3.0\" xmlns=\"http://www.metalinker.org/\"><files>\(files.joined())</files></metalink>"
        } _: { command, _ in
            let outcome = try await command.run(["-i", "-"], shell: #""$0" "$@" < list"#)
            #expect(outcome.status == 0 && outcome.errors.contains("2 URLs"), "\(outcome)")
            #expect(ListCommandTests.isRight(command.path("1.bin")))
            #expect(ListCommandTests.isRight(command.path("2.bin"), megabytes: 2))
        }
    }

    @Test(
        "A malformed metalink, or a path outside of the directory, is reported with its line, and nothing is fetched",
        arguments: [
            (Self.metalink("../a.bin", urls: "URL"), "list.meta4:3: the file name \"../a.bin\""),
            (Self.metalink("/etc/passwd", urls: "URL"), "list.meta4:3: the file name"),
            (Self.metalink("a\u{202E}/../b", urls: "URL"), "a\\u{202E}/../b"),
            (Self.metalink("a", urls: "ftp://a.example/"), "list.meta4:3: \"a\" has no URL"),
            (Self.metalink("a", "<size>x</size>", urls: "URL"), "list.meta4:3: a size"),
            ("<!DOCTYPE m [<!ENTITY a \"b\">]>" + Self.metalink("&a;", urls: "URL"), "list.meta4:1: "),
            ("<metalink><file name=\"a\"><url>URL</url></file></metalink>", "list.meta4:1: its root"),
            ("<html>", "list.meta4:1: "), ("", "list.meta4: it is no metalink"),
            // The author of the list could choose paths.
            ("URL\n  out=/etc/passwd\n", "list.meta4: it is no metalink"),
            ("[\"URL\"]", "list.meta4: it is no metalink"),
        ])
    func malformed(document: String, words: String) async throws {
        try await ListCommandTests.run({ document.replacing("URL", with: $0.url("/1M/a.bin")) }, named: "list.meta4") {
            command, origin in
            for arguments in [["list.meta4"], ["-i", "list.meta4"]] {
                let outcome = try await command.run(arguments)
                #expect(outcome.status == 2 && outcome.errors.contains(words), "\(outcome)")
                #expect(outcome.errors.split(separator: "\n").count == 1, "\(outcome)")
            }
            #expect(origin.log.snapshot().connectionsCount == 0)
            #expect(try FileManager.default.contentsOfDirectory(atPath: command.directory) == ["list.meta4"])
        }
    }

    @Test("A metalink has its own mirrors, and --checksum applies in addition")
    func options() async throws {
        try await ListCommandTests.run(
            { Self.metalink("a.bin", Self.facts, urls: $0.url("/1M/a.bin")) }, named: "a.meta4"
        ) {
            command, origin in
            let mirror = try await command.run("a.meta4", "--mirror", origin.url("/1M/b.bin"))
            #expect(mirror.status == 2 && mirror.errors.contains("lists its own mirrors"), "\(mirror)")
            let digest = try await command.run("a.meta4", "--checksum", "crc32=00000000")
            #expect(digest.status == 9 && !command.exists("a.bin"), "\(digest)")
        }
    }

    @Test("A probe prints the duplicates and the metalink in the server's Link fields, the best first")
    func links() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let links = [
                    "<https://u:p@b.example/x?sig=1>; rel=duplicate; pri=2", "</1M/y>; rel=duplicate; pri=1",
                    "<ftp://c.example/x>; rel=duplicate",
                    "<x.meta4>; rel=describedby; type=\"application/metalink4+xml\"",
                ]
                let field = try #require(
                    links.joined(separator: ",").addingPercentEncoding(withAllowedCharacters: .alphanumerics))
                let url = origin.url("/1M/x?field=Link:\(field)")
                let outcome = try await command.run("probe", "--json", url)
                let facts = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any]
                #expect(
                    facts?["duplicates"] as? [String] == [origin.url("/1M/y"), "https://b.example/x?…"], "\(outcome)")
                #expect(facts?["metalink"] as? String == origin.url("/1M/x.meta4"))
                let text = try await command.run("probe", url).output
                #expect(text.contains("\nduplicate   \(origin.url("/1M/y"))\n") && !text.contains("u:p"), "\(text)")
            }
        }
    }
}

/// Metalinks served by nginx.
@Suite("Metalinks of servers", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct RemoteMetalinkTests {
    private static let content: [UInt8] = Array("segdl".utf8)

    @Test("The files of a remote metalink are fetched, and credentials are sent to the metalink's server only")
    func credentials() async throws {
        try await Nginx.run(Nginx.Settings(hosts: 2)) { nginx in
            try await withCommand { command in
                let hash = "<hash type=\"sha-256\">\(MetalinkCommandTests.digest(Self.content))</hash>"
                for host in 1...2 {
                    try nginx.serve(Self.content, host: host)
                    let document = MetalinkCommandTests.metalink("\(host).bin", hash, urls: nginx.url(host: host))
                    try nginx.serve(Array(document.utf8), as: "\(host).meta4")
                }
                let outcome = try await command.run(
                    "-q", "-u", "user:word", "-b", "k=v", "-i", nginx.url("1.meta4"), "-i", nginx.url("2.meta4"))
                #expect(outcome.status == 0 && command.exists("1.bin") && command.exists("2.bin"), "\(outcome)")
                let asked = nginx.accessLog.split(separator: "\n").map { line in
                    (
                        line.contains(".meta4"), line.contains("127.0.0.2"),
                        line.contains("Basic") && line.contains("k=v")
                    )
                }
                #expect(asked.contains { $0.0 && $0.2 } && asked.contains { !$0.0 && !$0.1 && $0.2 })
                #expect(asked.contains { $0.1 } && !asked.contains { $0.1 && $0.2 })
            }
        }
    }

    @Test("A remote list that is missing or is a plain list is reported, and nothing is fetched")
    func noDocument() async throws {
        try await Nginx.run { nginx in
            try await withCommand { command in
                try nginx.serve(Array("\(nginx.url())\n  out=/tmp/x\n".utf8), as: "list")
                try nginx.serve(Array("[\"\(nginx.url())\"]".utf8), as: "list.json")
                try nginx.serve(Self.content)
                for (url, status) in [(nginx.url("none"), 8), (nginx.url("list"), 2), ("ftp://a.example/x", 11)]
                    as [(String, Int32)]
                {
                    let outcome = try await command.run("-q", "-i", url)
                    #expect(outcome.status == status && !command.exists("file.bin"), "\(outcome)")
                }
                // A JSON list cannot choose paths.
                let document = try await command.run("-q", "-i", nginx.url("list.json"))
                #expect(document.status == 0 && command.exists("file.bin"), "\(document)")
            }
        }
    }
}
