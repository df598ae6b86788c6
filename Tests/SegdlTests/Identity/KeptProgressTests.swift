import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Bytes on disk that can be verified, although no validator identifies their version.
@Suite("Progress without a validator, or with a manifest of a later version")
struct KeptProgressTests {
    private static let length: Int64 = 32 << 20
    private static let path = "/32M/f.bin"
    private static let query = "?etag=none&last-modified=none&stall-after=7M:4"

    /// Interrupts `f.bin` and damages the first bytes of its part.
    ///
    /// - Returns: The number of missing bytes.
    private static func damaged(_ origin: Origin, _ command: Segdl, _ arguments: [String]) async throws -> Int64 {
        let kept = try await command.interrupt(arguments, after: 27 << 20)
        let part = try FileHandle(forUpdating: URL(fileURLWithPath: command.path("f.bin.segdl-part")))
        try part.write(contentsOf: Data(repeating: 0xA5, count: 1 << 20))
        try part.close()
        return Self.length - Int64(kept) + 1 << 20
    }

    @Test("A gap at the beginning costs the gap and a comparison", arguments: ["get", "resume"])
    func gap(way: String) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = ["-s", "4", "-o", "f.bin", origin.url(Self.path + Self.query)]
                let missing = try await Self.damaged(origin, command, arguments)
                let outcome = try await command.run(
                    way == "get" ? ["--json"] + arguments : ["resume", "--json", "f.bin"])
                #expect(outcome.status == 0, "\(outcome)")
                #expect(
                    OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: Self.length) == nil)
                let fetched = try #require(outcome.bytesFetched)
                #expect(Int64(fetched) <= missing + 3 << 20, "\(missing) were missing, \(fetched) were fetched")
                #expect(outcome.verifiedBy == "comparison", "\(outcome)")
            }
        }
    }

    @Test("A gap at the beginning of a file that has changed never leads to a mixture")
    func otherBytes() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = ["-s", "4", "-o", "f.bin", origin.url(Self.path + Self.query)]
                _ = try await Self.damaged(origin, command, arguments)
                origin.replace(Self.path, seed: 2, etag: "none")
                let outcome = try await command.run(arguments)
                let isOther =
                    OriginContent(seed: 2).firstMismatch(inFileAt: command.path("f.bin"), length: Self.length) == nil
                #expect(
                    outcome.status == 0 && isOther || outcome.status == 10 && !command.exists("f.bin"), "\(outcome)")
            }
        }
    }

    @Test(
        "A manifest of a later version is exit 14, and it and its part stay unchanged",
        arguments: ["get", "overwrite", "restart", "resume", "status"])
    func laterVersion(way: String) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = ["-s", "4", "-o", "f.bin", origin.url("/8M/f.bin?stall-after=1M:4")]
                try await command.interrupt(arguments)
                let manifest = try FileHandle(forUpdating: URL(fileURLWithPath: command.path("f.bin.segdl")))
                try manifest.seek(toOffset: 8)
                try manifest.write(contentsOf: Data([99, 0]))
                try manifest.close()
                let before = try command.contents()
                let again =
                    switch way {
                    case "get": arguments
                    case "overwrite": ["--if-exists", "overwrite"] + arguments
                    case "restart": ["--on-change", "restart"] + arguments
                    default: [way, "f.bin"]
                    }
                let outcome = try await command.run(again)
                #expect(
                    way == "status" || outcome.status == 14 && outcome.errors.contains("error[state]"), "\(outcome)")
                #expect(way == "status" || outcome.errors.contains("version"), "\(outcome)")
                let after = try command.contents()
                #expect(after == before, "\(after.keys) instead of \(before.keys)")
            }
        }
    }
}
