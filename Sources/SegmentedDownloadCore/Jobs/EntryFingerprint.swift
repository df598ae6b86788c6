/// Identifies an entry of a list by 96 bits of a digest of its text.
///
/// Of 10^8 entries two have the same fingerprint with a probability of 10^-13.
package struct EntryFingerprint: Hashable, Sendable {
    package let high: UInt64
    /// It also decides which task fetches the entry.
    package let share: UInt32

    package init(high: UInt64, share: UInt32) { (self.high, self.share) = (high, share) }

    /// The first 12 bytes, in network byte order.
    package init(_ digest: UnsafeRawBufferPointer) {
        precondition(digest.count >= Self.length, "a fingerprint has 12 bytes")
        self.high = UInt64(bigEndian: digest.loadUnaligned(as: UInt64.self))
        self.share = UInt32(bigEndian: digest.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
    }

    package static let length = 12

    /// In network byte order.
    package var bytes: [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: self.high >> (56 - 8 * $0)) }
            + (0..<4).map { UInt8(truncatingIfNeeded: self.share >> (24 - 8 * $0)) }
    }
}

/// A line of the record of finished entries: a fingerprint of the entry and its file, and the CRC-32 of these 12 bytes, 16 bytes
/// in all.
///
/// Records are independent of each other, so files of them can be concatenated, and a torn, lost or damaged one means
/// only that its entry is requested again. In records of segdl 0.1.0 the fingerprint was of the entry alone.
package enum FinishedEntryCodec {
    package static let recordLength = 16
    /// The first record of a file. It is no entry: a digest has this value with a probability of 2^-96.
    package static let header = Self.record(Array("segdl job 1\n".utf8))

    package static func encode(_ entry: EntryFingerprint) -> [UInt8] { Self.record(entry.bytes) }

    /// Nil if the bytes are not a record.
    package static func decode(_ bytes: UnsafeRawBufferPointer) -> EntryFingerprint? {
        guard bytes.count == Self.recordLength else { return nil }
        var crc = CRC32()
        crc.update(UnsafeRawBufferPointer(rebasing: bytes[..<EntryFingerprint.length]))
        guard UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self)) == crc.value else {
            return nil
        }
        return EntryFingerprint(bytes)
    }

    private static func record(_ bytes: [UInt8]) -> [UInt8] {
        let crc = CRC32(of: bytes).value
        return bytes + (0..<4).map { UInt8(truncatingIfNeeded: crc >> (8 * $0)) }
    }
}
