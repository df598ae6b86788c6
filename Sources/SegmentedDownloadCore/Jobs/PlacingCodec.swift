/// The length of a file's content, and its CRC-32.
package struct ContentSummary: Hashable, Sendable {
    package let length: Int64
    package let crc: CRC32

    package init(length: Int64, crc: CRC32) { (self.length, self.crc) = (length, crc) }
}

/// A line of the record of the files that a run was about to put into place: 32 bytes.
///
/// It has the entry's fingerprint, the length and the CRC-32 of the content, 4 zeros, and a CRC-32 of these 28 bytes. Numbers
/// other than the fingerprint are little-endian. Records are independent of each other, as in ``FinishedEntryCodec``.
package enum PlacingCodec {
    package static let recordLength = 32
    private static let checkedLength = 28

    package static func encode(_ content: ContentSummary, of entry: EntryFingerprint) -> [UInt8] {
        var bytes = entry.bytes
        withUnsafeBytes(of: content.length.littleEndian) { bytes += $0 }
        withUnsafeBytes(of: content.crc.value.littleEndian) { bytes += $0 }
        bytes += [0, 0, 0, 0]
        withUnsafeBytes(of: CRC32(of: bytes).value.littleEndian) { bytes += $0 }
        return bytes
    }

    /// Nil if the bytes are not a record.
    package static func decode(_ bytes: UnsafeRawBufferPointer) -> (entry: EntryFingerprint, content: ContentSummary)? {
        guard bytes.count == Self.recordLength else { return nil }
        var crc = CRC32()
        crc.update(UnsafeRawBufferPointer(rebasing: bytes[..<Self.checkedLength]))
        let number = { (offset: Int) in
            UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        }
        let length = Int64(
            littleEndian: bytes.loadUnaligned(fromByteOffset: EntryFingerprint.length, as: Int64.self))
        guard number(Self.checkedLength) == crc.value, length >= 0, number(Self.checkedLength - 4) == 0 else {
            return nil
        }
        return (EntryFingerprint(bytes), ContentSummary(length: length, crc: CRC32(value: number(20))))
    }
}
