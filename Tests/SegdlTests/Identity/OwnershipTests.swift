import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Files beside the destination that another user created or can write to.
@Suite("A part, manifest or finished file that others own or can write to")
struct OwnershipTests {
    private static let stranger: uid_t = 12_345

    /// The owner or permissions that make a file untrusted.
    enum Hands: String, CaseIterable, Sendable {
        case stranger, group, everybody

        func take(_ path: String) throws {
            let isTaken =
                switch self {
                case .stranger: chmod(path, 0o600) == 0 && chown(path, OwnershipTests.stranger, 0) == 0
                case .group: chmod(path, 0o660) == 0
                case .everybody: chmod(path, 0o666) == 0
                }
            try #require(isTaken)
        }

        /// What the message contains.
        var words: String {
            switch self {
            case .stranger: "\(OwnershipTests.stranger)"
            case .group: "660"
            case .everybody: "666"
            }
        }

        /// Only root can change a file's owner.
        static var possible: [Hands] { geteuid() == 0 ? Self.allCases : [.group, .everybody] }
    }

    /// Checks that the command ends with 12 and the reason, before any request or write.
    private static func expectRefused(
        _ origin: Origin, _ command: Segdl, _ words: String, _ ways: [[String]]
    ) async throws {
        let before = try command.contents()
        for way in ways {
            origin.log.reset()
            let outcome = try await command.run(way)
            #expect(outcome.status == 12 && outcome.errors.contains("error[exists]"), "\(way): \(outcome)")
            #expect(outcome.errors.contains(words), "\(way): \(outcome)")
            #expect(origin.log.snapshot().requests.isEmpty, "\(way)")
            let after = try command.contents()
            #expect(after == before, "\(way): \(after.keys) instead of \(before.keys)")
        }
    }

    @Test(
        "A planted part and manifest in a world-writable directory are refused", arguments: Hands.possible,
        [["f.bin.segdl", "f.bin.segdl-part"], ["f.bin.segdl"], ["f.bin.segdl-part"]])
    func planted(hands: Hands, names: [String]) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                try #require(chmod(command.directory, 0o1777) == 0)
                let arguments = ["-s", "2", "-o", "f.bin", origin.url("/8M/f.bin?stall-after=1M:2")]
                try await command.interrupt(arguments, after: 1_500_000)
                for name in names { try hands.take(command.path(name)) }
                try await Self.expectRefused(
                    origin, command, hands.words,
                    [
                        arguments, ["resume", "f.bin"], ["--if-exists", "overwrite"] + arguments,
                        ["-c", "no"] + arguments,
                    ])
            }
        }
    }

    @Test(
        "An empty part that others can write to is refused, because they could write to it later",
        arguments: Hands.possible)
    func emptyPart(hands: Hands) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                try Data().write(to: URL(fileURLWithPath: command.path("f.bin.segdl-part")))
                try hands.take(command.path("f.bin.segdl-part"))
                let arguments = ["-o", "f.bin", origin.url("/8M/f.bin")]
                try await Self.expectRefused(
                    origin, command, hands.words, [arguments, ["--if-exists", "overwrite"] + arguments])
            }
        }
    }

    @Test(
        "A finished file with segdl's attribute is refused if others own it or can write to it",
        arguments: Hands.possible)
    func finished(hands: Hands) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = ["-o", "f.bin", origin.url("/1M/f.bin")]
                #expect(try await command.run(arguments).status == 0)
                try hands.take(command.path("f.bin"))
                try await Self.expectRefused(origin, command, hands.words, [arguments])
            }
        }
    }

    @Test("A part that is a hard link to a file of the user is never written through")
    func link() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                try Data("precious".utf8).write(to: URL(fileURLWithPath: command.path("precious")))
                try #require(Glibc.link(command.path("precious"), command.path("f.bin.segdl-part")) == 0)
                _ = try await command.run("-o", "f.bin", origin.url("/1M/f.bin"))
                #expect(command.bytes("precious") == Data("precious".utf8))
            }
        }
    }

    @Test(
        "The user's own files are resumed under any umask",
        arguments: ["000", "002", "022", "077"])
    func umask(mask: String) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let shell = #"umask \#(mask); exec "$0" "$@""#
                let url = origin.url("/8M/f.bin?stall-after=1M:2")
                let arguments = ["-s", "2", "-o", "f.bin", url]
                let first = try await command.run(
                    arguments, signal: SIGINT, afterWriting: 1_500_000, preparation: "umask \(mask);")
                #expect(first.status == 130, "\(first)")
                let second = try await command.run(arguments, shell: shell)
                #expect(second.status == 0, "\(second)")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: 8 << 20) == nil)
                let small = try await command.run(["-o", "small.bin", origin.url("/1k/small.bin")], shell: shell)
                #expect(small.status == 0, "\(small)")
                let withheld = try #require(Int(mask, radix: 8))
                for name in ["f.bin", "small.bin"] {
                    let permissions = try FileManager.default.attributesOfItem(atPath: command.path(name))[
                        .posixPermissions]
                    #expect(permissions as? Int == 0o666 & ~withheld, "\(name)")
                }
                // Whom the umask lets write to each file does not make this one suspicious.
                let again = try await command.run(arguments, shell: shell)
                #expect(again.status == 0, "\(again)")
            }
        }
    }
}
