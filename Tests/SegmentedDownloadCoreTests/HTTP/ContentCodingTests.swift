import Foundation
import SegmentedDownloadCore
import Testing

/// Short documents with a content coding.
@Suite("Content codings of documents")
struct ContentCodingTests {
    /// Ten times the ten digits.
    private static let plain = Array(String(repeating: "0123456789", count: 10).utf8)
    private static let gzip = Self.bytes("H4sIAAAAAAACAzMwNDI2MTUzt7A0oBkLALxL/LFkAAAA")
    private static let zlib = Self.bytes("eJwzMDQyNjE1M7ewNKAZCwAJDBSD")
    private static let bare = Self.bytes("MzA0MjYxNTO3sDSgGQsA")

    private static func bytes(_ base64: String) -> [UInt8] { Data(base64Encoded: base64).map(Array.init) ?? [] }

    @Test("gzip, also in several members, and deflate with and without zlib's head are decoded")
    func decoded() throws {
        for coding in ["gzip", "x-gzip"] {
            #expect(try ContentCoding.decoded(Self.gzip, from: coding, lengthMax: 100) == Self.plain)
            let twice = try ContentCoding.decoded(Self.gzip + Self.gzip, from: coding, lengthMax: .max)
            #expect(twice == Self.plain + Self.plain)
        }
        for bytes in [Self.zlib, Self.bare] {
            #expect(try ContentCoding.decoded(bytes, from: "deflate", lengthMax: 1 << 20) == Self.plain)
        }
    }

    @Test("What is not encoded, or with another coding, is left as it is")
    func others() throws {
        for coding in [nil, "br", "gzip,br", "aws-chunked"] {
            #expect(try ContentCoding.decoded(Self.gzip, from: coding, lengthMax: 1) == Self.gzip)
        }
        #expect(try ContentCoding.decoded(Self.plain, from: "gzip", lengthMax: 1) == Self.plain)
        #expect(try ContentCoding.decoded([], from: "gzip", lengthMax: 1) == [])
    }

    @Test("A document that is cut off or damaged, or is longer than the limit when it is decoded, is refused")
    func refused() {
        #expect(throws: ContentCoding.Failure.tooLong) {
            try ContentCoding.decoded(Self.gzip, from: "gzip", lengthMax: 99)
        }
        #expect(throws: ContentCoding.Failure.tooLong) {
            try ContentCoding.decoded(Self.gzip + Self.gzip, from: "gzip", lengthMax: 199)
        }
        #expect(throws: ContentCoding.Failure.tooLong) {
            try ContentCoding.decoded(Self.zlib, from: "deflate", lengthMax: 99)
        }
        var damaged = Self.gzip
        damaged[damaged.count - 6] ^= 1
        for bytes in [damaged, Array(Self.gzip.dropLast()), Self.gzip + [0]] as [[UInt8]] {
            #expect(throws: ContentCoding.Failure.malformed) {
                try ContentCoding.decoded(bytes, from: "gzip", lengthMax: 1 << 20)
            }
        }
        #expect(throws: ContentCoding.Failure.malformed) {
            try ContentCoding.decoded(Self.plain, from: "deflate", lengthMax: 1 << 20)
        }
    }
}
