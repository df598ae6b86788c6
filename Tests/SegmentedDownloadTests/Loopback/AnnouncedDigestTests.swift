import Foundation
import Origin
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Digests that a server sends, and how they are verified (FAULTS B15). `AnnouncedDigestHeadTests` covers the parsing.
@Suite struct AnnouncedDigestTests {
    /// `sha-256=:…:` of the first bytes of the origin's file.
    private static func digest(length: Int) -> String {
        "sha-256=:\(Self.hash(.sha256, OriginContent(seed: 1).bytes(0..<Int64(length))).base64EncodedString()):"
    }

    fileprivate static func hash(_ algorithm: ExpectedDigest.Algorithm, _ bytes: some Sequence<UInt8>) -> Data {
        var digest = RunningDigest(algorithm)
        Array(bytes).withUnsafeBytes { digest.update($0) }
        let digits = Array(digest.hex)
        return Data(
            stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...($0 + 1)]), radix: 16) })
    }

    private static func encoded(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }

    private static func resource(_ name: String, _ value: String) -> String {
        "/1M/file.bin?field=\(name):\(Self.encoded(value))"
    }

    /// The fields that state the digest of a file.
    enum Way: CaseIterable, Sendable {
        case digest, contentMD5, googleHash, amazonChecksum, linkedTag

        var algorithm: ExpectedDigest.Algorithm {
            switch self {
            case .digest, .amazonChecksum, .linkedTag: .sha256
            case .contentMD5, .googleHash: .md5
            }
        }

        /// 1 MiB of content 1, with the digest of the content of another number.
        func resource(saying seed: UInt64, of origin: Origin) -> String {
            let bytes = OriginContent(seed: seed).bytes(0..<1.mebibytes)
            let sha256 = AnnouncedDigestTests.hash(.sha256, bytes)
            let md5 = AnnouncedDigestTests.hash(.md5, bytes).base64EncodedString()
            var fields: [(String, String)]
            switch self {
            case .digest: fields = [("Digest", "unixsum=30637, SHA-256=\(sha256.base64EncodedString())")]
            case .contentMD5: fields = [("Content-MD5", md5)]
            case .googleHash:
                fields = [("x-goog-hash", "md5=\(md5)")]
                fields.append(("x-goog-stored-content-encoding", "identity"))
            case .amazonChecksum:
                fields = [("x-amz-checksum-sha256", sha256.base64EncodedString())]
                fields.append(("x-amz-checksum-type", "FULL_OBJECT"))
            case .linkedTag: fields = [("X-Linked-Etag", "\"\(sha256.hex)\""), ("X-Linked-Size", "\(1 << 20)")]
            }
            var items = fields.map { "field=\($0):\(AnnouncedDigestTests.encoded($1))" }
            // The first request to the target fails; the next one is not redirected.
            let target = AnnouncedDigestTests.encoded(origin.url("/1M/target.bin?fail=503:1"))
            if self == .linkedTag { items.append("redirect=302:\(target)") }
            return "/1M/file.bin?\(items.joined(separator: "&"))"
        }
    }

    @Test("The file is verified against its digest in every field that states one", arguments: Way.allCases)
    func isHeld(way: Way) async throws {
        try await Harness.run { harness in
            let wrong = await harness.fetch(way.resource(saying: 2, of: harness.origin))
            #expect(wrong.code == .integrity, "\(wrong)")
            #expect(!harness.exists(harness.path) && harness.exists(harness.part))
            harness.origin.reset()
            let right = await harness.fetch(way.resource(saying: 1, of: harness.origin)) { $0.continuation = .no }
            #expect(right.value?.verifiedBy == .digest, "\(right)")
            #expect(right.value?.digests.map(\.algorithm) == [way.algorithm])
            #expect(harness.contains(seed: 1, length: 1.mebibytes))
        }
    }

    @Test("In a 206 Digest applies to the file, and Content-MD5 is ignored", arguments: [Way.contentMD5, .digest])
    func ofWhat(way: Way) async throws {
        try await Harness.run { harness in
            try await harness.interrupt("/1M/file.bin?stall-after=100000:all", after: 300_000)
            let result = await harness.fetch(way.resource(saying: 2, of: harness.origin))
            // `Digest` applies to the file even in a partial response, `Content-MD5` may apply to the part.
            #expect(result.code == (way == .digest ? .integrity : nil), "\(result)")
            #expect(way == .digest || result.value?.verifiedBy == .etag)
        }
    }

    @Test(
        "A digest that only the response with all bytes has holds after a pause",
        arguments: [Way.contentMD5, .amazonChecksum], [UInt64(1), 2])
    func afterPause(way: Way, seed: UInt64) async throws {
        try await Harness.run { harness in
            let resource = way.resource(saying: seed, of: harness.origin) + "&stall-after=400000:1"
            try await harness.interrupt(resource, after: 300_000) { $0.segments = .exactly(1) }
            let result = await harness.fetch(resource) { $0.segments = .exactly(1) }
            #expect(result.code == (seed == 1 ? nil : .integrity), "\(result)")
            #expect(result.value?.digests.map(\.algorithm) == (seed == 1 ? [way.algorithm] : nil))
            #expect(harness.exists(harness.path) == (seed == 1))
        }
    }

    @Test(
        "A server's digest counts only if it is stronger than the user's", arguments: [true, false])
    func users(isBetter: Bool) async throws {
        try await Harness.run { harness in
            let bytes = OriginContent(seed: 1).bytes(0..<1.mebibytes)
            let sha256 = try #require(ExpectedDigest(.sha256, hex: AnnouncedDigestTests.hash(.sha256, bytes).hex))
            let md5 = try #require(ExpectedDigest(.md5, hex: AnnouncedDigestTests.hash(.md5, bytes).hex))
            let way = isBetter ? Way.googleHash : .digest
            let result = await harness.fetch(way.resource(saying: 2, of: harness.origin)) {
                $0.digests = [isBetter ? sha256 : md5]
            }
            #expect(result.code == (isBetter ? nil : .integrity), "\(result)")
            #expect(result.value?.digests == (isBetter ? [sha256] : nil))
        }
    }

    @Test(
        "The file is verified against the Repr-Digest of the server, also beside other digests",
        arguments: ["", "md5=:AAAA:, ", "sha-512=\"no bytes\";q=1, "])
    func agrees(before: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch(Self.resource("Repr-Digest", before + Self.digest(length: 1 << 20)))
            #expect(result.value?.verifiedBy == .digest, "\(result)")
            #expect(result.value?.digests.map(\.algorithm) == [.sha256])
        }
    }

    @Test("Of bytes that are not what their own response says nothing is kept, and the next run gets the file")
    func contentDiffers() async throws {
        try await Harness.run { harness in
            // One response with the complete file: the origin sends the same digest for any range.
            let whole = { (request: inout DownloadRequest) in request.segments = .exactly(1) }
            let wrong = await harness.fetch(Self.resource("Content-Digest", Self.digest(length: 1 << 10)), whole)
            #expect(wrong.code == .integrity, "\(wrong)")
            #expect(!harness.exists(harness.path))
            let right = await harness.fetch(Self.resource("Content-Digest", Self.digest(length: 1 << 20)), whole)
            #expect(right.value?.bytesFetched == 1.mebibytes, "\(right)")
            #expect(harness.contains(seed: 1, length: 1.mebibytes))
        }
    }

    @Test(
        "A Content-Digest that is always wrong does not stop a file with the right digest of the user, and saves no wrong one",
        arguments: [1, 8], [true, false])
    func contentDiffersFromChecksum(segments: Int, isRight: Bool) async throws {
        try await Harness.run { harness in
            let bytes = OriginContent(seed: isRight ? 1 : 2).bytes(0..<1 << 20)
            let digest = try #require(ExpectedDigest(.sha256, hex: Self.hash(.sha256, bytes).hex))
            let result = await harness.fetch(Self.resource("Content-Digest", Self.digest(length: 1 << 10))) {
                $0.segments = .exactly(segments)
                $0.digests = [digest]
            }
            #expect(isRight ? result.value?.verifiedBy == .digest : result.code == .integrity, "\(result)")
            #expect(harness.exists(harness.path) == isRight)
        }
    }

    @Test(
        "A response is compared after its last byte, whether or not its end was awaited, and never when it was cut")
    func contentCheck() throws {
        let bytes = OriginContent(seed: 1).bytes(0..<1000)
        let announced = try #require(ExpectedDigest(.sha256, hex: Self.hash(.sha256, bytes.dropLast()).hex))
        let resource = RemoteResource(completeLength: 4000)
        var known = ContentCheck(announced, of: .partial(ByteRange(2000..<3000), resource))
        var unknown = ContentCheck(announced, of: .whole(RemoteResource(completeLength: nil)))
        for part in [bytes[..<600], bytes[600...]] {
            #expect(known.failure == nil && unknown.failure == nil)
            part.withUnsafeBytes {
                known.update($0)
                unknown.update($0)
            }
        }
        #expect(known.failure?.code == .integrity)
        #expect(unknown.failure == nil)
        unknown.hasEnded = true
        #expect(unknown.failure?.code == .integrity)
    }
}
