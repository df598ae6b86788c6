import Foundation
import Origin
import Testing

/// Options of single subcommands, with the real command.
@Suite("Options: subcommands")
struct SubcommandOptionTests {
    /// Makes an interrupted download at a path. Its URL stalls for the first request only.
    private static func interrupt(_ path: String, of command: Segdl, _ url: String) async throws {
        let outcome = try await command.interrupted(["-s", "1", "-o", path, url])
        #expect(outcome.status == 130 && command.exists(path + ".segdl"), "\(outcome)")
    }

    @Test("All interrupted downloads in a directory are resumed", arguments: ["-d", "--dir", "-P"])
    func all(option: String) async throws {
        try await withOptionScene { origin, command in
            for name in ["a", "b"] {
                try await Self.interrupt("isos/\(name).bin", of: command, origin.url("/4M/\(name)?stall-after=1M"))
            }
            try await Self.interrupt("c.bin", of: command, origin.url("/4M/c?stall-after=1M"))
            let one = try await command.run("resume", "--json", option, "isos", "b.bin")
            #expect(one.status == 0 && command.holds("isos/b.bin", 4 << 20), "\(one)")
            #expect(try #require(one.event("started")?["resumed_from"] as? Int) > 0)
            let rest = try await command.run("resume", "-q", "--all", option, "isos")
            #expect(rest.status == 0 && command.holds("isos/a.bin", 4 << 20) && !command.exists("c.bin"), "\(rest)")
            let here = try await command.run("resume", "-q", "--all")
            #expect(here.status == 0 && command.holds("c.bin", 4 << 20), "\(here)")
        }
    }

    @Test("A resumed download keeps its id and user information, unless two have the same id")
    func labels() async throws {
        try await withOptionScene { origin, command in
            let options = ["-s", "1", "--id", "film", "--user-info", "title=A"]
            for name in ["a", "b"] {
                let url = origin.url("/4M/\(name)?stall-after=1M")
                let outcome = try await command.interrupted(options + ["-o", "\(name).bin", url])
                #expect(outcome.status == 130, "\(outcome)")
            }
            let one = try await command.run(["resume", "--json", "--user-info", "year=1", "a.bin"])
            let completed = try #require(one.event("completed"), "\(one)")
            #expect(completed["id"] as? String == "film")
            #expect(completed["user_info"] as? [String: String] == ["title": "A", "year": "1"])
            let outcome = try await command.interrupted(options + ["-o", "c.bin", origin.url("/4M/c?stall-after=1M")])
            #expect(outcome.status == 130, "\(outcome)")
            let both = try await command.run("resume", "--json", "--all")
            #expect(both.status == 0, "\(both)")
            let ids = both.events.filter { $0["event"] as? String == "completed" }.compactMap { $0["id"] as? String }
            #expect(Set(ids) == ["0", "1"])
        }
    }

    @Test("A download whose URL has expired is resumed from another one")
    func url() async throws {
        try await withOptionScene { origin, command in
            let old = origin.url("/4M/f.bin?stall-after=1M&fail=403:all:1")
            try await Self.interrupt("f.bin", of: command, old)
            let expired = try await command.run("resume", "-q", "f.bin")
            #expect(expired.status == 8 && !command.exists("f.bin"), "\(expired)")
            let outcome = try await command.run("resume", "--json", "--url", origin.url("/4M/f.bin"), "f.bin")
            #expect(outcome.status == 0 && command.holds("f.bin", 4 << 20), "\(outcome)")
            #expect(try #require(outcome.event("started")?["resumed_from"] as? Int) > 0)
        }
    }

    @Test("status prints a download as text and as JSON")
    func status() async throws {
        try await withOptionScene { origin, command in
            let empty = try await command.run("status")
            #expect(empty.status == 0 && empty.output.isEmpty, "\(empty)")
            try await Self.interrupt("isos/f.bin", of: command, origin.url("/4M/f.bin?stall-after=1M"))
            let text = try await command.run("status", "isos/f.bin")
            #expect(text.status == 0 && text.output.hasPrefix("isos/f.bin: "), "\(text)")
            #expect(text.output.contains(" of 4.00 MiB (") && text.output.contains("ETag \"4194304-1\""), "\(text)")
            let facts = try #require(try await command.run("status", "--json", "isos/f.bin").events.first)
            #expect(facts["bytes_total"] as? Int == 4 << 20, "\(facts)")
            #expect((1...(1 << 20)).contains(facts["bytes_done"] as? Int ?? 0), "\(facts)")
            #expect(facts["path"] as? String == "isos/f.bin")
            #expect(try await command.run("status", "none").status == 14)
        }
    }

    @Test("gc prints deleted downloads as JSON, also with --dry-run")
    func clean() async throws {
        try await withOptionScene { origin, command in
            try await Self.interrupt("isos/f.bin", of: command, origin.url("/4M/f.bin?stall-after=1M"))
            for arguments in [["--dry-run"], []] {
                let outcome = try await command.run(["gc", "--json", "--older-than", "1ms"] + arguments)
                #expect(
                    outcome.status == 0 && outcome.events.map { $0["path"] as? String } == ["isos/f.bin"], "\(outcome)")
                #expect(command.exists("isos/f.bin.segdl-part") != arguments.isEmpty)
            }
        }
    }

    @Test(
        "bench uses the given directory and numbers of segments",
        arguments: ["-s", "--counts"], ["-d", "--dir", "-P"])
    func bench(counts: String, dir: String) async throws {
        try await withOptionScene { origin, command in
            try FileManager.default.createDirectory(atPath: command.path("disk"), withIntermediateDirectories: false)
            let url = origin.url("/64M/f.bin?stall-after=1M:all")
            let outcome = try await command.run(["bench", counts, "2", dir, "disk", "--seconds", "10m", url]) {
                process in
                await origin.log.waitForRequests(2)
                await command.waitForBytes(writtenBy: process, 256 << 10)
                let names = try? FileManager.default.contentsOfDirectory(atPath: command.path("disk"))
                #expect(names?.contains { $0.hasPrefix(".segdl-bench-") } == true, "\(names ?? [])")
                kill(process, SIGTERM)
            }
            #expect(outcome.status == 143, "\(outcome)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: command.path("disk")).isEmpty)
        }
    }

    @Test("bench repeats each measurement")
    func rounds() async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                "bench", "--json", "--counts", "1", "--rounds", "3", origin.url("/64k/f.bin"))
            #expect(outcome.status == 0 && origin.log.snapshot().requests.count == 3, "\(outcome)")
        }
    }

    @Test("A dry run of a repair does not change or rename the file")
    func repair() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/64k/f.bin")
            #expect(try await command.run("-q", url).status == 0)
            // Without extended attributes the file cannot be verified.
            guard try await command.run("verify", "-q", "f.bin").status == 0 else { return }
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: command.path("f.bin")))
            try handle.truncate(atOffset: 1000)
            try handle.close()
            let trial = try await command.run("verify", "--repair", "--dry-run", "f.bin", url)
            #expect(trial.status == 0 && trial.output.contains("the file exists"), "\(trial)")
            #expect(command.holds("f.bin", 1000) && !command.exists("f.bin.segdl-part"))
            let repaired = try await command.run("verify", "-q", "--repair", "f.bin", url)
            #expect(repaired.status == 0 && command.holds("f.bin", 64 << 10), "\(repaired)")
        }
    }
}
