/// The set of finished entries, in 8 bytes for each and a table of at most 1 MiB, so that 10^7 need 81 MB.
///
/// An entry's first bits select a bucket, and the bucket stores the 64 bits after them (quotienting, as in Cleary,
/// "Compact hash tables using bidirectional linear probing", 1984). Of 10^7 entries one is taken for another with a
/// probability of 10^-11.
package struct FinishedEntries: Sendable {
    /// Where the entries of each bucket begin, and after the last bucket where they end.
    private var starts: [UInt32]
    private var remainders: [UInt64]
    private let bits: Int

    /// The set of no entries.
    package init() {
        self.bits = 0
        self.starts = [0, 0]
        self.remainders = []
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
        var remainders = [UInt64](repeating: 0, count: Int(starts[starts.count - 1]))
        try entries { entry in
            let bucket = Self.bucket(of: entry, bits)
            guard next[bucket] < starts[bucket + 1] else { return }
            remainders[Int(next[bucket])] = Self.remainder(of: entry, bits)
            next[bucket] += 1
        }
        (self.bits, self.starts, self.remainders) = (bits, starts, remainders)
    }

    /// The number of entries, with those that were passed several times.
    package var count: Int { self.remainders.count }

    package func contains(_ entry: EntryFingerprint) -> Bool {
        let bucket = Self.bucket(of: entry, self.bits)
        let remainder = Self.remainder(of: entry, self.bits)
        return self.remainders[Int(self.starts[bucket])..<Int(self.starts[bucket + 1])].contains(remainder)
    }

    /// 8: a bucket of this size is one cache line.
    private static let bucketSize = 8
    /// 18: the table has 1 MiB at most, and the buckets of 10^7 entries 38.
    private static let bitsMax = 18

    private static func bits(for capacity: Int) -> Int {
        let buckets = max(capacity / Self.bucketSize, 1)
        return min(Int.bitWidth - 1 - buckets.leadingZeroBitCount, Self.bitsMax)
    }

    private static func bucket(of entry: EntryFingerprint, _ bits: Int) -> Int { Int(entry.high >> (64 - bits)) }

    private static func remainder(of entry: EntryFingerprint, _ bits: Int) -> UInt64 {
        entry.high << bits | (UInt64(entry.share) << 32) >> (64 - bits)
    }
}
