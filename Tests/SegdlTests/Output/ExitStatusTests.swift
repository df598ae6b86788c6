import Foundation
import Origin
import Testing

/// Every exit status of the contract that a test can cause without root.
@Suite struct ExitStatusTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var status: Int32
        var word: String
        var resource: String
        var arguments: [String] = []
        var testDescription: String { "\(self.status) \(self.word): \(self.resource) \(self.arguments)" }
    }

    static let zeros = String(repeating: "0", count: 64)

    @Test(
        "A failure has its exit status, its code, and one line of error message",
        arguments: [
            Case(status: 4, word: "network", resource: "/1M/f.bin?drop=100", arguments: ["--retry", "1"]),
            Case(
                status: 4, word: "network", resource: "/9M/f.bin?rate=1M",
                arguments: ["-s", "1", "--max-time", "700ms"]),
            Case(status: 6, word: "auth", resource: "/1M/f.bin?auth=a:b"),
            Case(status: 7, word: "protocol", resource: "/1M/f.bin?garbage", arguments: ["--retry", "1"]),
            Case(status: 8, word: "server", resource: "/1M/f.bin?fail=404:all"),
            Case(status: 8, word: "server", resource: "/1M/f.bin?fail=500:all", arguments: ["--retry", "1"]),
            Case(status: 9, word: "integrity", resource: "/1M/f.bin", arguments: ["--checksum", "sha256=\(zeros)"]),
            Case(status: 11, word: "policy", resource: "/1M/f.bin?redirect=302:file:///etc/passwd"),
            Case(status: 13, word: "space", resource: "/4000T/f.bin?rate=1000"),
            Case(status: 13, word: "space", resource: "/2M/f.bin", arguments: ["--max-filesize", "1M"]),
            Case(status: 14, word: "state", resource: "/1M/f.bin", arguments: ["--continue", "must"]),
        ])
    func failures(expected: Case) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    ["-o", "f.bin"] + expected.arguments + [origin.url(expected.resource)])
                #expect(outcome.status == expected.status, "\(outcome)")
                let lines = outcome.errors.split(separator: "\n").filter { $0.hasPrefix("segdl: error") }
                #expect(lines.count == 1, "\(outcome)")
                #expect(lines.first?.hasPrefix("segdl: error[\(expected.word)]: ") == true, "\(outcome)")
                #expect(!command.exists("f.bin"))
            }
        }
    }

    @Test(
        "A malformed argument is a usage error, before any request",
        arguments: [
            ["http://a b/"], ["ftp://127.0.0.1/x"], ["--segments", "0", "http://127.0.0.1:1/x"],
            ["--nonsense", "http://127.0.0.1:1/x"], ["-k", "http://127.0.0.1:1/x"], ["-O", "127.0.0.1/x"],
            ["-o", "a", "http://127.0.0.1:1/x", "http://127.0.0.1:1/y"],
            ["--checksum", "sha256=12", "http://127.0.0.1:1/x"],
            ["-H", "X: a\r\nY: b", "http://127.0.0.1:1/x"], [],
        ])
    func usage(arguments: [String]) async throws {
        try await withCommand { command in
            let outcome = try await command.run(arguments)
            let expected: Int32 = arguments.first?.hasPrefix("ftp") == true ? 11 : 2
            #expect(outcome.status == expected, "\(outcome)")
            #expect(outcome.errors.contains("segdl: error["), "\(outcome)")
        }
    }

    @Test("An existing file is success if it is the requested one, and exit 12 otherwise")
    func existing() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                var statuses: [Int32] = []
                for resource in ["/1M/f.bin", "/1M/f.bin", "/1M/f.bin?seed=2"] {
                    statuses.append(try await command.run("-o", "f.bin", origin.plainURL(resource)).status)
                }
                #expect(statuses == [0, 0, 12])
            }
        }
    }

    @Test("If some of several files fail the exit status is 16, and every failed one is named")
    func partial() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    origin.url("/1M/good.bin"), origin.url("/1M/bad.bin?fail=404:all"))
                #expect(outcome.status == 16)
                #expect(outcome.errors.contains("bad.bin"))
                #expect(command.exists("good.bin") && !command.exists("bad.bin"))
            }
        }
    }

    @Test("Certificates are checked")
    func tls() async throws {
        try await withOrigin(.init(tls: true)) { origin in
            try await withCommand { command in
                let untrusted = try await command.run("-o", "f.bin", "--retry", "1", origin.url("/1M/f.bin"))
                #expect(untrusted.status == 5, "\(untrusted)")
                #expect(!command.exists("f.bin"))
                try Data(Origin.certificateAuthorityPEM.utf8).write(to: URL(fileURLWithPath: command.path("ca.pem")))
                let trusted = try await command.run("-o", "f.bin", "--cacert", "ca.pem", origin.url("/1M/f.bin"))
                #expect(trusted.status == 0, "\(trusted)")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: 1 << 20) == nil)
            }
        }
    }
}
