import CDeflate
import CZlib

/// The CRC-32 of a run of bytes (ISO 3309, as in gzip).
///
/// libdeflate computes it, because its carry-less multiplication is five times as fast as zlib's code. zlib combines
/// two CRCs, which libdeflate cannot do.
package struct CRC32: Hashable, Sendable {
    package private(set) var value: UInt32

    /// The CRC of no bytes.
    package init() {
        self.value = 0
    }

    package init(value: UInt32) {
        self.value = value
    }

    package init(of bytes: some Sequence<UInt8>) {
        self.init()
        let array = Array(bytes)
        array.withUnsafeBytes { self.update($0) }
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
        self.value = libdeflate_crc32(self.value, base, bytes.count)
    }

    /// The value as eight lowercase hexadecimal digits.
    package var hex: String {
        let digits = String(self.value, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    /// Appends a run of `length` bytes whose CRC is `other`, without reading those bytes.
    package mutating func append(_ other: CRC32, length: Int64) {
        self.value = UInt32(truncatingIfNeeded: crc32_combine(UInt(self.value), UInt(other.value), Int(length)))
    }
}
