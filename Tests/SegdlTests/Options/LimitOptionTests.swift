import Foundation
import Origin
import Testing

/// Options of what files may use, with the real command.
@Suite("Options: what files may use")
struct LimitOptionTests {
    @Test(
        "So many files are fetched at once, and no more",
        arguments: ["-j", "--max-concurrent-downloads", "--parallel-max"])
    func files(option: String) async throws {
        try await withOptionScene { origin, command in
            // Paced, so that as many as may be are under way at once.
            let urls = (0..<6).map { origin.url("/128k/f\($0).bin?rate=512k") }
            let outcome = try await command.run(["-q", "-s", "1", option, "2"] + urls)
            #expect(outcome.status == 0, "\(outcome)")
            #expect((0..<6).allSatisfy { command.holds("f\($0).bin", 128 << 10) })
            #expect(origin.log.snapshot().requestsPeak == 2)
        }
    }

    @Test(
        "No more connections are made than may be, however many segments there are",
        arguments: ["-x", "--max-connection-per-server", "--max-connections"])
    func connections(option: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("--json", "-s", "4", option, "2", origin.url("/4M/f.bin?rate=4M"))
            #expect(outcome.status == 0 && command.holds("f.bin", 4 << 20), "\(outcome)")
            #expect(outcome.event("completed")?["connections_peak"] as? Int == 2)
        }
    }

    @Test(
        "At the rate that is allowed a file is not done in its time, which is a tenth of what it would take",
        arguments: ["--limit-rate", "--max-overall-download-limit", "--limit-rate-per-file", "--max-download-limit"])
    func rate(option: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("-o", "f.bin", option, "25k/s", "-m", "1s", origin.url("/256k/f.bin"))
            #expect(outcome.status == 4 && outcome.errors.contains("not finished within 1.0 s"), "\(outcome)")
            #expect(!command.exists("f.bin"))
        }
    }

    @Test("Of two files that share what is allowed, the one that is put first has most of it")
    func priority() async throws {
        try await withOptionScene { origin, command in
            try command.write(
                "\(origin.url("/64M/a.bin"))\n  priority=1\n\(origin.url("/64M/b.bin"))\n", to: "list")
            let outcome = try await command.run(
                ["--json", "-s", "1", "--limit-rate", "2M", "--priority", "0.1", "-i", "list"]
            ) { process in
                await command.waitForBytes(writtenBy: process, 1 << 20)
                kill(process, SIGINT)
            }
            #expect(outcome.status == 130, "\(outcome)")
            let done = ["a.bin", "b.bin"].map { path in
                outcome.events.last { $0["event"] as? String == "paused" && $0["path"] as? String == path }?[
                    "bytes_done"]
                    as? Int
            }
            let (first, second) = (try #require(done[0]), try #require(done[1]))
            #expect(first > 2 * second, "\(done)")
        }
    }

    @Test("A mirror brings the file where its own server does not, and the file keeps its name")
    func mirror() async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                "--json", "--id", "mine", "--retry-delay", "1ms", origin.url("/64k/a.bin?fail=404:all"), "--mirror",
                origin.url("/64k/b.bin"))
            #expect(outcome.status == 0 && command.holds("a.bin", 64 << 10), "\(outcome)")
            #expect(outcome.event("completed")?["id"] as? String == "mine")
            #expect(origin.log.snapshot(path: "/64k/b.bin").requests.count == 1)
        }
    }
}
