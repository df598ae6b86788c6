/// The set of finished entries, each with the state of its file, in 6.3 bytes for each, so that 10^7 need 63 MB.
///
/// One record holds both, because a record of the entry alone would double that and prove nothing: an entry is looked up with the
/// state that its file has now.
///
/// An entry's first bits select a bucket, and the bucket has the 48 bits after them (quotienting, as in Cleary,
/// "Compact hash tables using bidirectional linear probing", 1984). Of 10^7 entries one is taken for another with a
/// probability of 10^-7 at most.
package struct FinishedEntries: Sendable {
    private let buckets: BucketRanges
    /// 0 where there is no entry.
    private var remainders: PackedWords
    /// The number of bits that select a bucket.
    private let bits: Int
    /// The number of different entries.
    package private(set) var count = 0

    /// The set of no entries.
    package init() {
        self.bits = 0
        self.buckets = BucketRanges(counts: [0])
        self.remainders = PackedWords(count: 0)
    }

    /// The entries that `entries` passes to its argument. It is called twice, first to count those of each bucket. An
    /// entry that it passes only the second time may be left out, and so may entries of a bucket with more than 255.
    ///
    /// - Parameter capacity: About the number of entries.
    package init<Failure: Error>(
        capacity: Int, _ entries: ((EntryFingerprint) -> Void) throws(Failure) -> Void
    ) throws(Failure) {
        // A bucket usually has one or two entries.
        let bits = Int.bitWidth - 1 - max(capacity, 1).leadingZeroBitCount
        self.bits = bits
        self.buckets = try Self.ranges(bits, entries)
        self.remainders = PackedWords(count: self.buckets.total)
        try entries { entry in
            let remainder = Self.remainder(of: entry, bits)
            for index in self.buckets.range(of: Self.bucket(of: entry, bits)) {
                let stored = self.remainders[index]
                if stored == remainder { return }
                guard stored == 0 else { continue }
                self.remainders.set(index, to: remainder)
                self.count += 1
                return
            }
        }
    }

    package func contains(_ entry: EntryFingerprint) -> Bool {
        let remainder = Self.remainder(of: entry, self.bits)
        return self.buckets.range(of: Self.bucket(of: entry, self.bits)).contains { self.remainders[$0] == remainder }
    }

    /// Counts the entries of each bucket. The counts themselves are large and released here.
    private static func ranges<Failure: Error>(
        _ bits: Int, _ entries: ((EntryFingerprint) -> Void) throws(Failure) -> Void
    ) throws(Failure) -> BucketRanges {
        var counts = [UInt8](repeating: 0, count: 1 << bits)
        try entries { entry in
            let bucket = Self.bucket(of: entry, bits)
            if counts[bucket] < .max { counts[bucket] += 1 }
        }
        return BucketRanges(counts: counts)
    }

    private static func bucket(of entry: EntryFingerprint, _ bits: Int) -> Int { Int(entry.high >> (64 - bits)) }

    /// At least 1.
    private static func remainder(of entry: EntryFingerprint, _ bits: Int) -> UInt64 {
        max(1, (entry.high << bits | (UInt64(entry.share) << 32) >> (64 - bits)) >> (64 - PackedWords.width))
    }
}

/// An array of numbers of 48 bits, without bits between them.
private struct PackedWords: Sendable {
    static let width = 48
    /// Six bytes.
    private static let length = Self.width / 8
    private static let mask: UInt64 = 1 << UInt64(Self.width) - 1

    private var bytes: [UInt8]

    /// `count` zeros.
    init(count: Int) {
        // 2 more, so that the last can be read as a whole word.
        self.bytes = [UInt8](repeating: 0, count: count * Self.length + 2)
    }

    subscript(index: Int) -> UInt64 {
        self.bytes.withUnsafeBytes { Self.word($0, index) & Self.mask }
    }

    /// Stores a number where there is a zero.
    mutating func set(_ index: Int, to number: UInt64) {
        self.bytes.withUnsafeMutableBytes { bytes in
            let word = Self.word(UnsafeRawBufferPointer(bytes), index) | number
            bytes.storeBytes(of: word.littleEndian, toByteOffset: index * Self.length, as: UInt64.self)
        }
    }

    private static func word(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * Self.length, as: UInt64.self))
    }
}
