import Foundation
import Origin
import Testing

/// Two URLs of one command that suggest the same name and send the same tag.
@Suite("Two URLs that suggest the same name", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct SuggestedNameTests {
    private static func run(_ body: (Nginx, Segdl) async throws -> Void) async throws {
        let settings = Nginx.Settings(
            locations: """
                location /suggest/ {
                    add_header Content-Disposition 'attachment; filename="same.bin"';
                    rewrite ^/suggest/(.*)$ /$1 break;
                }
                """)
        try await TwoFiles.run(settings, body)
    }

    @Test("The second file is exit 12, and the first is left unchanged", arguments: ["1", "2"])
    func refused(filesAtOnce: String) async throws {
        try await Self.run { nginx, command in
            let outcome = try await command.run(
                "--json", "-j", filesAtOnce, nginx.url("suggest/part1.bin"), nginx.url("suggest/part2.bin"))
            #expect(outcome.status == 16, "\(outcome)")
            let failed = outcome.events.filter { $0["event"] as? String == "failed" }
            #expect(failed.count == 1 && failed.first?["code"] as? String == "exists", "\(outcome)")
            #expect(failed.first?["exit"] as? Int == 12, "\(outcome)")
            #expect(outcome.event("all_completed")?["completed"] as? Int == 1, "\(outcome)")
            // With several at once either may be the first.
            #expect(
                command.holds("same.bin", TwoFiles.one)
                    || filesAtOnce == "2" && command.holds("same.bin", TwoFiles.other))
        }
    }

    @Test("With --if-exists rename both files are there", arguments: ["1", "2"])
    func renamed(filesAtOnce: String) async throws {
        try await Self.run { nginx, command in
            let outcome = try await command.run(
                "-j", filesAtOnce, "--if-exists", "rename", nginx.url("suggest/part1.bin"),
                nginx.url("suggest/part2.bin"))
            #expect(outcome.status == 0, "\(outcome)")
            let contents = try command.contents()
            #expect(Set(contents.values) == [Data(TwoFiles.one), Data(TwoFiles.other)], "\(contents.keys)")
        }
    }
}
