import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Bytes that a digest has refused, and are still there.
@Suite("A part that a digest refused", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct RejectedPartTests {
    private static let wrong = "sha256=" + String(repeating: "0", count: 64)

    /// `a` was refused; `body` asks for it again.
    private static func run(_ body: (Nginx, Segdl) async throws -> Void) async throws {
        try await TwoFiles.run { nginx, command in
            let refused = try await command.run("--checksum", Self.wrong, "-o", "a", nginx.url("part1.bin"))
            #expect(refused.status == 9 && !command.exists("a"), "\(refused)")
            try await body(nginx, command)
        }
    }

    @Test("is never taken for another URL's file, which is fetched whole")
    func otherURL() async throws {
        try await Self.run { nginx, command in
            let outcome = try await command.run("--json", "-o", "a", nginx.url("part2.bin"))
            #expect(outcome.status == 0 && command.holds("a", TwoFiles.other), "\(outcome)")
            #expect(outcome.bytesFetched.map { $0 >= TwoFiles.length } == true, "\(outcome)")
        }
    }

    @Test("is refused again where it is resumed from another URL, for the manifest keeps the digest")
    func resumed() async throws {
        try await Self.run { nginx, command in
            let outcome = try await command.run("resume", "--url", nginx.url("part2.bin"), "a")
            #expect([9, 10].contains(outcome.status) && !command.exists("a"), "\(outcome)")
        }
    }

    @Test("is never accepted without a digest at its own URL: it is 9 again, or fetched anew")
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

    @Test("of verify --repair is never taken for another URL's file")
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
            // The manifest still says which file is repaired: the other one is refused until that is given up.
            let outcome = try await command.run("--json", "-o", "a", nginx.url("part2.bin"))
            #expect([9, 10].contains(outcome.status) && !command.exists("a"), "\(outcome)")
            let anew = try await command.run("--json", "-c", "no", "-o", "a", nginx.url("part2.bin"))
            #expect(anew.status == 0 && command.holds("a", TwoFiles.other), "\(anew)")
        }
    }
}
