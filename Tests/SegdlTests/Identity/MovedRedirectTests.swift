import Foundation
import Origin
import Testing

/// A URL that redirects to one file, and after a pause to another with the same tag.
@Suite("A redirect that moves during a pause", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct MovedRedirectTests {
    /// The target of `/latest` depends on whether the file `switch` exists.
    private static let settings = Nginx.Settings(
        locations: """
            location = /latest {
                if (-f $document_root/switch) { return 302 /part2.bin; }
                return 302 /part1.bin;
            }
            """)

    @Test(
        "The result is the new target's file, and the part is resumed if the bytes are the same",
        arguments: TwoFiles.Bytes.allCases, ["get", "resume"])
    func moved(bytes: TwoFiles.Bytes, way: String) async throws {
        try await TwoFiles.run(Self.settings, second: bytes) { nginx, command in
            let kept = try await nginx.interrupt(command, ["-s", "4", "-o", "a", nginx.url("latest")])
            try nginx.serve([], as: "switch")
            let outcome = try await command.run(
                way == "get" ? ["--json", "-s", "4", "-o", "a", nginx.url("latest")] : ["resume", "--json", "a"])
            #expect(outcome.status == 0 && command.holds("a", bytes.content), "\(outcome)")
            guard bytes == .same else { return }
            #expect(outcome.resumedFrom == kept, "\(kept) were there: \(outcome)")
        }
    }

    @Test("After a finished download the new target's file is fetched")
    func finished() async throws {
        try await TwoFiles.run(Self.settings) { nginx, command in
            let first = try await command.run("-o", "a", nginx.url("latest"))
            #expect(first.status == 0 && command.holds("a", TwoFiles.one), "\(first)")
            try nginx.serve([], as: "switch")
            let second = try await command.run("-o", "a", nginx.url("latest"))
            #expect(second.status == 0 && command.holds("a", TwoFiles.other), "\(second)")
        }
    }

    @Test("With an unmoved redirect the part is resumed by its tag, without a comparison")
    func unmoved() async throws {
        try await TwoFiles.run(Self.settings) { nginx, command in
            let kept = try await nginx.interrupt(command, ["-s", "4", "-o", "a", nginx.url("latest")])
            let outcome = try await command.run("--json", "-s", "4", "-o", "a", nginx.url("latest"))
            #expect(outcome.status == 0 && command.holds("a", TwoFiles.one), "\(outcome)")
            #expect(outcome.resumedFrom == kept, "\(kept) were there: \(outcome)")
            #expect(outcome.verifiedBy == "etag", "\(outcome)")
        }
    }
}
