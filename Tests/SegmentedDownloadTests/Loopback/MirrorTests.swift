import Foundation
import Origin
import SegmentedDownload
import Testing

/// Several sources of one file (FAULTS B12, B13; FEATURES: fallback URLs, in parallel once their bytes are verified as
/// equal).
@Suite struct MirrorTests {
    /// Fetches a resource with mirrors; returns the sources of its segments too.
    private func fetch(
        _ harness: Harness, _ resource: String, mirrors: [String],
        _ change: @escaping (inout DownloadRequest) -> Void = { _ in }
    ) async throws -> (end: DownloadEvent, sources: Set<String>) {
        let request = try harness.request(resource) { request in
            request.mirrors = mirrors.compactMap { try? SourceURL(harness.origin.url($0)) }
            change(&request)
        }
        return try await withDownloadClient { client in
            try await client.withGroup { group in
                let download = try group.add(request)
                var sources: Set<String> = []
                for await event in download.events {
                    if case .segment(let change) = event, let source = change.source { sources.insert(source) }
                    if event.isTerminal { return (event, sources) }
                }
                return (.cancelled, sources)
            }
        }
    }

    @Test("The sources are tried in order, and a download whose first one is gone comes from the second")
    func failover() async throws {
        try await Harness.run { harness in
            let (end, sources) = try await self.fetch(
                harness, "/4M/gone.bin?fail=404:all", mirrors: ["/4M/bad.bin?fail=410:all", "/4M/file.bin"])
            guard case .completed = end else { throw DownloadError(.internal, "\(end)") }
            #expect(sources == [harness.origin.url("/4M/file.bin")])
            #expect(harness.contains(seed: 1, length: 4.mebibytes))
        }
    }

    @Test(
        "A mirror whose bytes do not match its own digest is no longer used, even if they are the right ones",
        arguments: [1, 2])
    func corrupt(seed: Int) async throws {
        try await Harness.run { harness in
            let wrong = "sha-256=:\(Data(count: 32).base64EncodedString()):".replacingOccurrences(of: "=", with: "%3D")
            let (end, sources) = try await self.fetch(
                harness, "/8M/file.bin?seed=1&rate=2M",
                mirrors: ["/8M/file.bin?seed=\(seed)&field=Content-Digest:\(wrong)"])
            guard case .completed = end else { throw DownloadError(.internal, "\(end)") }
            #expect(!sources.isEmpty && harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test("A download whose every source fails has failed once, and reports their number")
    func allFail() async throws {
        try await Harness.run { harness in
            let (end, _) = try await self.fetch(
                harness, "/4M/gone.bin?fail=404:all", mirrors: ["/4M/bad.bin?fail=410:all"])
            guard case .failed(let error, _) = end else { throw DownloadError(.internal, "\(end)") }
            #expect(error.code == .server)
            #expect(error.message.contains("1 other source"), "\(error)")
            #expect(!harness.exists(harness.path))
        }
    }

    @Test("A source that fails midway is replaced, and its bytes are kept", arguments: ["", "&etag=none"])
    func diesMidway(tag: String) async throws {
        try await Harness.run { harness in
            let (end, _) = try await self.fetch(
                harness, "/8M/file.bin?close-after=700000:all&fail=404:all:6\(tag)",
                mirrors: ["/8M/mirror.bin?rate=4M&latency=20ms\(tag)"])
            guard case .completed(let result) = end else { throw DownloadError(.internal, "\(end)") }
            #expect(result.bytesFetched < 8.mebibytes + 1.mebibytes)
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
            #expect(harness.origin.log.snapshot(path: "/8M/file.bin").requests.contains { $0.bytesSent > 0 })
        }
    }

    @Test(
        "Sources that have the same bytes are used in parallel, even if their entity tags differ",
        arguments: ["", "&etag=none", "&etag=other"])
    func inParallel(tag: String) async throws {
        try await Harness.run { harness in
            let (end, sources) = try await self.fetch(
                harness, "/12M/file.bin?rate=2M", mirrors: ["/12M/mirror.bin?rate=2M\(tag)"])
            guard case .completed = end else { throw DownloadError(.internal, "\(end)") }
            // On a busy machine the mirror may be admitted too late to deliver; `SourceTests` checks that it delivers.
            #expect(!sources.isEmpty)
            #expect(!harness.origin.log.snapshot(path: "/12M/mirror.bin").requests.isEmpty)
            #expect(harness.contains(seed: 1, length: 12.mebibytes))
        }
    }

    @Test(
        "Of sources with different files of one length none is mixed with another", arguments: [1, 2, 4, 8])
    func differing(segments: Int) async throws {
        try await Harness.run { harness in
            let (end, _) = try await self.fetch(
                harness, "/12M/file.bin?rate=3M&etag=a", mirrors: ["/12M/mirror.bin?seed=2&etag=b"]
            ) { $0.segments = .exactly(segments) }
            guard case .completed = end else { throw DownloadError(.internal, "\(end)") }
            #expect(harness.contains(seed: 1, length: 12.mebibytes))
        }
    }

    @Test("A source with a wrong tag is detected by the digest, and the file is right")
    func lyingTag() async throws {
        try await Harness.run { harness in
            let plain = await harness.fetch("/12M/file.bin")
            let digest = try #require(plain.value?.crc32.flatMap { ExpectedDigest("crc32=\($0)") })
            try harness.remove(harness.path)
            let (end, sources) = try await self.fetch(
                harness, "/12M/file.bin?rate=2M&etag=same",
                mirrors: ["/12M/mirror.bin?seed=2&rate=2M&etag=same", "/12M/third.bin?rate=2M&etag=same"]
            ) { $0.digests = [digest] }
            guard case .completed(let result) = end else { throw DownloadError(.internal, "\(end)") }
            #expect(result.verifiedBy == .digest)
            #expect(sources.count >= 1)
            #expect(harness.contains(seed: 1, length: 12.mebibytes))
        }
    }

    @Test("A download resumes from a mirror if the first source is gone")
    func resumedElsewhere() async throws {
        try await Harness.run { harness in
            try await harness.interrupt("/8M/file.bin?stall-after=300000:all", after: 1.mebibytes)
            // Rate-limited: without a limit the origin has already sent the rest of a range that is split, and that
            // counts as fetched.
            let mirror = try SourceURL(harness.origin.url("/8M/mirror.bin?rate=4M&etag=other"))
            let request = try harness.request("/8M/file.bin?rate=200000&fail=410:all") { $0.mirrors = [mirror] }
            let result = try await withDownloadClient { client in try await client.download(request) }
            #expect(result.bytesFetched < 8.mebibytes)
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test("The user's header fields go only to the first origin")
    func fields() async throws {
        try await withOrigin { other in
            try await Harness.run { harness in
                let mirror = try SourceURL(other.url("/4M/file.bin"))
                let request = try harness.request("/4M/file.bin?fail=404:all") { request in
                    request.mirrors = [mirror]
                    request.fields = [.authorization: "Bearer secret"]
                }
                _ = try await withDownloadClient { client in try await client.download(request) }
                let seen = other.log.snapshot(path: "/4M/file.bin").requests
                #expect(!seen.isEmpty)
                #expect(seen.allSatisfy { entry in !entry.headers.contains { $0.value.contains("secret") } })
            }
        }
    }
}
