import Foundation
import SegmentedDownloadCore
import Testing

/// The bytes that earlier versions wrote are kept in `Fixtures/Formats`, so that a change of the codec that can no longer read
/// them does not go unnoticed. A version that was written once is never changed there.
@Suite("Formats that earlier versions wrote")
struct StoredFormatTests {
    private static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("../../../Fixtures/Formats").standardizedFileURL

    private static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: Self.directory.appendingPathComponent(name)))
    }

    @Test("Manifests of every version are read", arguments: 1...6)
    func manifests(version: Int) throws {
        let manifest = try ManifestCodec.decode(try Self.bytes("manifest-\(version)"))
        let header = manifest.header
        #expect(header.id == 0x0123_4567_89AB_CDEF && header.completeLength == 3 << 20)
        #expect(header.device == 2049 && header.inode == 77 && header.bootID == "b00f1d")
        #expect(header.resource.validator.entityTag?.fieldValue == "\"v1\"")
        #expect(header.resource.validator.lastModified?.secondsSinceEpoch == 784_111_777)
        #expect(header.sources == ["http://host/file.iso"])
        #expect(header.digests == ["sha256=" + String(repeating: "ab", count: 32)])
        #expect(header.label.id == (version >= 2 ? "name" : nil))
        #expect(header.label.userInfo == (version >= 2 ? ["key": "value"] : [:]))
        #expect(header.label.priority == (version >= 2 ? 0.25 : 0.5))
        let fingerprint = ResourceFingerprint(salt: 9, hash: (0..<16).map { UInt8($0) })
        #expect(header.resource.locator == (version >= 3 ? fingerprint.map { .recorded($0) } : .unrecorded))
        #expect(header.label.options == (version >= 4 ? "{\"segments\":4}" : nil))
        #expect(header.label.part == (version >= 5 ? .init(first: 100, last: 3_145_827) : nil))
        #expect(header.resource.wholeLength == (version >= 6 ? 9_000_000 : nil))
        #expect(header.resource.begunAt?.secondsSinceEpoch == (version >= 6 ? 1_700_000_000 : nil))
        #expect(header.selection?.salt == (version >= 6 ? 7 : nil))
        #expect(header.selection?.names == (version >= 6 ? ["cookie"] : nil))
        #expect(header.pieces?.hexes == (version >= 6 ? ["00000000", "ffffffff"] : nil))
        let claims = [
            Claim(offset: 0, length: 1 << 20, crc: CRC32(value: 0x1111_1111)),
            Claim(offset: 1 << 20, length: 4096, crc: CRC32(value: 0x2222_2222)),
            Claim(offset: 2 << 20, length: 5, crc: CRC32(value: 0x3333_3333), mark: 3),
        ]
        #expect(manifest.durable == Array(claims[..<2]) && manifest.pending == [claims[2]])
        #expect(manifest.pausedModified == 123_456_789)
        let hex = (0..<32).map { UInt8($0) }.hex
        let whole = try #require(ExpectedDigest(.sha256, hex: hex))
        let content = try #require(ExpectedDigest(.md5, hex: String(hex.prefix(32))))
        #expect(header.resource.digests == (version >= 6 ? [whole] : []))
        #expect(manifest.contents == (version >= 6 ? [StatedDigest(content, of: 1 << 20..<2 << 20)] : []))
    }

    @Test("Records of finished files are read", arguments: [true, false])
    func records(isFirst: Bool) throws {
        let record = try #require(
            FinishedRecord(decoding: try Self.bytes(isFirst ? "record-first" : "record-statements")))
        #expect(record.length == 5 && record.crc == CRC32(value: 907_060_870))
        #expect(record.modified == 1_700_000_000_123_456_789)
        #expect(record.resource.validator.entityTag?.fieldValue == "\"v1\"")
        #expect(record.changed == (isFirst ? nil : 1_700_000_001_000_000_000))
        // It is of a part, and the user's digest of the part is none of the whole file.
        #expect(record.resource.digests.isEmpty)
        #expect(record.resource.wholeLength == (isFirst ? nil : 9))
        #expect(record.selection?.names == (isFirst ? nil : ["cookie"]))
    }
}
