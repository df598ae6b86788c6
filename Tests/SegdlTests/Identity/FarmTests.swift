import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Several servers behind one name, which take turns with connections, each with tags and dates of its own.
@Suite("A farm of nodes with different tags")
struct FarmTests {
    private static let length: Int64 = 64 << 20

    private static func holds(_ command: Segdl, seed: UInt64) -> Bool {
        OriginContent(seed: seed).firstMismatch(inFileAt: command.path("f.bin"), length: Self.length) == nil
    }

    /// Keys of the origin's URLs, and the number of segments.
    private static let ways = ["", "&etag=none", "&etag=weak"].flatMap { keys in ["8", "auto"].map { (keys, $0) } }

    @Test("The file completes if the nodes have the same bytes", arguments: ["1:1", "1:1:1"], Self.ways)
    func sameBytes(nodes: String, way: (validators: String, segments: String)) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    "-s", way.segments, "-o", "f.bin", origin.url("/64M/f.bin?nodes=\(nodes)\(way.validators)"))
                #expect(outcome.status == 0 && Self.holds(command, seed: 1), "\(outcome)")
            }
        }
    }

    @Test(
        "If the nodes have different bytes, the result is one node's file or exit 10, never a mixture",
        arguments: ["1:2", "1:2:3", "1:1:2"],
        ["", "&etag=none"])
    func otherBytes(nodes: String, validators: String) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    "-s", "8", "-o", "f.bin", origin.url("/64M/f.bin?nodes=\(nodes)\(validators)"))
                if outcome.status == 0 {
                    #expect([1, 2, 3].contains { Self.holds(command, seed: $0) }, "\(outcome)")
                } else {
                    #expect(outcome.status == 10 && !command.exists("f.bin"), "\(outcome)")
                }
            }
        }
    }

    @Test("If all nodes change, the change is found with few requests", arguments: ["1:1", "1:1:1"])
    func changed(nodes: String) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                // Each body ends after 1 MiB, so that there are requests after the change.
                let url = origin.url("/64M/f.bin?nodes=\(nodes)&change-after=20:9&close-after=1M:all")
                let outcome = try await command.run("-s", "8", "-o", "f.bin", url)
                #expect(outcome.status == 10 && !command.exists("f.bin"), "\(outcome)")
                #expect(origin.log.snapshot().requests.count <= 400)
            }
        }
    }

    @Test("The file completes although connections keep breaking")
    func breaks() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let url = origin.url("/64M/f.bin?nodes=1:1&close-after=3M:all")
                let outcome = try await command.run("-s", "8", "-o", "f.bin", url)
                #expect(outcome.status == 0 && Self.holds(command, seed: 1), "\(outcome)")
            }
        }
    }

    @Test("A paused download resumes from any node", arguments: ["1:1", "1:1:1"], [0, 1, 2])
    func resumed(nodes: String, first: Int) async throws {
        let count = nodes.split(separator: ":").count
        guard first < count else { return }
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = ["-s", "4", "-o", "f.bin", origin.url("/64M/f.bin?nodes=\(nodes)")]
                let kept = try await command.interrupt(["--limit-rate", "8M"] + arguments, after: 16 << 20)
                // Uses up the connections of other nodes until it is this node's turn.
                while origin.log.snapshot().connectionsCount % count != first {
                    let other = try await command.run(
                        "-q", "-s", "1", "--if-exists", "overwrite", "-o", "other", origin.url("/1k/x"))
                    #expect(other.status == 0, "\(other)")
                }
                let outcome = try await command.run(["--json"] + arguments)
                #expect(outcome.status == 0 && Self.holds(command, seed: 1), "\(outcome)")
                let fetched = try #require(outcome.bytesFetched)
                #expect(Int64(fetched) <= Self.length - Int64(kept) + 4 << 20, "\(kept) were there: \(outcome)")
            }
        }
    }
}
