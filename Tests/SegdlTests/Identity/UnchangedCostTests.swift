import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// The cost of requesting the same URL again.
@Suite("The same URL again")
struct UnchangedCostTests {
    @Test("A resume requests the missing bytes and nothing else", arguments: ["get", "resume"])
    func oneSegment(way: String) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = ["-s", "1", "-o", "f.bin", origin.url("/16M/f.bin?stall-after=4M:1")]
                let kept = try await command.interrupt(arguments)
                origin.log.reset()
                let outcome = try await command.run(
                    way == "get" ? ["--json"] + arguments : ["resume", "--json", "-s", "1", "f.bin"])
                #expect(outcome.status == 0, "\(outcome)")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: 16 << 20) == nil)
                let requests = origin.log.snapshot().requests
                #expect(requests.map(\.range) == ["bytes=\(kept)-"] && requests.first?.ifRange != nil, "\(requests)")
                #expect(outcome.bytesFetched == 16 << 20 - kept && outcome.verifiedBy == "etag", "\(outcome)")
            }
        }
    }

    @Test("A resume in segments fetches the missing bytes, and at most the bytes in flight where a segment is cut")
    func fourSegments() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = ["-s", "4", "-o", "f.bin", origin.url("/16M/f.bin?stall-after=1M:4")]
                let kept = try await command.interrupt(arguments)
                let outcome = try await command.run(["--json"] + arguments)
                #expect(outcome.status == 0, "\(outcome)")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: 16 << 20) == nil)
                let fetched = try #require(outcome.bytesFetched)
                // 4 MiB were there. Bytes in flight to a connection that another one replaces are received twice.
                #expect(fetched < 16 << 20 && outcome.resumedFrom == kept, "\(kept) were there: \(outcome)")
                #expect(outcome.verifiedBy == "etag", "\(outcome)")
            }
        }
    }

    @Test("A finished file costs one conditional request without a body")
    func finished() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = ["-s", "4", "-o", "f.bin", origin.url("/16M/f.bin")]
                #expect(try await command.run(arguments).status == 0)
                origin.log.reset()
                let outcome = try await command.run(arguments)
                #expect(outcome.status == 0, "\(outcome)")
                let requests = origin.log.snapshot().requests
                #expect(requests.map(\.status) == [304] && requests.map(\.bytesSent) == [0], "\(requests)")
                #expect(requests.first?["if-none-match"] == "\"16777216-1\"")
            }
        }
    }
}
