/// A cyclic redundancy check that object stores compute besides CRC-32, low bit first, beginning and ending inverted.
///
/// Eight bytes at a time by eight tables (Kounavis and Berry, "A Systematic Approach to Building High Performance Software-Based CRC
/// Generators", 2005), since no library that is kept has both: about 1 ns for them, as one table looks up after another.
struct ReflectedCRC: Hashable {
    enum Polynomial: Hashable {
        /// CRC-32C (Castagnoli), RFC 9260 Appendix A.
        case castagnoli
        /// CRC-64/NVME, NVM Express Command Set §5.2.1.3.4.
        case nvme
    }

    private let polynomial: Polynomial
    /// What has been divided so far, inverted; the whole state.
    var register: UInt64

    init(_ polynomial: Polynomial) {
        self.polynomial = polynomial
        self.register = polynomial.mask
    }

    var value: UInt64 { self.register ^ self.polynomial.mask }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var register = self.register
        self.polynomial.tables.withUnsafeBufferPointer { tables in
            var offset = 0
            while offset + 8 <= bytes.count {
                let next = register ^ UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
                var sum: UInt64 = 0
                for index in 0..<8 {
                    sum ^= tables[(7 - index) << 8 | Int(truncatingIfNeeded: next >> UInt64(index << 3) & 0xFF)]
                }
                register = sum
                offset += 8
            }
            while offset < bytes.count {
                register = register >> 8 ^ tables[Int(truncatingIfNeeded: (register ^ UInt64(bytes[offset])) & 0xFF)]
                offset += 1
            }
        }
        self.register = register
    }
}

extension ReflectedCRC.Polynomial {
    /// The polynomial's bits, the highest power lowest, without the power that makes it that long.
    private var bits: UInt64 {
        switch self {
        case .castagnoli: 0x82F6_3B78
        case .nvme: 0x9A6C_9329_AC4B_C9B5
        }
    }

    fileprivate var mask: UInt64 {
        switch self {
        case .castagnoli: UInt64(UInt32.max)
        case .nvme: .max
        }
    }

    private static let castagnoliTables = castagnoli.makeTables()
    private static let nvmeTables = nvme.makeTables()

    fileprivate var tables: [UInt64] {
        switch self {
        case .castagnoli: Self.castagnoliTables
        case .nvme: Self.nvmeTables
        }
    }

    /// Eight tables of 256: what a byte leaves that so many others follow.
    private func makeTables() -> [UInt64] {
        var tables = (0..<256).map { byte in
            (0..<8).reduce(UInt64(byte)) { rest, _ in rest >> 1 ^ (rest & 1 == 1 ? self.bits : 0) }
        }
        for index in 256..<2048 {
            let before = tables[index - 256]
            tables.append(before >> 8 ^ tables[Int(before & 0xFF)])
        }
        return tables
    }
}
