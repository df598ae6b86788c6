import NIOCore
import Synchronization

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The bytes an origin serves: a function of a seed and an offset, so that a resource of any size takes no space.
///
/// The byte at offset `o` is `table[o % 8_388_593]`. The table is the little-endian output of splitmix64, started at
/// the seed. Its length is prime, so that blocks of a power of two never repeat in step with it, and a block written to
/// the wrong place shows.
public struct OriginContent: Sendable {
    /// The largest prime below 8 MiB. A slice of a `ByteBuffer` must begin below 16 MiB, or it is copied.
    static let period: Int64 = 8_388_593
    /// 256 KiB: a system call transfers it in about 30 µs, and four of them fill a socket buffer.
    static let sliceMax = 256 * 1024

    /// One period, followed by the first bytes of the next, so that every slice is contiguous.
    private let table: ByteBuffer

    public init(seed: UInt64) {
        self.table = Self.tables.withLock { tables in
            if let known = tables.first(where: { $0.seed == seed }) { return known.table }
            // 16 tables are 136 MiB: more seeds than a test needs at a time.
            if tables.count == 16 { tables.removeFirst() }
            let table = Self.makeTable(seed: seed)
            tables.append((seed, table))
            return table
        }
    }

    /// The bytes of a range, for comparing small pieces.
    public func bytes(_ range: Range<Int64>) -> [UInt8] {
        var bytes: [UInt8] = []
        var offset = range.lowerBound
        while offset < range.upperBound {
            let slice = self.slice(at: offset, lengthMax: range.upperBound - offset)
            bytes.append(contentsOf: slice.readableBytesView)
            offset += Int64(slice.readableBytes)
        }
        return bytes
    }

    /// The offset at which a file differs from this content; `nil` if length and bytes are equal.
    ///
    /// If one ends first, the offset is that end. An unreadable file differs at 0.
    public func firstMismatch(inFileAt path: String, length: Int64) -> Int64? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return 0 }
        defer { close(descriptor) }

        var offset: Int64 = 0
        return withUnsafeTemporaryAllocation(byteCount: Self.sliceMax, alignment: 16) { scratch in
            while true {
                let count = read(descriptor, scratch.baseAddress, scratch.count)
                guard count >= 0 else { return offset }
                guard count > 0 else { return offset == length ? nil : offset }
                let compared = Int(min(Int64(count), length - offset))
                let file = UnsafeRawBufferPointer(rebasing: scratch[..<compared])
                if let index = self.firstMismatch(in: file, at: offset) { return offset + Int64(index) }
                offset += Int64(compared)
                if compared < count { return length }
            }
        }
    }

    private func firstMismatch(in file: UnsafeRawBufferPointer, at offset: Int64) -> Int? {
        self.slice(at: offset, lengthMax: Int64(file.count)).withUnsafeReadableBytes { expected in
            guard let left = file.baseAddress, let right = expected.baseAddress else { return nil }
            // One comparison for the equal case: element by element is slow in a debug build.
            guard memcmp(left, right, file.count) != 0 else { return nil }
            return zip(file, expected).enumerated().first { $1.0 != $1.1 }?.offset
        }
    }

    /// At most ``sliceMax`` bytes from an offset on, without a copy.
    func slice(at offset: Int64, lengthMax: Int64) -> ByteBuffer {
        let start = Int(offset % Self.period)
        guard let slice = self.table.getSlice(at: start, length: Int(min(lengthMax, Int64(Self.sliceMax)))) else {
            preconditionFailure("every slice lies within the table")
        }
        return slice
    }

    private static let tables = Mutex<[(seed: UInt64, table: ByteBuffer)]>([])

    private static func makeTable(seed: UInt64) -> ByteBuffer {
        let period = Int(Self.period)
        var table = ByteBuffer()
        table.writeWithUnsafeMutableBytes(minimumWritableBytes: period + Self.sliceMax) { bytes in
            var state = seed
            var offset = 0
            while offset < period {
                state &+= 0x9E37_79B9_7F4A_7C15
                var word = state
                word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
                word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
                bytes.storeBytes(of: (word ^ (word >> 31)).littleEndian, toByteOffset: offset, as: UInt64.self)
                offset += 8
            }
            // The last word extends past the period by up to seven bytes; the repeated beginning overwrites them.
            memcpy(bytes.baseAddress! + period, bytes.baseAddress!, Self.sliceMax)
            return period + Self.sliceMax
        }
        return table
    }
}
