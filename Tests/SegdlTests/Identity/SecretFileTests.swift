import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Files with credentials that others own or can write to.
@Suite("A netrc or configuration file that others could have written")
struct SecretFileTests {
    enum Kind: String, CaseIterable, Sendable { case netrc, configuration }

    private static let secrets: [Kind: String] = [
        .netrc: "machine localhost login name password word\n", .configuration: "header = Authorization: word\n",
    ]

    /// Runs the command with such a file, after `prepare` has changed it.
    private static func run(
        _ kind: Kind, _ text: String? = nil, _ prepare: (String) throws -> Void,
        _ check: (Origin, Segdl, Segdl.Outcome) throws -> Void
    ) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let path = command.path(kind == .netrc ? "netrc" : "segdl/config")
                try FileManager.default.createDirectory(
                    atPath: command.path("segdl"), withIntermediateDirectories: true)
                try Data((text ?? Self.secrets[kind] ?? "").utf8).write(to: URL(fileURLWithPath: path))
                try prepare(path)
                let outcome = try await command.run(
                    ["-o", "f.bin"] + (kind == .netrc ? ["--netrc-file", path] : [])
                        + [origin.url("/1k/f.bin", host: "localhost")],
                    environment: kind == .netrc ? [:] : ["XDG_CONFIG_HOME": command.directory])
                try check(origin, command, outcome)
            }
        }
    }

    /// Checks that the command ended before any request, with these words.
    private static func expectRefused(_ origin: Origin, _ command: Segdl, _ outcome: Segdl.Outcome, _ words: [String]) {
        #expect(outcome.status == 12 && outcome.errors.contains("error[exists]"), "\(outcome)")
        for word in words { #expect(outcome.errors.contains(word), "\(outcome)") }
        #expect(origin.log.snapshot().requests.isEmpty && !command.exists("f.bin"))
        #expect(!outcome.errors.contains("word "), "a secret is not shown: \(outcome)")
    }

    @Test(
        "A file writable by its group or others is refused before any request, with the mode and the remedy",
        arguments: Kind.allCases,
        [(0o620, "its group"), (0o602, "others"), (0o666, "its group and others")] as [(mode_t, String)])
    func writable(kind: Kind, access: (mode: mode_t, writers: String)) async throws {
        try await Self.run(kind) { path in
            try #require(chmod(path, access.mode) == 0)
        } _: { origin, command, outcome in
            Self.expectRefused(
                origin, command, outcome,
                [
                    "by \(access.writers) (mode \(String(access.mode, radix: 8)))", "chmod go-w /",
                    kind == .netrc ? "netrc" : "config",
                ])
        }
    }

    @Test(
        "A file of another user is refused, and the message names the owner",
        .enabled(if: geteuid() == 0, "it needs root"),
        arguments: Kind.allCases)
    func foreign(kind: Kind) async throws {
        try await Self.run(kind) { path in
            try #require(chmod(path, 0o600) == 0 && chown(path, 12_345, 12_345) == 0)
        } _: { origin, command, outcome in
            Self.expectRefused(origin, command, outcome, ["belongs to uid 12345", "chmod go-w /"])
        }
    }

    @Test("A file that only its owner can write to is used", arguments: Kind.allCases)
    func own(kind: Kind) async throws {
        try await Self.run(kind) { path in
            try #require(chmod(path, 0o600) == 0)
        } _: { origin, command, outcome in
            #expect(outcome.status == 0 && command.exists("f.bin"), "\(outcome)")
            let sent = origin.log.snapshot().requests.flatMap(\.headers).filter {
                $0.name.lowercased() == "authorization"
            }
            #expect(!sent.isEmpty)
        }
    }

    @Test("A configuration file without secrets is used with any permissions")
    func withoutSecrets() async throws {
        try await Self.run(.configuration, "user-agent = me/1\nuser = name\n") { path in
            try #require(chmod(path, 0o666) == 0)
        } _: { origin, command, outcome in
            // The name alone is not a secret; the password would be read from a terminal, and there is none.
            #expect(outcome.status != 12, "\(outcome)")
        }
        try await Self.run(.configuration, "user-agent = me/1\n") { path in
            try #require(chmod(path, 0o666) == 0)
        } _: { origin, command, outcome in
            #expect(outcome.status == 0 && command.exists("f.bin"), "\(outcome)")
        }
    }
}
