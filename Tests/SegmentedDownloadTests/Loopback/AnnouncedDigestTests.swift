import Crypto
import Foundation
import HTTPTypes
import Origin
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// What a server says of the digests of its bytes (FAULTS B15, RFC 9530).
@Suite struct AnnouncedDigestTests {
    /// `sha-256=:…:` of the first bytes of the file that the origin makes up.
    private static func digest(length: Int) -> String {
        let hash = SHA256.hash(data: OriginContent(seed: 1).bytes(0..<Int64(length)))
        return "sha-256=:\(Data(hash).base64EncodedString()):"
    }

    private static func resource(_ name: String, _ value: String) -> String {
        let allowed = CharacterSet.alphanumerics
        return "/1M/file.bin?field=\(name):\(value.addingPercentEncoding(withAllowedCharacters: allowed) ?? "")"
    }

    @Test(
        "The file's digest that the server names is checked, with whatever else it says",
        arguments: ["", "md5=:AAAA:, ", "sha-512=\"no bytes\";q=1, "])
    func agrees(before: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch(Self.resource("Repr-Digest", before + Self.digest(length: 1 << 20)))
            #expect(result.value?.verifiedBy == .digest, "\(result)")
            #expect(result.value?.digests.map(\.algorithm) == [.sha256])
        }
    }

    @Test(
        "What is malformed or of an algorithm nobody knows says nothing",
        arguments: ["sha-256=:AAAA:", "sha-256=:", "sha-256=:A=A=:", "unixsum=:AAAA:", "sha-256", "\u{7F}", ",,"])
    func isIgnored(value: String) async throws {
        for name in ["Repr-Digest", "Content-Digest"] {
            var fields = HTTPFields()
            fields[try #require(HTTPField.Name(name))] = value
            let announced = AnnouncedDigests(fields)
            #expect(announced.representation == nil && announced.content == nil)
        }
    }

    @Test("Of bytes that are not what their own response says nothing is kept, and the next run gets the file")
    func contentDiffers() async throws {
        try await Harness.run { harness in
            // One response with all of it: the origin says the same whatever it sends.
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
        "A response is compared once all of it came, whether or not its end was waited for, and never when it was cut")
    func contentCheck() throws {
        let bytes = OriginContent(seed: 1).bytes(0..<1000)
        let announced = try #require(ExpectedDigest(.sha256, hex: Data(SHA256.hash(data: bytes.dropLast())).hex))
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
