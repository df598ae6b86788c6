import Foundation
import Origin
import Testing

/// Options for limits, with the real command.
@Suite("Options: limits")
struct LimitOptionTests {
    @Test(
        "The given number of files is fetched at once, and no more",
        arguments: ["-j", "--max-concurrent-downloads", "--parallel-max"])
    func files(option: String) async throws {
        try await withOptionScene { origin, command in
            // A slow rate, so that as many files as allowed are active at once.
            let urls = (0..<6).map { origin.url("/128k/f\($0).bin?rate=512k") }
            let outcome = try await command.run(["-q", "-s", "1", option, "2"] + urls)
            #expect(outcome.status == 0, "\(outcome)")
            #expect((0..<6).allSatisfy { command.holds("f\($0).bin", 128 << 10) })
            #expect(origin.log.snapshot().requestsPeak == 2)
        }
    }

    @Test(
        "A limit of connections is kept with any number of segments",
        arguments: ["-x", "--max-connection-per-server", "--max-connections"])
    func connections(option: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("--json", "-s", "4", option, "2", origin.url("/4M/f.bin?rate=4M"))
            #expect(outcome.status == 0 && command.holds("f.bin", 4 << 20), "\(outcome)")
            #expect(outcome.event("completed")?["connections_peak"] as? Int == 2)
        }
    }

    @Test(
        "At a limited rate a file is not complete in a tenth of the time that it needs",
        arguments: ["--limit-rate", "--max-overall-download-limit", "--limit-rate-per-file", "--max-download-limit"])
    func rate(option: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("-o", "f.bin", option, "25k/s", "-m", "1s", origin.url("/256k/f.bin"))
            #expect(outcome.status == 4 && outcome.errors.contains("the time limit of 1.0 s was reached"), "\(outcome)")
            #expect(!command.exists("f.bin"))
        }
    }

    @Test("Of two files that share a rate, the one with the higher priority gets most of it")
    func priority() async throws {
        try await withOptionScene { origin, command in
            try command.write(
                "\(origin.url("/64M/a.bin"))\n  priority=1\n\(origin.url("/64M/b.bin"))\n", to: "list")
            let outcome = try await command.run(
                ["--json", "-s", "1", "--limit-rate", "2M", "--priority", "0.1", "-i", "list"]
            ) { process in
                await command.waitForReport { events in
                    Self.bytesShared(["0", "1"], events).map { $0.reduce(0, +) > 1 << 20 } ?? false
                }
                kill(process, SIGINT)
            }
            #expect(outcome.status == 130, "\(outcome)")
            let shared = try #require(Self.bytesShared(["0", "1"], outcome.events), "\(outcome)")
            #expect(shared[0] > 2 * shared[1], "\(shared)")
        }
    }

    /// The bytes of each file since all of them have some: until then, those that began first have the whole rate.
    private static func bytesShared(_ ids: [String], _ events: [[String: Any]]) -> [Int]? {
        var latest: [String: Int] = [:]
        var atFirst: [String: Int]?
        for event in events {
            guard let id = event["id"] as? String, let bytes = event["bytes_done"] as? Int else { continue }
            latest[id] = bytes
            if atFirst == nil, ids.allSatisfy({ latest[$0] ?? 0 > 0 }) { atFirst = latest }
        }
        return atFirst.map { first in ids.map { (latest[$0] ?? 0) - (first[$0] ?? 0) } }
    }

    @Test("A mirror is used if the first server fails, and the file keeps its name")
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
