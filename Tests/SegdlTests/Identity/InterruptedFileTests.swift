import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// A part of one file, and another URL for the same destination that has the same tag and length.
@Suite("A part and another URL with the same tag", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct InterruptedFileTests {
    enum Way: String, CaseIterable, Sendable {
        case plain, overwrite, resume, list

        /// The command that requests a URL to `a`.
        func arguments(_ url: String, _ command: Segdl) throws -> [String] {
            switch self {
            case .plain: return ["-s", "4", "-o", "a", url]
            case .overwrite: return ["-s", "4", "--if-exists", "overwrite", "-o", "a", url]
            case .resume: return ["resume", "-s", "4", "--url", url, "a"]
            case .list:
                try Data("\(url)\n  out=a\n".utf8).write(to: URL(fileURLWithPath: command.path("list")))
                return ["-s", "4", "-i", "list"]
            }
        }
    }

    /// `resume --json`, not `--json resume`: a subcommand comes first.
    private static func reporting(_ arguments: [String]) -> [String] { arguments + ["--json"] }

    @Test("The two files are never mixed: the result is the second one, complete", arguments: Way.allCases)
    func different(way: Way) async throws {
        try await TwoFiles.run { nginx, command in
            try await nginx.interrupt(command, ["-s", "4", "-o", "a", nginx.url("part1.bin")])
            let outcome = try await command.run(Self.reporting(way.arguments(nginx.url("part2.bin"), command)))
            #expect(outcome.status == 0 && command.holds("a", TwoFiles.other), "\(outcome)")
            #expect(!command.exists("a.segdl") && !command.exists("a.segdl-part"))
        }
    }

    @Test("If their bytes are equal the part is resumed", arguments: Way.allCases)
    func same(way: Way) async throws {
        try await TwoFiles.run(second: .same) { nginx, command in
            let kept = try await nginx.interrupt(command, ["-s", "4", "-o", "a", nginx.url("part1.bin")])
            let outcome = try await command.run(Self.reporting(way.arguments(nginx.url("part2.bin"), command)))
            #expect(outcome.status == 0 && command.holds("a", TwoFiles.one), "\(outcome)")
            #expect(outcome.resumedFrom == kept, "\(kept) were there: \(outcome)")
            #expect(outcome.verifiedBy == "comparison", "\(outcome)")
        }
    }

    @Test("The files are not mixed either if the second run is interrupted too, and the third completes")
    func twice() async throws {
        try await TwoFiles.run { nginx, command in
            try await nginx.interrupt(command, ["-s", "4", "-o", "a", nginx.url("part1.bin")])
            try await nginx.interrupt(command, ["-s", "4", "-o", "a", nginx.url("part2.bin")])
            #expect(!command.exists("a"))
            let outcome = try await command.run("-s", "4", "-o", "a", nginx.url("part2.bin"))
            #expect(outcome.status == 0 && command.holds("a", TwoFiles.other), "\(outcome)")
        }
    }

    @Test(
        "On another host, with equal date and length and no tag, files are not mixed",
        arguments: TwoFiles.Bytes.allCases)
    func otherHost(bytes: TwoFiles.Bytes) async throws {
        try await TwoFiles.run(Nginx.Settings(hosts: 2, hasTags: false), second: bytes) { nginx, command in
            let kept = try await nginx.interrupt(command, ["-s", "4", "-o", "a", nginx.url("part1.bin")])
            let outcome = try await command.run("--json", "-s", "4", "-o", "a", nginx.url("part2.bin", host: 2))
            #expect(outcome.status == 0 && command.holds("a", bytes.content), "\(outcome)")
            guard bytes == .same else { return }
            #expect(outcome.resumedFrom == kept, "\(kept) were there: \(outcome)")
            #expect(outcome.verifiedBy == "comparison", "\(outcome)")
        }
    }
}
