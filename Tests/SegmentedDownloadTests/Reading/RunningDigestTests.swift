import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Digests, and resuming from a saved state.
@Suite struct RunningDigestTests {
    /// Of `abc`: RFC 1321 A.5, FIPS 180-4's examples; the CRCs computed bit by bit from their definition.
    private static let known: [(ExpectedDigest.Algorithm, String)] = [
        (.crc32, "352441c2"), (.crc32c, "364b3fb7"), (.crc64nvme, "05e5cabb3fc1faeb"),
        (.md5, "900150983cd24fb0d6963f7d28e17f72"),
        (.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            .sha512,
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
    ]

    @Test("Each algorithm gives its published example", arguments: known)
    func example(algorithm: ExpectedDigest.Algorithm, hex: String) {
        var digest = RunningDigest(algorithm)
        Array("abc".utf8).withUnsafeBytes { digest.update($0) }
        #expect(digest.hex == hex)
        // Reading the result changes nothing.
        #expect(digest.hex == hex)
    }

    @Test(
        "A digest that is saved between two blocks and restored gives the same result", arguments: known.dropFirst()
    )
    func restored(algorithm: ExpectedDigest.Algorithm, hex: String) throws {
        let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* $0 &>> 3) }
        var whole = RunningDigest(algorithm)
        bytes.withUnsafeBytes { whole.update($0) }
        for offset in [0, 128, 1280, 9984] {
            var first = RunningDigest(algorithm)
            bytes[..<offset].withUnsafeBytes { first.update($0) }
            let saved = try #require(first.saved(at: Int64(offset)))
            var second = try #require(RunningDigest(saved))
            bytes[offset...].withUnsafeBytes { second.update($0) }
            #expect(second.hex == whole.hex && second.algorithm == algorithm)
        }
        #expect(whole.saved(at: 10_000) == nil)
    }

    @Test(
        "The CRCs have their published check values",
        arguments: [
            (ExpectedDigest.Algorithm.crc32, "cbf43926"), (.crc32c, "e3069283"), (.crc64nvme, "ae8b14860a799888"),
        ])
    func check(algorithm: ExpectedDigest.Algorithm, hex: String) {
        var digest = RunningDigest(algorithm)
        Array("123456789".utf8).withUnsafeBytes { digest.update($0) }
        #expect(digest.hex == hex)
    }

    @Test(
        "A CRC is the same for any division into pieces", arguments: [ExpectedDigest.Algorithm.crc32c, .crc64nvme])
    func pieces(algorithm: ExpectedDigest.Algorithm) {
        let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7 &>> 2) }
        var byOne = RunningDigest(algorithm)
        for byte in bytes { [byte].withUnsafeBytes { byOne.update($0) } }
        for length in [2, 3, 7, 8, 9, 13, 64, 999, 1000] {
            var digest = RunningDigest(algorithm)
            bytes.withUnsafeBytes { all in
                for start in stride(from: 0, to: 1000, by: length) {
                    digest.update(UnsafeRawBufferPointer(rebasing: all[start..<min(start + length, 1000)]))
                }
            }
            #expect(digest.hex == byOne.hex)
        }
    }

    @Test("An invalid state is refused")
    func refused() {
        let none = [UInt8](repeating: 0, count: 32)
        #expect(RunningDigest(DigestState(algorithm: 9, offset: 0, bytes: none)) == nil)
        #expect(RunningDigest(DigestState(algorithm: 3, offset: 64, bytes: none)) == nil)
        #expect(RunningDigest(DigestState(algorithm: 3, offset: 128, bytes: none.dropLast(4))) == nil)
        #expect(RunningDigest(.crc32).saved(at: 0) == nil)
    }
}
