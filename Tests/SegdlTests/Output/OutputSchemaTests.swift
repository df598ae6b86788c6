import Foundation
import Origin
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// The output for programs follows the published schema, field by field.
@Suite("Output for programs")
struct OutputSchemaTests {
    /// Checks every line; returns the names of its events.
    @discardableResult
    private static func check(
        _ text: String, as definition: String? = "line", count: Int? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Set<String> {
        let schema = try JSONSchema.published()
        let lines = try JSON.lines(text)
        #expect(!lines.isEmpty && lines.count == count ?? lines.count, "\(text)", sourceLocation: sourceLocation)
        for line in lines {
            let violations = schema.violations(of: line, as: definition)
            #expect(violations.isEmpty, "\(line)", sourceLocation: sourceLocation)
        }
        return Set(lines.compactMap { $0["event"]?.text })
    }

    private static func contents(_ path: String) throws -> String {
        String(decoding: try #require(FileManager.default.contents(atPath: path)), as: UTF8.self)
    }

    @Test("A completed file, and one that exists already, follow the schema")
    func complete() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                // It is stuck until its progress is reported.
                let url = origin.plainURL("/8M/f.bin?stall-after=300000:all")
                let arguments = [
                    "--json", "-s", "4", "-o", "f.bin", "--id", "film", "--user-info", "title=A", "--stats", "s.json",
                    "--keep-history", "h.json", url,
                ]
                let outcome = try await command.run(arguments) { _ in
                    await command.waitForReport { $0.contains { $0["event"] as? String == "progress" } }
                    _ = origin.plainURL("/8M/f.bin")
                    try? await origin.disconnect()
                }
                let fetched = try Self.check(outcome.output)
                #expect(
                    fetched.isSuperset(of: ["started", "progress", "segment", "state", "completed", "all_completed"]))
                let again = try await command.run(arguments)
                #expect(try Self.check(again.output).contains("completed"))
                try Self.check(try Self.contents(command.path("s.json")), as: "stats", count: 1)
                try Self.check(try Self.contents(command.path("h.json")), as: "history", count: 2)
            }
        }
    }

    @Test("A file of unknown length that looks like a web page follows the schema")
    func stream() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let url = origin.url(
                    "/3M/f.bin?ranges=no&length=chunked&rate=8M&etag=none&last-modified=none&type=text/html")
                let outcome = try await command.run("--json", "-o", "f.bin", url)
                #expect(try Self.check(outcome.output).isSuperset(of: ["note", "completed"]))
            }
        }
    }

    @Test("An interruption, its status and the resume follow the schema")
    func interrupted() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let stuck = origin.plainURL("/8M/f.bin?stall-after=700000:all")
                let outcome = try await command.run(
                    ["--json", "-s", "2", "-o", "f.bin", stuck], signal: SIGINT, afterWriting: 1 << 20)
                #expect(try Self.check(outcome.output).isSuperset(of: ["checkpoint", "paused", "all_completed"]))
                try Self.check(try await command.run("status", "--json").output, as: "status", count: 1)
                try Self.check(try await command.run("du", "--json").output, as: "usage", count: 1)
                _ = origin.plainURL("/8M/f.bin")
                let resumed = try await command.run("resume", "--json", "f.bin")
                #expect(try Self.check(resumed.output).contains("completed"))
            }
        }
    }

    @Test("Retries, failed files, and files that cannot be tried follow the schema")
    func failures() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let retried = try await command.run(
                    "--json", "--retry-delay", "1ms", "-o", "a.bin", origin.url("/1M/a.bin?fail=503:2"))
                #expect(try Self.check(retried.output).isSuperset(of: ["retry", "completed"]))
                let several = try await command.run(
                    "--json", "--retry", "0", "--user-info", "a=b", "--keep-history", "h.json", origin.url("/1M/b.bin"),
                    origin.url("/1M/c.bin?fail=404:all"), "http://127.0.0.1:1/d.bin")
                #expect(several.status == 16)
                #expect(try Self.check(several.output).isSuperset(of: ["completed", "failed", "all_completed"]))
                try Self.check(try Self.contents(command.path("h.json")), as: "history", count: 3)
                let missing = try await command.run("resume", "--json", "none.bin")
                #expect(try Self.check(missing.output) == ["failed", "all_completed"])
                let unwritable = try await command.run("--json", "-o", "b.bin/x", origin.url("/1M/x"))
                #expect(unwritable.status == 12 && unwritable.output.contains("\"errno\":"), "\(unwritable)")
                try Self.check(unwritable.output)
            }
        }
    }

    @Test("Probe, plan and bench follow the schema")
    func records() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let urls = [
                    origin.url("/1M/a.bin"), origin.url("/1M/b.bin?ranges=no&length=chunked&last-modified=none"),
                ]
                try Self.check(try await command.run(["probe", "--json"] + urls).output, as: "probe", count: 2)
                try Self.check(try await command.run(["--dry-run", "--json"] + urls).output, as: "plan", count: 2)
                let bench = try await command.run("bench", "--json", "--counts", "1,auto", urls[0])
                #expect(try Self.check(bench.output, as: nil, count: 3) == ["measured", "knee"], "\(bench)")
            }
        }
    }

    @Test("A finished file that is right, damaged and repaired follows the schema")
    func verified() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let url = origin.url("/8M/f.bin")
                _ = try await command.run("-q", "-o", "f.bin", url)
                let good = try await command.run("verify", "--json", "f.bin")
                #expect(good.status == 0 && good.event("checked")?["good"] as? Bool == true, "\(good)")
                #expect(try Self.check(good.output) == ["checked"])

                let file = try #require(FileHandle(forUpdatingAtPath: command.path("f.bin")))
                try file.seek(toOffset: 3_000_000)
                try file.write(contentsOf: Data("damage".utf8))
                try file.close()
                let bad = try await command.run(
                    "verify", "--json", "--checksum", "crc32=00000000", "--progress", "log", "f.bin")
                #expect(bad.status == 9)
                #expect(try Self.check(bad.output) == ["checked"])
                let found = try #require(try JSON.lines(bad.output).first)
                let damage = JSON.object(["start": .number(2_097_152), "end": .number(3_145_728)])
                #expect(found["good"] == .bool(false) && found["damage"] == .array([damage]))
                #expect(found["digests"] == .array([.string("crc32=00000000")]))
                #expect(found["digests_found"] != found["digests"])

                let repaired = try await command.run("verify", "--json", "--repair", "f.bin", url)
                #expect(
                    try Self.check(repaired.output).isSuperset(of: ["checked", "started", "completed"]), "\(repaired)")
            }
        }
    }

    @Test("A file of several tasks follows the schema")
    func assembled() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                for number in 1...2 {
                    let arguments = ["--json", "--shard", "\(number)/2", "--one-file", "-o", "f.bin"]
                    let outcome = try await command.run(arguments + [origin.url("/3M/f.bin")])
                    #expect(
                        try Self.check(outcome.output).contains(number == 2 ? "assembled" : "completed"), "\(outcome)")
                    if number == 1 {
                        try Self.check(try await command.run("status", "--json", "f.bin").output, as: "status")
                    }
                }
            }
        }
    }

    @Test("An adopted file follows the schema")
    func adopted() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                try AdoptTests.write(AdoptTests.content[..<1_000_000], to: "f.bin", command)
                let outcome = try await command.run("adopt", "--json", "f.bin", origin.url("/32M/f.bin"))
                #expect(try Self.check(outcome.output).isSuperset(of: ["adopted", "completed"]), "\(outcome)")
            }
        }
    }

    @Test("The examples in the documentation follow the schema, and every field is explained")
    func page() throws {
        let schema = try JSONSchema.published()
        let page = try String(contentsOf: JSONSchema.directory.appending(path: "Events.md"), encoding: .utf8)
        let examples = page.components(separatedBy: "```json\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
        #expect(examples.count > 4)
        for example in examples { try Self.check(example, as: nil) }
        for (name, definition) in schema.definitions {
            for field in definition["properties"]?.members?.keys.sorted() ?? [] {
                #expect(page.contains("`\(field)`"), "of \(name)")
            }
        }
    }

    /// An example object from the documentation.
    private static func example(_ event: String) throws -> JSON {
        let page = try String(contentsOf: JSONSchema.directory.appending(path: "Events.md"), encoding: .utf8)
        let line = page.split(separator: "\n").first { $0.hasPrefix("{") && $0.contains("\"event\":\"\(event)\"") }
        return try JSON(try #require(line))
    }

    @Test("An object that lacks a field, has an additional one, or has one of another type is refused")
    func wrong() throws {
        let schema = try JSONSchema.published()
        let right = try Self.example("completed")
        #expect(schema.violations(of: right).isEmpty)
        let always = Set(try #require(schema.definitions["completed"]?["required"]?.elements).compactMap(\.text))
        #expect(always.count == 14)
        for name in try #require(right.members).keys {
            var less = right
            less[name] = nil
            #expect(schema.violations(of: less, as: "completed").isEmpty == !always.contains(name), "\(name)")
            var null = right
            null[name] = .null
            #expect(!schema.violations(of: null).isEmpty, "\(name)")
        }
        let changes: [(String, JSON)] = [
            ("extra", .bool(true)), ("v", .number(2)), ("event", .string("complete")), ("id", .number(0)),
            ("time", .string("1")), ("bytes", .number(-1)), ("requests", .number(0.5)),
            ("already_complete", .number(0)),
            ("verified_by", .string("luck")), ("crc32", .string("xyz")), ("digests", .array([.string("sha256=0")])),
            ("url", .string("file:///etc/passwd")), ("user_info", .object(["a": .number(1)])),
        ]
        for (name, value) in changes {
            var other = right
            other[name] = value
            #expect(!schema.violations(of: other, as: "completed").isEmpty, "\(name)")
            #expect(!schema.violations(of: other).isEmpty, "\(name)")
        }
    }

    @Test("A schema with an unsupported keyword is refused")
    func unknownKeyword() throws {
        let schema = JSONSchema(try JSON(##"{"$defs": {"a": {"maximum": 3}, "b": {"$ref": "#/$defs/c"}}}"##))
        #expect(schema.violations(of: .number(2), as: "a") == ["the object: the keyword maximum is not understood"])
        #expect(!schema.violations(of: .number(2), as: "b").isEmpty)
        #expect(!schema.violations(of: .number(2), as: "d").isEmpty)
    }
}
