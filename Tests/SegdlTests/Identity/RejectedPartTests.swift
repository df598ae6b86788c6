import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// A part whose digest did not match.
@Suite("A part whose digest did not match", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct RejectedPartTests {
    private static let wrong = "sha256=" + String(repeating: "0", count: 64)

    /// `a` was rejected; `body` requests it again.
    private static func run(_ body: (Nginx, Segdl) async throws -> Void) async throws {
        try await TwoFiles.run { nginx, command in
            let refused = try await command.run("--checksum", Self.wrong, "-o", "a", nginx.url("part1.bin"))
            #expect(refused.status == 9 && !command.exists("a"), "\(refused)")
            try await body(nginx, command)
        }
    }

    @Test("It is not used for another URL's file, which is fetched completely")
    func otherURL() async throws {
        try await Self.run { nginx, command in
            let outcome = try await command.run("--json", "-o", "a", nginx.url("part2.bin"))
            #expect(outcome.status == 0 && command.holds("a", TwoFiles.other), "\(outcome)")
            #expect(outcome.bytesFetched.map { $0 >= TwoFiles.length } == true, "\(outcome)")
        }
    }

    @Test("It is rejected again when resumed from another URL, because the manifest keeps the digest")
    func resumed() async throws {
        try await Self.run { nginx, command in
            let outcome = try await command.run("resume", "--url", nginx.url("part2.bin"), "a")
            #expect([9, 10].contains(outcome.status) && !command.exists("a"), "\(outcome)")
        }
    }

    @Test("It is never accepted without a digest at its own URL: the result is exit 9 again, or a new download")
    func ownURL() async throws {
        try await Self.run { nginx, command in
            let outcome = try await command.run("--json", "-o", "a", nginx.url("part1.bin"))
            if outcome.status == 0 {
                #expect(command.holds("a", TwoFiles.one), "\(outcome)")
                #expect(outcome.bytesFetched.map { $0 >= TwoFiles.length } == true, "\(outcome)")
            } else {
                #expect(outcome.status == 9 && !command.exists("a"), "\(outcome)")
            }
        }
    }

    @Test("A part of verify --repair is not used for another URL's file")
    func repaired() async throws {
        try await TwoFiles.run { nginx, command in
            let first = try await command.run("-q", "-o", "a", nginx.url("part1.bin"))
            #expect(first.status == 0, "\(first)")
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: command.path("a")))
            try file.seek(toOffset: 5_000_000)
            try file.write(contentsOf: Data("damaged".utf8))
            try file.close()
            let damaged = command.bytes("a")
            let repaired = try await command.run("verify", "--repair", "a", nginx.url("part2.bin"))
            #expect(repaired.status != 0, "\(repaired)")
            #expect(!command.exists("a") || command.bytes("a") == damaged, "\(repaired)")
            // The manifest still names the file under repair: another file is refused until the user discards the
            // repair.
            let outcome = try await command.run("--json", "-o", "a", nginx.url("part2.bin"))
            #expect([9, 10].contains(outcome.status) && !command.exists("a"), "\(outcome)")
            let anew = try await command.run("--json", "-c", "no", "-o", "a", nginx.url("part2.bin"))
            #expect(anew.status == 0 && command.holds("a", TwoFiles.other), "\(anew)")
        }
    }
}
