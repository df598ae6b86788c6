import Foundation
import Origin
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Mirrors that a server names (RFC 6249).
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

    /// A resource whose head names other places, and its digest.
    private static func resource(
        _ behaviour: String, mirrors: [String], saysDigest: Bool = true
    ) throws -> String {
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

    private static func withTwoOrigins(_ body: @escaping @Sendable (Harness, Origin) async throws -> Void) async throws
    {
        try await Harness.run { harness in
            try await withOrigin { other in try await body(harness, other) }
        }
    }

    @Test("A mirror that the server names helps, and is not told what is said to the server")
    func helps() async throws {
        try await Self.withTwoOrigins { harness, other in
            let resource = try Self.resource("rate=1M", mirrors: ["/none", other.url("/8M/mirror.bin")])
            let result = await harness.fetch(resource) { request in
                request.credentials = .basic(user: "name", password: "secret")
                request.fields = [("X-Key", "secret")]
            }
            #expect(result.value?.verifiedBy == .digest, "\(result)")
            #expect(harness.contains(seed: 1, length: Self.length))
            let asked = other.log.snapshot().requests
            #expect(!asked.isEmpty)
            #expect(asked.allSatisfy { $0["authorization"] == nil && $0["x-key"] == nil })
        }
    }

    @Test("A mirror that the server names goes on where the server is gone")
    func failsOver() async throws {
        try await Harness.run { harness in
            let mirror = harness.origin.url("/8M/mirror.bin")
            let resource = try Self.resource("close-after=2M&fail=404:all:1", mirrors: [mirror])
            let result = await harness.fetch(resource) { $0.segments = .exactly(1) }
            #expect(result.value?.verifiedBy == .digest, "\(result)")
            #expect(harness.contains(seed: 1, length: Self.length))
        }
    }

    @Test("One that has other bytes is found out")
    func lies() async throws {
        try await Harness.run { harness in
            let mirror = harness.origin.url("/8M/mirror.bin?seed=2")
            let result = await harness.fetch(try Self.resource("rate=4M", mirrors: [mirror]))
            #expect(result.value?.verifiedBy == .digest, "\(result)")
            #expect(harness.contains(seed: 1, length: Self.length))
        }
    }

    /// Why a mirror is left alone.
    enum Reason: CaseIterable, Sendable {
        case noDigest, unwanted, ownMirror
    }

    @Test(
        "Without a digest, against the user's will, or where he names some himself none is used",
        arguments: Reason.allCases)
    func unused(reason: Reason) async throws {
        try await Self.withTwoOrigins { harness, other in
            let mirror = other.url("/8M/mirror.bin")
            let resource = try Self.resource("rate=16M", mirrors: [mirror], saysDigest: reason != .noDigest)
            let own = try SourceURL(harness.origin.url("/8M/own.bin"))
            let result = await harness.fetch(resource) { request in
                request.usesLinkedMirrors = reason != .unwanted
                if reason == .ownMirror { request.mirrors = [own] }
            }
            #expect(result.value != nil && harness.contains(seed: 1, length: Self.length), "\(result)")
            #expect(other.log.snapshot().requests.isEmpty)
        }
    }

    @Test("A download that a named mirror went on with is gone on with when it was interrupted")
    func resumes() async throws {
        try await Harness.run { harness in
            let mirror = harness.origin.url("/8M/mirror.bin?stall-after=1M:all")
            let resource = try Self.resource("close-after=2M&fail=404:all:1", mirrors: [mirror])
            try await harness.interrupt(resource, after: 2_500_000)
            harness.origin.reset()
            let result = await harness.fetch(try Self.resource("seed=1", mirrors: []))
            #expect(result.value?.verifiedBy == .digest, "\(result)")
            #expect(harness.contains(seed: 1, length: Self.length))
        }
    }
}
