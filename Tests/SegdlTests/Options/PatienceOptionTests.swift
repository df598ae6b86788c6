import Foundation
import Origin
import Testing

/// Options of how long is tried, with the real command: counted in requests, or told by the message, never by a clock.
@Suite("Options: how long is tried")
struct PatienceOptionTests {
    @Test("So many failures in a row are survived, and no more", arguments: ["--retry", "--tries"])
    func retry(option: String) async throws {
        try await withOptionScene { origin, command in
            for (count, status) in [("0", 8), ("2", 8), ("3", 0)] as [(String, Int32)] {
                origin.reset()
                let url = origin.url("/64k/f.bin?fail=500:3")
                let outcome = try await command.run("-q", "-s", "1", option, count, "--retry-delay", "1ms", url)
                #expect(outcome.status == status, "\(outcome)")
                #expect(origin.log.snapshot().requests.count == (Int(count) ?? 0) + 1)
            }
        }
    }

    @Test(
        "The wait before another attempt is the one that is given",
        arguments: ["--retry-delay", "--retry-wait", "--waitretry"])
    func delay(option: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("--json", option, "25ms", origin.url("/64k/f.bin?fail=500:2"))
            let retries = outcome.events.filter { $0["event"] as? String == "retry" }
            #expect(outcome.status == 0 && retries.map { $0["delay"] as? Double } == [0.025, 0.025], "\(outcome)")
        }
    }

    @Test("Once the time for it is over nothing is tried again, however often it might be")
    func retryTime() async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                "-q", "-s", "1", "--retry", "9", "--retry-delay", "50ms", "--retry-max-time", "10ms",
                origin.url("/64k/f.bin?fail=500:all"))
            #expect(outcome.status == 8, "\(outcome)")
            // The second attempt comes too late to be followed by a third.
            #expect(origin.log.snapshot().requests.count <= 2)
        }
    }

    @Test("A file that takes longer than it may is left as far as it has come", arguments: ["-m", "--max-time"])
    func maxTime(option: String) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/1M/f.bin?stall-after=100000:all")
            let outcome = try await command.run("-s", "1", option, "500ms", "-o", "f.bin", url)
            #expect(outcome.status == 4 && outcome.errors.contains("not finished within 0.5 s"), "\(outcome)")
            #expect(!command.exists("f.bin"))
        }
    }

    @Test("A connection that falls silent is replaced by one that brings the rest")
    func stall() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/1M/f.bin?stall-after=100000")
            let outcome = try await command.run("-q", "-s", "1", "--stall-timeout", "500ms", url)
            #expect(outcome.status == 0 && command.holds("f.bin", 1 << 20), "\(outcome)")
            #expect(origin.log.snapshot().requests.count >= 2)
        }
    }

    @Test(
        "A server that takes connections and says nothing is given up, by every subcommand that asks one",
        arguments: [["-o", "f.bin", "--retry", "0"], ["probe"], ["bench"]])
    func connect(arguments: [String]) async throws {
        let silence = try SilentListener()
        defer { silence.close() }
        try await withCommand { command in
            let outcome = try await command.run(
                arguments + ["--connect-timeout", "200ms", "https://127.0.0.1:\(silence.port)/f.bin"])
            #expect(outcome.status == 5 && outcome.errors.contains("no TLS handshake in time"), "\(outcome)")
        }
    }
}
