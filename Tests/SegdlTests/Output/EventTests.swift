import Foundation
import Origin
import Testing

/// The output for programs and for people.
@Suite struct EventTests {
    @Test("Every line of --json is an event with its version, and the last one has the totals")
    func events() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    "--json", "-s", "4", "-o", "f.bin", origin.url("/8M/f.bin?rate=4M"))
                #expect(outcome.status == 0)
                #expect(outcome.output.split(separator: "\n").count == outcome.events.count)
                #expect(outcome.events.allSatisfy { $0["v"] as? Int == 1 && $0["event"] is String })
                let started = try #require(outcome.event("started"))
                #expect(started["bytes_total"] as? Int == 8 << 20)
                #expect(started["segmented"] as? Bool == true)
                let completed = try #require(outcome.event("completed"))
                #expect(completed["bytes"] as? Int == 8 << 20)
                #expect(completed["connections_peak"] as? Int == 4)
                #expect(completed["verified_by"] as? String == "etag")
                #expect((completed["crc32"] as? String)?.count == 8)
                #expect(outcome.events.last?["event"] as? String == "all_completed")
            }
        }
    }

    @Test("An unknown total is absent, never a placeholder number")
    func unknownTotal() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    "--json", "-o", "f.bin", origin.url("/3M/f.bin?ranges=no&length=chunked&rate=4M"))
                #expect(outcome.status == 0)
                #expect(outcome.event("started")?["bytes_total"] == nil)
                #expect(!outcome.output.contains(":-1"))
                #expect(outcome.event("completed")?["bytes"] as? Int == 3 << 20)
            }
        }
    }

    @Test("A failure is an event with its code, its exit status and whether it can be resumed")
    func failed() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run("--json", "-o", "f.bin", origin.url("/1M/f.bin?fail=404:all"))
                let failed = try #require(outcome.event("failed"))
                #expect(failed["code"] as? String == "server")
                #expect(failed["exit"] as? Int == 8)
                #expect(failed["status"] as? Int == 404)
                #expect(failed["resumable"] as? Bool == false)
            }
        }
    }

    @Test("Neither passwords nor queries are shown, and text of a server cannot control the terminal")
    func nothingLeaks() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let url = origin.url("/1M/f.bin?auth=user:hunter2&stall-after=500000:all")
                    .replacingOccurrences(of: "http://", with: "http://user:hunter2@")
                let outcome = try await command.run(["-v", "--json", "-o", "f.bin", url]) { process in
                    await origin.log.waitForBytes(sent: 500_000)
                    kill(process, SIGINT)
                }
                #expect(!outcome.output.contains("hunter2") && !outcome.errors.contains("hunter2"), "\(outcome)")
                let hostile = origin.url("/1M/g.bin?redirect=302:nonsense%3A%1B%5B31m")
                let escaped = try await command.run("-o", "g.bin", hostile)
                #expect(!escaped.errors.unicodeScalars.contains { $0.value == 0x1B }, "\(escaped)")
            }
        }
    }

    @Test("With -q nothing is printed")
    func quiet() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run("-q", "-o", "f.bin", origin.url("/1M/f.bin"))
                #expect(outcome.status == 0 && outcome.output.isEmpty && outcome.errors.isEmpty)
            }
        }
    }
}
