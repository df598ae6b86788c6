/// The set of finished entries, in less than 7 bytes for each, so that 10^7 need 67 MB.
///
/// An entry's first bits select a bucket, and the bucket has the 53 bits after them (quotienting, as in Cleary,
/// "Compact hash tables using bidirectional linear probing", 1984). Of 10^7 entries one is taken for another with a
/// probability of 10^-8.
package struct FinishedEntries: Sendable {
    /// The number of entries in each bucket.
    private var lengths: [UInt8]
    /// Where every 64th bucket begins, as an index of `remainders`.
    private var starts: [UInt32]
    private var remainders: PackedWords
    /// The number of bits that select a bucket.
    private let bits: Int

    /// 8: a bucket usually has 8 to 16 entries.
    private static let bucketSize = 8
    /// 64: the lengths that are added to find a bucket are in one cache line.
    private static let spacing = 64

    /// The set of no entries.
    package init() {
        self.bits = 0
        (self.lengths, self.starts, self.remainders) = ([0], [0], PackedWords(count: 0))
    }

    /// The entries that `entries` passes to its argument. It is called twice, first to count those of each bucket. An
    /// entry that it passes only the second time may be left out, and so may entries of a bucket with more than 255.
    ///
    /// - Parameter capacity: About the number of entries.
    package init<Failure: Error>(
        capacity: Int, _ entries: ((EntryFingerprint) -> Void) throws(Failure) -> Void
    ) throws(Failure) {
        let bits = Int.bitWidth - 1 - max(capacity / Self.bucketSize, 1).leadingZeroBitCount
        var lengths = [UInt8](repeating: 0, count: 1 << bits)
        try entries { entry in
            let bucket = Self.bucket(of: entry, bits)
            if lengths[bucket] < .max { lengths[bucket] += 1 }
        }
        self.bits = bits
        self.lengths = lengths
        self.starts = stride(from: 0, to: lengths.count, by: Self.spacing).reduce(into: [0]) { starts, bucket in
            let length = lengths[bucket..<min(bucket + Self.spacing, lengths.count)].reduce(0) { $0 + UInt32($1) }
            starts.append(starts[starts.count - 1] + length)
        }
        self.remainders = PackedWords(count: Int(self.starts[self.starts.count - 1]))
        var taken = [UInt8](repeating: 0, count: lengths.count)
        try entries { entry in
            let bucket = Self.bucket(of: entry, bits)
            guard taken[bucket] < lengths[bucket] else { return }
            self.remainders.set(self.start(of: bucket) + Int(taken[bucket]), to: Self.remainder(of: entry, bits))
            taken[bucket] += 1
        }
    }

    /// The number of entries, with those that were passed several times.
    package var count: Int { self.remainders.count }

    package func contains(_ entry: EntryFingerprint) -> Bool {
        let bucket = Self.bucket(of: entry, self.bits)
        let remainder = Self.remainder(of: entry, self.bits)
        let start = self.start(of: bucket)
        return (start..<start + Int(self.lengths[bucket])).contains { self.remainders[$0] == remainder }
    }

    private func start(of bucket: Int) -> Int {
        let first = bucket / Self.spacing
        return self.lengths[first * Self.spacing..<bucket].reduce(Int(self.starts[first])) { $0 + Int($1) }
    }

    private static func bucket(of entry: EntryFingerprint, _ bits: Int) -> Int { Int(entry.high >> (64 - bits)) }

    private static func remainder(of entry: EntryFingerprint, _ bits: Int) -> UInt64 {
        (entry.high << bits | (UInt64(entry.share) << 32) >> (64 - bits)) >> (64 - PackedWords.width)
    }
}

/// An array of numbers of 53 bits, without bits between them.
private struct PackedWords: Sendable {
    /// 53: with up to 7 bits before it, a number is in 64 bits that begin with a byte.
    static let width = 53
    private static let mask: UInt64 = 1 << UInt64(Self.width) - 1

    let count: Int
    private var bytes: [UInt8]

    /// `count` zeros.
    init(count: Int) {
        self.count = count
        // 8 more, so that the last can be read as a whole word.
        self.bytes = [UInt8](repeating: 0, count: count * Self.width / 8 + 8)
    }

    subscript(index: Int) -> UInt64 {
        self.bytes.withUnsafeBytes { Self.word($0, index) >> UInt64(index * Self.width % 8) & Self.mask }
    }

    /// Stores a number where there is a zero.
    mutating func set(_ index: Int, to number: UInt64) {
        self.bytes.withUnsafeMutableBytes { bytes in
            let word = Self.word(UnsafeRawBufferPointer(bytes), index) | number << UInt64(index * Self.width % 8)
            bytes.storeBytes(of: word.littleEndian, toByteOffset: index * Self.width / 8, as: UInt64.self)
        }
    }

    private static func word(_ bytes: UnsafeRawBufferPointer, _ index: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index * Self.width / 8, as: UInt64.self))
    }
}
