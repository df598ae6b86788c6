import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Many files in one run of the real command.
@Suite("Many files")
struct ManyFilesTests {
    @Test("One failed file does not affect the others; at the end every failed file is listed, and the status is 16")
    func siblings() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let lines = (0..<40).map { number in
                    let fault = [3: "?fail=404:all", 11: "?fail=500:all", 29: "?drop=100"][number] ?? ""
                    return origin.url("/1M/f\(number).bin\(fault)") + "\n  retry=1\n  out=f\(number).bin\n"
                }
                try Data(lines.joined().utf8).write(to: URL(fileURLWithPath: command.path("list")))
                let outcome = try await command.run("-j", "8", "-i", "list")
                #expect(outcome.status == 16, "\(outcome)")
                for number in 0..<40 {
                    let isBad = [3, 11, 29].contains(number)
                    #expect(command.exists("f\(number).bin") == !isBad, "\(number)")
                    #expect(isBad || ListCommandTests.isRight(command.path("f\(number).bin")), "\(number)")
                }
                let end = outcome.errors.split(separator: "\n").suffix(4)
                #expect(
                    Array(end) == [
                        "segdl: failed: f3.bin (server)", "segdl: failed: f11.bin (server)",
                        "segdl: failed: f29.bin (network)",
                        "segdl: error[partial]: 37 of 40 files complete, 3 failed. Run the same command again to fetch the rest.",
                    ])
            }
        }
    }

    @Test("Events carry each file's id, state and user information, and all_completed comes once, at the end")
    func events() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let list = """
                    \(origin.url("/2M/a.bin?rate=500K"))
                      id=first
                      user-info=someKey=a
                      user-info=more=b
                    \(origin.url("/2M/b.bin?rate=500K"))
                    \(origin.url("/1M/c.bin?fail=404:all"))
                    """
                try Data(list.utf8).write(to: URL(fileURLWithPath: command.path("list")))
                let outcome = try await command.run("--json", "--user-info", "all=x", "-i", "list")
                #expect(outcome.status == 16, "\(outcome)")
                let events = outcome.events
                #expect(events.filter { $0["event"] as? String == "all_completed" }.count == 1)
                let last = try #require(events.last)
                #expect(last["event"] as? String == "all_completed")
                #expect(last["completed"] as? Int == 2 && last["failed"] as? Int == 1 && last["exit"] as? Int == 16)
                #expect(Set(events.dropLast().map { $0["id"] as? String }) == ["first", "1", "2"])
                let progress = events.filter { $0["event"] as? String == "progress" }
                #expect(!progress.isEmpty && progress.allSatisfy { $0["state"] is String })
                #expect(progress.contains { $0["state"] as? String == "running" })
                for name in ["started", "completed"] {
                    let event = events.first { $0["event"] as? String == name && $0["id"] as? String == "first" }
                    #expect(event?["user_info"] as? [String: String] == ["someKey": "a", "more": "b", "all": "x"])
                }
                #expect(outcome.event("failed")?["user_info"] as? [String: String] == ["all": "x"])
                #expect(progress.allSatisfy { $0["user_info"] == nil })
            }
        }
    }

    @Test("An interrupted run also has one all_completed event, and files that never started are only counted")
    func interrupted() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let list = (0..<600).map { origin.url("/8M/f\($0).bin?stall-after=100000:all") + "\n" }
                try Data(list.joined().utf8).write(to: URL(fileURLWithPath: command.path("list")))
                for arguments in [["--json"], []] {
                    let outcome = try await command.run(
                        arguments + ["-j", "2", "-s", "1", "-i", "list"], signal: SIGINT, afterWriting: 100_000)
                    #expect(outcome.status == 130, "\(outcome)")
                    if arguments.isEmpty {
                        let lines = outcome.errors.split(separator: "\n")
                        #expect(lines.count < 20 && !outcome.errors.contains("segdl: paused: "), "\(outcome)")
                        let last = lines.last ?? ""
                        #expect(last.hasPrefix("segdl: 0 of 600 files complete, 600 paused"), "\(outcome)")
                        #expect(last.hasSuffix(". Run the same command again to fetch the rest"), "\(outcome)")
                    } else {
                        #expect(outcome.events.filter { $0["event"] as? String == "all_completed" }.count == 1)
                        #expect(outcome.events.last?["event"] as? String == "all_completed")
                        #expect(outcome.events.last?["paused"] as? Int == 600)
                    }
                }
            }
        }
    }

    @Test("A header field that segdl sets itself is refused before anything is fetched, in a list for its file only")
    func ownFields() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let urls = ["/1M/a.bin", "/1M/b.bin"].map { origin.url($0) }
                let all = try await command.run(["-H", "Range: bytes=0-1"] + urls)
                #expect(all.status == 2 && all.errors.contains("Range is set by the downloader"), "\(all)")
                #expect(!command.exists("a.bin") && !command.exists("b.bin"))
                let list = "\(urls[0])\n\(urls[1])\n  header=Range: bytes=0-1\n"
                try Data(list.utf8).write(to: URL(fileURLWithPath: command.path("list")))
                let one = try await command.run("-i", "list")
                #expect(one.status == 16 && one.errors.contains("header: Range is set by"), "\(one)")
                #expect(command.exists("a.bin") && !command.exists("b.bin"))
            }
        }
    }

    @Test("More files than fit into the group at once are all fetched")
    func manyMore() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let list = (0..<700).map { origin.url("/\($0 + 1)/f\($0).bin") + "\n" }.joined()
                try Data(list.utf8).write(to: URL(fileURLWithPath: command.path("list")))
                let outcome = try await command.run("--json", "-j", "16", "-i", "list")
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(outcome.event("all_completed")?["completed"] as? Int == 700)
                #expect(outcome.event("all_completed")?["bytes"] as? Int == 700 * 701 / 2)
                let isRight = (0..<700).allSatisfy { number in
                    OriginContent(seed: 1).firstMismatch(
                        inFileAt: command.path("f\(number).bin"), length: Int64(number) + 1) == nil
                }
                #expect(isRight)
            }
        }
    }

    @Test("A mirror after a URL is not a separate file")
    func mirror() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    "--json", origin.url("/1M/a.bin"), "--mirror", origin.url("/1M/m/a.bin"), origin.url("/1M/b.bin"))
                #expect(outcome.status == 0, "\(outcome)")
                #expect(outcome.events.last?["completed"] as? Int == 2)
                #expect(
                    ListCommandTests.isRight(command.path("a.bin")) && ListCommandTests.isRight(command.path("b.bin")))
            }
        }
    }

    @Test(
        "Malformed limits, names and priorities are usage errors",
        arguments: [
            ["--limit-rate", "fast"], ["--max-download-limit", "-1"], ["--priority", "0"], ["--priority", "1.01"],
            ["--id", ""], ["--user-info", "x"], ["--mirror"], ["--mirror", "nonsense"], ["--json-path", "[]"],
            ["-i", "-", "-i", "-"], ["-i", "x", "--json-path", ".."],
        ])
    func usage(arguments: [String]) async throws {
        try await withCommand { command in
            let outcome = try await command.run(["http://127.0.0.1:1/x"] + arguments)
            #expect(outcome.status == 2 && outcome.errors.contains("segdl: error[usage]"), "\(outcome)")
        }
    }

    @Test("Rates, priorities and ids are also accepted under aria2's names, and by resume")
    func aliases() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let options = [
                    "--max-overall-download-limit", "100M", "--max-download-limit", "50M/s", "--priority", "1", "--id",
                    "mine", "--json",
                ]
                let stuck = origin.plainURL("/8M/f.bin?stall-after=700000:all")
                try await command.interrupt(["-s", "4", "-o", "f.bin", stuck], after: 2_500_000)
                _ = origin.plainURL("/8M/f.bin")
                let resumed = try await command.run(["resume", "f.bin"] + options)
                #expect(resumed.status == 0, "\(resumed)")
                #expect(resumed.event("completed")?["id"] as? String == "mine")
                let again = try await command.run([origin.url("/1M/g.bin")] + options)
                #expect(again.status == 0 && again.event("completed")?["id"] as? String == "mine", "\(again)")
            }
        }
    }
}
