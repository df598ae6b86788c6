import Foundation
import Origin
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Mirrors that a server's Link fields name (RFC 6249, FAULTS J15).
@Suite struct LinkedMirrorTests {
    private static let length = 8.mebibytes

    private static func sha256(seed: UInt64) -> ExpectedDigest? {
        var digest = RunningDigest(.sha256)
        OriginContent(seed: seed).bytes(0..<Self.length).withUnsafeBytes { digest.update($0) }
        return ExpectedDigest(.sha256, hex: digest.hex)
    }

    private static func encoded(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }

    /// A resource whose head names mirrors, and its digest.
    private static func resource(_ behaviour: String, mirrors: [String], saysDigest: Bool = true) throws -> String {
        var items = [behaviour]
        for (index, mirror) in mirrors.enumerated() {
            items.append("field=Link:\(Self.encoded("<\(mirror)>; rel=duplicate; pri=\(index + 1)"))")
        }
        if saysDigest {
            let hex = Array(try #require(Self.sha256(seed: 1)).hex)
            let bytes = stride(from: 0, to: 64, by: 2).compactMap { UInt8(String(hex[$0...($0 + 1)]), radix: 16) }
            items.append("field=Digest:\(Self.encoded("SHA-256=\(Data(bytes).base64EncodedString())"))")
        }
        return "/8M/file.bin?\(items.joined(separator: "&"))"
    }

    /// A request completed with the mirrors that the server names.
    private static func request(
        _ harness: Harness, _ resource: String, _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws -> DownloadRequest {
        var request = try harness.request(resource, change)
        let remote = try await withDownloadClient { [request] client in try await client.probe(request) }
        request.addMirrors(named: remote)
        return request
    }

    private static func fetch(
        _ request: DownloadRequest, _ change: @escaping @Sendable (inout DownloadConfiguration) -> Void = { _ in }
    ) async throws -> DownloadResult {
        var configuration = DownloadConfiguration()
        change(&configuration)
        return try await withDownloadClient(configuration) { client in
            try await client.withGroup { group in try await group.add(request).result() }
        }
    }

    @Test("A mirror that the server names is used, and gets no credentials")
    func helps() async throws {
        try await Harness.run { harness in
            try await withOrigin { other in
                let mirror = other.url("/8M/mirror.bin", host: "localhost")
                let resource = try Self.resource("rate=1M", mirrors: ["/none", mirror])
                let request = try await Self.request(harness, resource) { request in
                    request.credentials = .basic(user: "name", password: "secret")
                    request.fields = [.init("X-Key")!: "secret"]
                }
                let netrc = try Netrc(text: "machine localhost login name password secret\n", name: "netrc")
                let result = try await Self.fetch(request) { $0.netrc = netrc }
                #expect(result.verifiedBy == .digest && harness.contains(seed: 1, length: Self.length))
                let asked = other.log.snapshot().requests
                #expect(!asked.isEmpty)
                #expect(asked.allSatisfy { $0["authorization"] == nil && $0["x-key"] == nil })
                #expect(harness.origin.log.snapshot().requests.contains { $0["authorization"] != nil })
            }
        }
    }

    @Test("A mirror that the server names replaces a failed server, and a resumed download keeps the digest")
    func failsOver() async throws {
        try await Harness.run { harness in
            let mirror = harness.origin.url("/8M/mirror.bin")
            let resource = try Self.resource("close-after=2M:2&fail=404:all:2", mirrors: [mirror])
            let request = try await Self.request(harness, resource) { $0.segments = .exactly(1) }
            #expect(request.digests == [Self.sha256(seed: 1)])
            let result = try await Self.fetch(request)
            #expect(result.verifiedBy == .digest && harness.contains(seed: 1, length: Self.length))
        }
    }

    @Test("A resumed download has the same first source, even if a mirror has replaced it")
    func resumes() async throws {
        try await Harness.run { harness in
            try await withOrigin { other in
                // The mirror's bodies stall until the download is paused, but not those that are compared with the server,
                // which are short. The resumed download gets all it asks for.
                _ = other.plainURL("/8M/mirror.bin?stall-after=1M:all")
                let mirror = other.url("/8M/mirror.bin", host: "localhost")
                let resource = try Self.resource("close-after=2M:2&fail=404:all:2", mirrors: [mirror])
                let request = try await Self.request(harness, resource) { $0.segments = .exactly(1) }
                try await withDownloadClient { client in
                    try await client.withGroup { group in
                        let download = try group.add(request)
                        for await event in download.events {
                            if case .progress(let progress) = event, progress.bytesDone > 2.mebibytes {
                                await download.pause()
                            }
                        }
                        #expect(download.state == .paused)
                    }
                }
                _ = other.plainURL("/8M/mirror.bin")
                let saved = try await SavedDownload(at: FilePath(harness.path))
                #expect(saved.source == request.source.string && saved.mirrors == [mirror])
                #expect(saved.foreignSources == [mirror] && saved.options.digests == [Self.sha256(seed: 1)])
                var configuration = DownloadConfiguration()
                configuration.netrc = try Netrc(text: "default login name password secret\n", name: "netrc")
                let result = try await withDownloadClient(configuration) { client in
                    try await client.withGroup { group in
                        let restored = try await group.restore(from: FilePath(harness.directory), .running).downloads
                        return try await #require(restored.first).result()
                    }
                }
                #expect(result.verifiedBy == .digest && harness.contains(seed: 1, length: Self.length))
                #expect(other.log.snapshot().requests.allSatisfy { $0["authorization"] == nil })
            }
        }
    }

    @Test("A mirror with other bytes is detected")
    func lies() async throws {
        try await Harness.run { harness in
            let mirror = harness.origin.url("/8M/mirror.bin?seed=2")
            let request = try await Self.request(harness, try Self.resource("rate=4M", mirrors: [mirror]))
            let result = try await Self.fetch(request)
            #expect(result.verifiedBy == .digest && harness.contains(seed: 1, length: Self.length))
        }
    }

    @Test("Without a digest no mirror is used, and of many only the first eight")
    func unused() async throws {
        try await Harness.run { harness in
            let mirrors = (0..<20).map { "http://m\($0).test/f" }
            let none = try await Self.request(harness, try Self.resource("seed=1", mirrors: mirrors, saysDigest: false))
            #expect(none.mirrors.isEmpty && none.digests.isEmpty)
            let secret = "http://name:word@m.test/f"
            let some = try await Self.request(harness, try Self.resource("seed=1", mirrors: [secret] + mirrors))
            #expect(some.mirrors.map(\.string) == Array(mirrors.prefix(8)))
            let own = try #require(Self.sha256(seed: 1))
            let known = try await Self.request(
                harness, try Self.resource("seed=1", mirrors: mirrors, saysDigest: false)
            ) { $0.digests = [own] }
            #expect(known.mirrors.count == 8 && known.digests == [own])
        }
    }
}
