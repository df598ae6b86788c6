import Foundation
import Origin
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Digests that a server sends behind the body, in trailer fields (RFC 9110, section 6.5).
@Suite struct TrailerTests {
    private static let content = "0123456789"

    /// A field with the digest of a text.
    private static func field(_ name: String, of text: String, _ algorithm: ExpectedDigest.Algorithm = .sha256)
        -> String
    {
        var digest = RunningDigest(algorithm)
        Array(text.utf8).withUnsafeBytes { digest.update($0) }
        let base64 = Data(digest.bytes).base64EncodedString()
        let key = algorithm == .sha256 ? "sha-256" : "sha-512"
        return name == "Digest" ? "\(name): \(key)=\(base64)" : "\(name): \(key)=:\(base64):"
    }

    /// A resource whose response is the content in chunks, and then trailers.
    private static func resource(_ trailers: [String], status: String = "200 OK", head: [String] = []) -> String {
        let head = ["HTTP/1.1 \(status)", "Transfer-Encoding: chunked"] + head
        let raw =
            head.joined(separator: "\r\n") + "\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n0\r\n"
            + trailers.map { "\($0)\r\n" }.joined() + "\r\n"
        return "/1K/file.bin?raw=\(raw.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")"
    }

    @Test(
        "A digest behind the body counts like one in the head, whether or not the head names its field",
        arguments: ["Repr-Digest", "Content-Digest", "Digest"], [true, false])
    func whole(name: String, isNamed: Bool) async throws {
        try await Harness.run { harness in
            let head = isNamed ? ["Trailer: X-Other, \(name.lowercased())"] : []
            for algorithm in [ExpectedDigest.Algorithm.sha256, .sha512] {
                let wrong = await harness.fetch(
                    Self.resource([Self.field(name, of: "other", algorithm)], head: head))
                #expect(wrong.code == .integrity, "\(algorithm): \(wrong)")
                #expect(!harness.exists(harness.path))
                let right = await harness.fetch(
                    Self.resource([Self.field(name, of: Self.content, algorithm)], head: head)
                ) { $0.continuation = .no }
                #expect(right.code == nil, "\(algorithm): \(right)")
                #expect(try harness.bytes(harness.path) == Array(Self.content.utf8))
                if name != "Content-Digest" {
                    #expect(right.value?.verifiedBy == .digest && right.value?.digests.map(\.algorithm) == [algorithm])
                }
                try harness.remove(harness.path)
            }
        }
    }

    @Test(
        "The digest behind a range that was read to its end counts, whether or not the head names its field",
        arguments: ["Repr-Digest", "Content-Digest"], [true, false])
    func range(name: String, isNamed: Bool) async throws {
        try await Harness.run { harness in
            for isRight in [false, true] {
                let head = ["Content-Range: bytes 0-9/10", "ETag: \"1\""] + (isNamed ? ["Trailer: \(name)"] : [])
                let resource = Self.resource(
                    [Self.field(name, of: isRight ? Self.content : "other")], status: "206 Partial Content", head: head)
                let result = await harness.fetch(resource) { $0.continuation = .no }
                #expect(result.code == (isRight ? nil : .integrity), "\(result)")
                #expect(harness.exists(harness.path) == isRight)
            }
        }
    }

    @Test(
        "A range is complete without the end of its coding, unless trailers were announced", arguments: [true, false])
    func endIsMissing(isNamed: Bool) async throws {
        try await Harness.run { harness in
            let head = ["Content-Range: bytes 0-9/10", "ETag: \"1\""] + (isNamed ? ["Trailer: Repr-Digest"] : [])
            let raw =
                (["HTTP/1.1 206 Partial Content", "Transfer-Encoding: chunked"] + head).joined(separator: "\r\n")
                + "\r\n\r\n5\r\n01234\r\n5\r\n56789\r\n"
            let text = raw.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            let result = await harness.fetch("/1K/file.bin?raw=\(text)") { $0.options.retries = 0 }
            #expect((result.code == nil) == !isNamed, "\(result)")
            #expect(harness.exists(harness.path) == !isNamed)
        }
    }

    @Test("The digest of the resource behind a part of it, which is all that is downloaded, is ignored")
    func part() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch(
                Self.resource(
                    [Self.field("Repr-Digest", of: "other")], status: "206 Partial Content",
                    head: ["Content-Range: bytes 100-109/1000", "ETag: \"1\"", "Trailer: Repr-Digest"])
            ) {
                $0.options.part = DownloadOptions.Part(first: 100, last: 109)
            }
            #expect(result.code == nil, "\(result)")
            let bytes = try harness.bytes(harness.path)
            #expect(bytes == Array(Self.content.utf8))
        }
    }

    @Test("Bytes that were handed on are verified against a digest behind them if the head named its field")
    func stream() async throws {
        try await Harness.run { harness in
            for (isNamed, text) in [(true, "other"), (false, "other"), (true, Self.content)] {
                let resource = Self.resource(
                    [Self.field("Repr-Digest", of: text)], head: isNamed ? ["Trailer: Repr-Digest"] : [])
                let request = try harness.request(resource)
                let code = try await withDownloadClient { client -> DownloadError.Code? in
                    try await client.withBytes(of: request) { bytes -> DownloadError.Code? in
                        do {
                            var received: [UInt8] = []
                            for try await piece in bytes { received += piece }
                            #expect(received == Array(Self.content.utf8))
                            return nil
                        } catch let error as DownloadError {
                            return error.code
                        }
                    }
                }
                #expect(code == (isNamed && text == "other" ? .integrity : nil), "named: \(isNamed), of \(text)")
            }
        }
    }
}
