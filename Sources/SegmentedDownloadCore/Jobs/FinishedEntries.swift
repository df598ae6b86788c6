/// The set of finished entries, in 7 bytes for each and a table of at most 4 MiB, so that 10^7 need 74 MB.
///
/// An entry's first bits select a bucket, and the bucket stores the 56 bits after them (quotienting, as in Cleary,
/// "Compact hash tables using bidirectional linear probing", 1984). Of 10^7 entries one is taken for another with a
/// probability of 10^-9.
package struct FinishedEntries: Sendable {
    /// Where the entries of each bucket begin, and after the last bucket where they end.
    private var starts: [UInt32]
    /// 7 bytes each, and one more so that the last can be read as 8.
    private var remainders: [UInt8]
    private let bits: Int

    /// The set of no entries.
    package init() {
        self.bits = 0
        self.starts = [0, 0]
        self.remainders = [0]
    }

    /// The entries that `entries` passes to its argument. It is called twice, first to count those of each bucket. An
    /// entry that it passes only the second time may be left out.
    ///
    /// - Parameter capacity: About the number of entries.
    package init<Failure: Error>(
        capacity: Int, _ entries: ((EntryFingerprint) -> Void) throws(Failure) -> Void
    ) throws(Failure) {
        let bits = Self.bits(for: capacity)
        var starts = [UInt32](repeating: 0, count: (1 << bits) + 1)
        try entries { starts[Self.bucket(of: $0, bits) + 1] += 1 }
        for bucket in 1..<starts.count { starts[bucket] += starts[bucket - 1] }
        var next = starts
        var remainders = [UInt8](repeating: 0, count: Int(starts[starts.count - 1]) * Self.length + 1)
        try entries { entry in
            let bucket = Self.bucket(of: entry, bits)
            guard next[bucket] < starts[bucket + 1] else { return }
            let remainder = Self.remainder(of: entry, bits).littleEndian
            remainders.withUnsafeMutableBytes { bytes in
                let place = Int(next[bucket]) * Self.length
                withUnsafeBytes(of: remainder) {
                    bytes[place..<place + Self.length].copyBytes(from: $0.prefix(Self.length))
                }
            }
            next[bucket] += 1
        }
        (self.bits, self.starts, self.remainders) = (bits, starts, remainders)
    }

    /// The number of entries, with those that were passed several times.
    package var count: Int { self.remainders.count / Self.length }

    package func contains(_ entry: EntryFingerprint) -> Bool {
        let bucket = Self.bucket(of: entry, self.bits)
        let remainder = Self.remainder(of: entry, self.bits)
        return self.remainders.withUnsafeBytes { bytes in
            for index in Int(self.starts[bucket])..<Int(self.starts[bucket + 1]) {
                let word = bytes.loadUnaligned(fromByteOffset: index * Self.length, as: UInt64.self)
                if UInt64(littleEndian: word) & Self.mask == remainder { return true }
            }
            return false
        }
    }

    /// The length of a remainder, in bytes.
    private static let length = 7
    private static let mask: UInt64 = 1 << 56 - 1

    /// 8: a bucket of this size is one cache line.
    private static let bucketSize = 8
    /// 20: the table has 4 MiB at most.
    private static let bitsMax = 20

    private static func bits(for capacity: Int) -> Int {
        let buckets = max(capacity / Self.bucketSize, 1)
        return min(Int.bitWidth - 1 - buckets.leadingZeroBitCount, Self.bitsMax)
    }

    private static func bucket(of entry: EntryFingerprint, _ bits: Int) -> Int { Int(entry.high >> (64 - bits)) }

    private static func remainder(of entry: EntryFingerprint, _ bits: Int) -> UInt64 {
        (entry.high << bits | (UInt64(entry.share) << 32) >> (64 - bits)) >> 8
    }
}
