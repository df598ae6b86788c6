import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Validators in a form that no grammar allows.
@Suite("Malformed validators")
struct UnparsableValidatorTests {
    /// A validator before and after a change, as keys of the origin's URLs.
    struct Change: Sendable, CustomTestStringConvertible {
        let name: String
        let before: String
        let after: String
        /// What a file with an unchanged validator is verified by.
        var proof = "none"

        var testDescription: String { self.name }

        /// The URL's keys for both versions.
        var keys: String { "\(self.before)&\(self.after)" }
    }

    private static func tags(_ name: String, _ before: String, _ after: String, proof: String = "none") -> Change {
        Change(
            name: name, before: "last-modified=none&etag-raw=\(before)", after: "etag-raw=\(after)", proof: proof)
    }

    private static func dates(_ name: String, _ before: String, _ after: String) -> Change {
        Change(name: name, before: "etag=none&modified-raw=\(before)", after: "modified-raw=\(after)")
    }

    static let changes = [
        Self.tags("no quotes", "v1", "v2"),
        Self.tags("lower-case w", "w/%221%22", "w/%222%22"),
        Self.tags("single quotes", "'1'", "'2'"),
        Self.tags("a space", "%22a%201%22", "%22a%202%22"),
        Self.tags("two fields", "%221%22%0d%0aETag:%20%220%22", "%222%22%0d%0aETag:%20%220%22"),
        Self.tags(
            "two fields of which the second changes", "%220%22%0d%0aETag:%20%221%22", "%220%22%0d%0aETag:%20%222%22"),
        Self.tags("an empty field, then a value", "", "v1"),
        // These are well formed.
        Self.tags("obs-text", "%22caf%e9%22", "%22caf%e8%22", proof: "etag"),
        Self.tags("Latin-1, then UTF-8", "%22caf%e9%22", "%22caf%c3%a9%22", proof: "etag"),
        Self.dates("ISO 8601", "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"),
        Self.dates(
            "an offset for GMT", "Mon,%2001%20Jan%202024%2000:00:00%20%2b0000",
            "Tue,%2002%20Jan%202024%2000:00:00%20%2b0000"),
        Self.dates(
            "two dates", "Mon,%2001%20Jan%202024%2000:00:00%20GMT%0d%0aLast-Modified:%201",
            "Mon,%2001%20Jan%202024%2000:00:00%20GMT%0d%0aLast-Modified:%202"),
    ]

    @Test("A difference during a run is a change: exit 10, and no file with the final name", arguments: Self.changes)
    func whileRunning(change: Change) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let url = origin.url("/16M/f.bin?rate=8M&change-after=2:9&\(change.keys)")
                let outcome = try await command.run("-s", "4", "-o", "f.bin", url)
                #expect(outcome.status == 10 && outcome.errors.contains("error[changed]"), "\(outcome)")
                #expect(!command.exists("f.bin"))
            }
        }
    }

    @Test("A difference after a pause is a change: exit 10, and the part is unchanged", arguments: Self.changes)
    func whilePaused(change: Change) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let url = origin.url("/16M/f.bin?stall-after=1M:4&\(change.keys)")
                let arguments = ["-s", "4", "-o", "f.bin", url]
                try await command.interrupt(arguments)
                let part = command.bytes("f.bin.segdl-part")
                origin.replace("/16M/f.bin", seed: 9)
                for again in [arguments, ["resume", "f.bin"]] {
                    let outcome = try await command.run(again)
                    #expect(outcome.status == 10 && outcome.errors.contains("error[changed]"), "\(outcome)")
                    #expect(!command.exists("f.bin") && command.bytes("f.bin.segdl-part") == part)
                }
            }
        }
    }

    @Test(
        "A difference while writing to standard output is a change: exit 10, and the output is of the first file",
        arguments: Self.changes)
    func handedOn(change: Change) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let url = origin.url("/16M/f.bin?rate=8M&change-after=2:9&\(change.keys)")
                let outcome = try await command.run(["-s", "4", "-o", "-", url], shell: #""$0" "$@" > out"#)
                #expect(outcome.status == 10, "\(outcome)")
                let out = try #require(command.bytes("out"))
                // One Boolean, because an expectation on two long byte arrays would compute all their differences.
                let isFirst =
                    OriginContent(seed: 1).firstMismatch(inFileAt: command.path("out"), length: Int64(out.count)) == nil
                #expect(isFirst)
            }
        }
    }

    @Test("Equal malformed validators allow the download, and prove nothing", arguments: Self.changes)
    func unchanged(change: Change) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    "--json", "-s", "4", "-o", "f.bin", origin.url("/16M/f.bin?\(change.before)"))
                #expect(outcome.status == 0, "\(outcome)")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: 16 << 20) == nil)
                #expect(outcome.verifiedBy == change.proof, "\(outcome)")
            }
        }
    }

    @Test(
        "Equal malformed validators across a pause do not lead to a mixture if the file has changed",
        arguments: Self.changes.filter { $0.proof == "none" })
    func silentChange(change: Change) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = ["-s", "4", "-o", "f.bin", origin.url("/16M/f.bin?stall-after=1M:4&\(change.before)")]
                try await command.interrupt(arguments)
                origin.replace("/16M/f.bin", seed: 9)
                let outcome = try await command.run(arguments)
                let isNew =
                    OriginContent(seed: 9).firstMismatch(inFileAt: command.path("f.bin"), length: 16 << 20) == nil
                #expect(outcome.status == 10 && !command.exists("f.bin") || outcome.status == 0 && isNew, "\(outcome)")
            }
        }
    }
}
