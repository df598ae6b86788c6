import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Lists with the real command.
@Suite("Lists of files")
struct ListCommandTests {
    /// A command in a directory with a list, and an origin.
    static func run(
        _ text: (Origin) -> String, named name: String = "list",
        _ body: (Segdl, Origin) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                try Data(text(origin).utf8).write(to: URL(fileURLWithPath: command.path(name)))
                try await body(command, origin)
            }
        }
    }

    static func isRight(_ path: String, megabytes: Int64 = 1, seed: UInt64 = 1) -> Bool {
        OriginContent(seed: seed).firstMismatch(inFileAt: path, length: megabytes << 20) == nil
    }

    @Test("Every URL of a list is fetched, with the options below it, together with those of the command line")
    func list() async throws {
        try await Self.run { origin in
            """
            # two files
            \(origin.url("/1M/a.bin"))
              out=first.bin
              header=X-One: 1
              user-agent=me
            \(origin.url("/1M/b.bin?seed=2"))
              dir=sub
            """
        } _: { command, origin in
            let outcome = try await command.run("-i", "list", origin.url("/1M/c.bin"), "-A", "all")
            #expect(outcome.status == 0, "\(outcome)")
            #expect(Self.isRight(command.path("first.bin")) && Self.isRight(command.path("c.bin")))
            #expect(Self.isRight(command.path("sub/b.bin"), seed: 2))
            let requests = origin.log.snapshot().requests
            let first = requests.filter { $0.path.hasPrefix("/1M/a.bin") }
            #expect(!first.isEmpty && first.allSatisfy { $0["x-one"] == "1" && $0["user-agent"] == "me" })
            let others = requests.filter { !$0.path.hasPrefix("/1M/a.bin") }
            #expect(others.allSatisfy { $0["x-one"] == nil && $0["user-agent"] == "all" })
        }
    }

    @Test("Of two files with one path in a list the second fails, and on the command line nothing is fetched")
    func samePath() async throws {
        try await Self.run { origin in
            "\(origin.url("/1K/a.bin"))\n  out=a\n\(origin.url("/1K/b.bin"))\n  out=./a\n\(origin.url("/1K/c.bin"))"
        } _: { command, origin in
            let both = try await command.run("-q", "-o", "a", "-o", "./a", origin.url("/1K/a"), origin.url("/1K/b"))
            #expect(both.status == 2 && both.errors.contains("have the same destination"), "\(both)")
            #expect(origin.log.snapshot().requests.isEmpty)
            let outcome = try await command.run("-q", "-i", "list")
            #expect(outcome.status == 16 && outcome.errors.contains("list:3: another file has"), "\(outcome)")
            #expect(command.exists("a") && command.exists("c.bin"))
        }
    }

    @Test("A URL that is given twice is fetched once, with a note that names the line")
    func double() async throws {
        try await Self.run { origin in
            [1, 2, 1].map { origin.url("/1K/\($0).bin") + "\n" }.joined()
        } _: { command, origin in
            let outcome = try await command.run("-i", "list")
            #expect(outcome.status == 0 && outcome.errors.contains("fetched once: list:3"), "\(outcome)")
            let url = origin.url("/1K/3.bin")
            let both = try await command.run(url, url)
            #expect(both.status == 0 && both.errors.contains("fetched once"), "\(both)")
        }
    }

    @Test("Two URLs whose files get one name: the first is complete, the second fails, and nothing is left beside it")
    func sameName() async throws {
        try await Self.run { _ in
            ""
        } _: { command, origin in
            // The first is still being fetched when the second answers.
            let (first, second) = (origin.url("/64K/f?rate=64K&seed=1"), origin.url("/64K/f?seed=1&rate=64K"))
            let outcome = try await command.run("-q", "-d", "out", first, second)
            #expect(outcome.status == 16, "\(outcome)")
            let names = try FileManager.default.contentsOfDirectory(atPath: command.path("out"))
            #expect(names == ["f"] && command.holds("out/f", 64 << 10))
        }
    }

    @Test("A list can be read from standard input, also with CRLF line ends")
    func standardInput() async throws {
        try await Self.run {
            "\u{FEFF}\($0.url("/1M/a.bin"))\r\n  out=x.bin\r\n\($0.url("/1M/b.bin"))"
        } _: { command, _ in
            let outcome = try await command.run(["-i", "-"], shell: #""$0" "$@" < list"#)
            #expect(outcome.status == 0, "\(outcome)")
            #expect(Self.isRight(command.path("x.bin")) && Self.isRight(command.path("b.bin")))
        }
    }

    @Test("A list can be JSON, with names and relative URLs")
    func json() async throws {
        try await Self.run { _ in
            #"{"list": [{"path": "a.bin", "name": "../x.bin"}, {"path": "/1M/b.bin?seed=2"}]}"#
        } _: { command, origin in
            let outcome = try await command.run(
                "-i", "list", "--json-path", ".list[]", "--url-key", "path", "--name-key", "name", "--base-url",
                origin.url("/1M/index.json"))
            #expect(outcome.status == 0, "\(outcome)")
            #expect(Self.isRight(command.path("x.bin")) && Self.isRight(command.path("b.bin"), seed: 2))
            let other = try await command.run("-i", "list", "--json-path", ".list[]", "--url-key", "path")
            #expect(other.status == 2 && other.errors.contains("list: .list[0]: "), "\(other)")
        }
    }

    @Test(
        "An error in a list is reported with its line, and only its file is not fetched",
        arguments: [
            ("  nonsense=1", "list:2: \"nonsense\""), ("  split=0", "list:2: split"), ("not a url", "list:2: "),
            ("  header=Range", "list:2: header"), ("  header=Range: bytes=0-1", "list:2: header: Range is set by"),
            ("  header=A: b\n  header=host: x", "list:3: header: host is set by"),
            ("http://a/\thttp://[", "list:2: "), ("ftp://a/b", "list:2: the URL's scheme is ftp"),
        ])
    func malformed(line: String, words: String) async throws {
        try await Self.run {
            "\($0.url("/1M/a.bin"))\n\(line)\n\($0.url("/1M/b.bin"))\n"
        } _: { command, origin in
            let outcome = try await command.run("-q", "-i", "list")
            #expect(outcome.status == 16 && outcome.errors.contains(words), "\(outcome)")
            // An option is one of the file above it.
            #expect(command.exists("a.bin") == !line.hasPrefix(" ") && command.exists("b.bin"))
            let planned = try await command.run("-q", "--dry-run", "-i", "list")
            #expect(planned.status == 16 && planned.errors.contains(words), "\(planned)")
        }
    }

    @Test(
        "A list without a valid entry, or with a NUL, is refused as a whole with the first line",
        arguments: [
            ("a\nb\n", 2, "list:1: "), ("ftp://a/b\nftp://a/c", 11, "list:1: "),
            ("URL\nx\0y\n", 2, "list:2: the line contains"),
        ])
    func noEntry(text: String, status: Int32, words: String) async throws {
        try await Self.run {
            text.replacing("URL", with: $0.url("/1K/a.bin"))
        } _: { command, origin in
            let outcome = try await command.run("-i", "list")
            #expect(outcome.status == status && outcome.errors.contains(words), "\(outcome)")
            #expect(outcome.errors.split(separator: "\n").count == 1)
            #expect(origin.log.snapshot().connectionsCount == 0)
        }
    }

    @Test("An error on the command line is not reported as an error of a list")
    func commandLineIsToBlame() async throws {
        try await Self.run {
            "\($0.url("/1M/a.bin"))\n  split=2\n"
        } _: { command, origin in
            let outcome = try await command.run("-i", "list", "-H", "Range: bytes=0-1")
            #expect(outcome.status == 2 && outcome.errors.contains("error[usage]: Range is set by"), "\(outcome)")
            #expect(origin.log.snapshot().connectionsCount == 0)
        }
    }

    @Test("Files are named by a template where nothing else names them, and what was fetched is kept in a history")
    func namesAndHistory() async throws {
        try await Self.run {
            "\($0.url("/1M/x/a.bin"))\n\($0.url("/1M/y/a.bin?seed=2"))\n\($0.url("/1M/z/a.bin"))\n  out=own.bin\n"
                + "\($0.url("/1M/b.bin?fail=404:all"))\n  id=gone\n"
        } _: { command, _ in
            let outcome = try await command.run(
                "-i", "list", "--name-template", "f{id}{ext}", "--keep-history", "history")
            #expect(outcome.status == 16, "\(outcome)")
            #expect(Self.isRight(command.path("f0.bin")) && Self.isRight(command.path("f1.bin"), seed: 2))
            #expect(Self.isRight(command.path("own.bin")))
            let lines = try String(contentsOfFile: command.path("history"), encoding: .utf8).split(separator: "\n")
            #expect(lines.count == 4)
            #expect(lines.count { $0.contains("\"outcome\":\"completed\"") } == 3)
            #expect(lines.count { $0.contains("\"id\":\"gone\"") && $0.contains("\"outcome\":\"failed\"") } == 1)
        }
    }

    @Test(
        "A malformed template, or one without effect, is a usage error that states the reason",
        arguments: [(["--name-template", "{size}"], "{size}"), (["--name-template", "{id}", "-o", "x"], "--output")])
    func badTemplate(options: [String], word: String) async throws {
        try await withCommand { command in
            let outcome = try await command.run(options + ["http://127.0.0.1:1/a"])
            #expect(outcome.status == 2 && outcome.errors.contains(word), "\(outcome)")
            #expect(outcome.errors.split(separator: "\n").count == 1)
        }
    }

    @Test("A list that does not exist or is no file exits with 3, and an empty one with 0")
    func noList() async throws {
        try await Self.run { _ in
            "\n# nothing\n"
        } _: { command, _ in
            for path in ["nowhere", "."] {
                let outcome = try await command.run("-i", path)
                #expect(outcome.status == 3 && outcome.errors.hasPrefix("segdl: error[file]: the list "), "\(outcome)")
            }
            let outcome = try await command.run("-i", "list")
            #expect(outcome.status == 0 && outcome.errors.contains("nothing to fetch in list"), "\(outcome)")
        }
    }

    @Test(
        "Options for one file are refused for a list of several files",
        arguments: [["-o", "x"], ["--id", "x"], ["--checksum", "crc32=00000000"]])
    func oneFile(option: [String]) async throws {
        try await Self.run {
            "\($0.url("/1M/a.bin"))\n\($0.url("/1M/b.bin"))\n"
        } _: { command, origin in
            let outcome = try await command.run(["-i", "list"] + option)
            #expect(outcome.status == 2 && outcome.errors.contains("there are 2"), "\(outcome)")
            #expect(origin.log.snapshot().connectionsCount == 0)
        }
    }

    @Test("A number of segments in a list is exact, also above the default limit of connections to a server")
    func exactSegments() async throws {
        try await Self.run {
            "\($0.url("/40M/a.bin?rate=100000"))\n  split=20\n"
        } _: { command, origin in
            let outcome = try await command.run(["--json", "-i", "list"]) { process in
                await command.waitForReport { $0.contains { $0["connections"] as? Int == 20 } }
                await origin.log.waitForBytes(sent: 1 << 20)
                kill(process, SIGINT)
            }
            #expect(outcome.status == 130, "\(outcome)")
            // As the command counts them: the server may see one end after the one that replaces it has begun.
            #expect(outcome.events.compactMap { $0["connections"] as? Int }.max() == 20)
        }
    }

    @Test(
        "Of short files sixteen are fetched at once, of long ones five, and of any as many as -j says",
        arguments: [("64K", [], 16), ("2M", [], 5), ("64K", ["-j", "5"], 5)])
    func atOnce(size: String, options: [String], count: Int) async throws {
        try await Self.run { origin in
            (0..<40).map { origin.url("/\(size)/f\($0)?stall-after=100:all") }.joined(separator: "\n")
        } _: { command, origin in
            let arguments = ["--json", "-s", "1", "--stall-timeout", "1h", "-i", "list"] + options
            let outcome = try await command.run(arguments) { process in
                // A further file would have been started with the event.
                await command.waitForReport { $0.count { $0["event"] as? String == "started" } >= count }
                kill(process, SIGINT)
            }
            #expect(outcome.status == 130, "\(outcome)")
            #expect(origin.log.snapshot().requestsPeak == count)
        }
    }
}
