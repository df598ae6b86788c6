import Foundation
import Origin
import Testing

/// Information about files without fetching them, and figures of a run.
@Suite("Plans and figures")
struct PlanTests {
    private static func object(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test("A probe reports what a server has and where it redirects, and writes nothing")
    func probe() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let disposition = "attachment;%20filename=%22named.iso%22"
                let target = origin.url("/3M/other.bin?etag=%22v7%22%26disposition=\(disposition)")
                let outcome = try await command.run(
                    "probe", "--json", origin.url("/3M/file.bin?redirect=302:\(target)"))
                #expect(outcome.status == 0, "\(outcome)")
                let facts = try Self.object(outcome.output)
                #expect(facts["bytes_total"] as? Int == 3 << 20 && facts["ranges"] as? Bool == true)
                #expect((facts["redirects"] as? [String])?.count == 1 && facts["status"] as? Int == 206)
                #expect(try FileManager.default.contentsOfDirectory(atPath: command.directory) == [])
                #expect(origin.log.snapshot().requests.map(\.status) == [302, 206])
            }
        }
    }

    @Test("A probe reports the digest that the server or the redirect to it states")
    func probeDigest() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let digits = String(repeating: "0a", count: 32)
                let linked = "field=X-Linked-Etag:%22\(digits)%22&field=X-Linked-Size:1048576"
                let url = origin.url("/1M/file.bin?redirect=302:\(origin.url("/1M/other.bin"))&\(linked)")
                let outcome = try await command.run("probe", "--json", url)
                #expect(try Self.object(outcome.output)["digest"] as? String == "sha256=\(digits)", "\(outcome)")
                // This digest may be the part's, and a probe requests one byte.
                let part = "/1M/x?field=Content-MD5:Q2hlY2sgSW50ZWdyaXR5IQ=="
                let silent = try await command.run("probe", "--json", origin.url(part))
                #expect(silent.status == 0 && !silent.output.contains("digest"), "\(silent)")
            }
        }
    }

    @Test("A probe distinguishes a server without ranges, an empty file and a missing one")
    func kinds() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let stream = try await command.run("probe", "--json", origin.url("/1M/x?ranges=no"))
                #expect(try Self.object(stream.output)["ranges"] as? Bool == false, "\(stream)")
                let empty = try await command.run("probe", "--json", origin.url("/0/x"))
                #expect(try Self.object(empty.output)["bytes_total"] as? Int == 0, "\(empty)")
                let gone = try await command.run("probe", origin.url("/1M/x?fail=404:all"))
                #expect(gone.status == 8 && gone.errors.contains("404"), "\(gone)")
                let both = try await command.run("probe", origin.url("/1M/x"), origin.url("/1M/x?fail=401:all"))
                #expect(both.status == 16 && both.output.contains("1048576"), "\(both)")
            }
        }
    }

    @Test("A dry run reports what would be fetched, also for existing files, and writes nothing")
    func dryRun() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let stuck = origin.url("/2M/a.bin?stall-after=300000:all")
                let interrupted = try await command.interrupted([
                    "--stall-timeout", "1h", "-s", "2", "-o", "a.bin", stuck,
                ])
                #expect(interrupted.status == 130, "\(interrupted)")
                let before = try FileManager.default.contentsOfDirectory(atPath: command.directory).sorted()
                let outcome = try await command.run(
                    "--json", "--dry-run", "-d", "new", origin.url("/1M/x.bin"), origin.url("/1M/y.bin?fail=404:all"))
                #expect(outcome.status == 16 && !command.exists("new"), "\(outcome)")
                let plan = try Self.object(outcome.output)
                #expect(plan["path"] as? String == "new/x.bin" && plan["bytes_total"] as? Int == 1 << 20)
                let rest = try await command.run("--dry-run", "-o", "a.bin", origin.url("/2M/a.bin"))
                #expect(rest.status == 0 && rest.output.contains("are kept from before"), "\(rest)")
                #expect(try FileManager.default.contentsOfDirectory(atPath: command.directory).sorted() == before)
            }
        }
    }

    @Test("The figures of a run are written, whether it succeeds or not")
    func stats() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    "-q", "--stats", "s.json", origin.url("/2M/x.bin"), origin.url("/1M/y.bin?fail=404:all"))
                #expect(outcome.status == 16)
                let text = String(
                    decoding: try #require(FileManager.default.contents(atPath: command.path("s.json"))), as: UTF8.self)
                let figures = try Self.object(text)
                #expect(figures["bytes"] as? Int == 2 << 20 && figures["exit"] as? Int == 16)
                #expect(figures["completed"] as? Int == 1 && figures["failed"] as? Int == 1)
                #expect(try #require(figures["cpu_seconds"] as? Double) > 0)
                let unwritten = try await command.run("--stats", "/none/s", origin.url("/1k/z.bin"))
                #expect(unwritten.status == 0 && unwritten.errors.contains("figures were not written"), "\(unwritten)")
            }
        }
    }

    @Test("With --remote-time the file has the server's date, and is still recognized")
    func remoteTime() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let url = origin.url("/2M/x.bin?last-modified=1600000000")
                for _ in 0..<2 {
                    let outcome = try await command.run("-q", "-R", "-o", "x.bin", url)
                    #expect(outcome.status == 0, "\(outcome)")
                    let date =
                        try FileManager.default.attributesOfItem(atPath: command.path("x.bin"))[.modificationDate]
                        as? Date
                    #expect(date == Date(timeIntervalSince1970: 1_600_000_000))
                }
                #expect(try await command.run("verify", "x.bin").status != 9)
            }
        }
    }
}
