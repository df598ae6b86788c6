import Foundation
import Origin
import Testing

/// Options for retries and timeouts, with the real command. The tests count requests or read messages, and use no
/// clock.
@Suite("Options: retries and timeouts")
struct PatienceOptionTests {
    @Test("A download survives the given number of failures in a row, and no more", arguments: ["--retry", "--tries"])
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
        "The delay before a retry is the given one",
        arguments: ["--retry-delay", "--retry-wait", "--waitretry"])
    func delay(option: String) async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run("--json", option, "25ms", origin.url("/64k/f.bin?fail=500:2"))
            let retries = outcome.events.filter { $0["event"] as? String == "retry" }
            #expect(outcome.status == 0 && retries.map { $0["delay"] as? Double } == [0.025, 0.025], "\(outcome)")
        }
    }

    @Test("After --retry-max-time there is no retry, for any number of retries")
    func retryTime() async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                "-q", "-s", "1", "--retry", "9", "--retry-delay", "50ms", "--retry-max-time", "10ms",
                origin.url("/64k/f.bin?fail=500:all"))
            #expect(outcome.status == 8, "\(outcome)")
            // After the second attempt it is too late for a third one.
            #expect(origin.log.snapshot().requests.count <= 2)
        }
    }

    @Test("A file that takes longer than --max-time is kept as a partial download", arguments: ["-m", "--max-time"])
    func maxTime(option: String) async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/1M/f.bin?stall-after=100000:all")
            let outcome = try await command.run("-s", "1", option, "500ms", "-o", "f.bin", url)
            #expect(outcome.status == 4 && outcome.errors.contains("the time limit of 0.5 s was reached"), "\(outcome)")
            #expect(!command.exists("f.bin"))
        }
    }

    @Test(
        "A file that arrives more slowly than --speed-limit for --speed-time is kept as a partial download",
        arguments: [["-Y", "-y"], ["--speed-limit", "--speed-time"], ["--lowest-speed-limit", "--speed-time"]])
    func tooSlow(options: [String]) async throws {
        try await withOptionScene { origin, command in
            // Bytes are there from before: on a busy machine none may arrive within half a second.
            let url = origin.url("/4M/f.bin?stall-after=300000:all")
            let interrupted = try await command.interrupted(["-s", "1", "-o", "f.bin", url])
            #expect(interrupted.status == 130, "\(interrupted)")
            let outcome = try await command.run("-s", "1", options[0], "1M", options[1], "500ms", "-o", "f.bin", url)
            #expect(outcome.status == 4 && outcome.errors.contains("arrived for 0.5 s"), "\(outcome)")
            #expect(!command.exists("f.bin") && command.exists("f.bin.segdl"))
        }
    }

    @Test("A stalled connection is replaced by one that fetches the rest")
    func stall() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/1M/f.bin?stall-after=100000")
            let outcome = try await command.run("-q", "-s", "1", "--stall-timeout", "500ms", url)
            #expect(outcome.status == 0 && command.holds("f.bin", 1 << 20), "\(outcome)")
            #expect(origin.log.snapshot().requests.count >= 2)
        }
    }

    @Test("A server that sends no head within --head-timeout is asked again")
    func head() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/64k/f.bin?no-answer=all")
            let outcome = try await command.run("-s", "1", "--retry", "0", "--head-timeout", "500ms", url)
            #expect(outcome.status == 4, "\(outcome)")
            #expect(outcome.errors.contains("no complete response head within 0.5 s"), "\(outcome)")
            let repeated = try await command.run(
                "-q", "-s", "1", "--retry", "1", "--retry-delay", "1ms", "--head-timeout", "500ms", url)
            #expect(repeated.status == 4 && origin.log.snapshot().requests.count == 3, "\(repeated)")
        }
    }

    @Test(
        "Every subcommand gives up a server that accepts connections and sends nothing",
        arguments: [["-o", "f.bin", "--retry", "0"], ["probe"], ["bench"]])
    func connect(arguments: [String]) async throws {
        let silence = try SilentListener()
        defer { silence.close() }
        try await withCommand { command in
            let outcome = try await command.run(
                arguments + ["--connect-timeout", "200ms", "https://127.0.0.1:\(silence.port)/f.bin"])
            #expect(
                outcome.status == 5 && outcome.errors.contains("no TLS handshake within the connect timeout"),
                "\(outcome)")
        }
    }
}
