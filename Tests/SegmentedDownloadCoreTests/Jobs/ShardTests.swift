import SegmentedDownloadCore
import Testing

@Suite("Shards of a job")
struct ShardTests {
    private func entry(_ number: Int) -> EntryFingerprint {
        var generator = SplitMix64(seed: UInt64(number))
        return EntryFingerprint(high: generator.next(), share: UInt32(truncatingIfNeeded: generator.next()))
    }

    @Test("A shard is written I/N, from 1")
    func text() {
        #expect(Shard("3/8") == Shard(number: 3, of: 8))
        #expect(Shard("3/8")?.description == "3/8")
        for text in [
            "0/8", "9/8", "3", "3/", "/8", "3/0", "-1/8", "+1/8", "1/2/3", " 1/2", "1/1000001", "a/b",
            "1/99999999999999999999",
        ] {
            #expect(Shard(text) == nil, "\(text)")
        }
    }

    @Test("Every entry belongs to exactly one task", arguments: [1, 2, 3, 7, 8, 1000])
    func partition(count: Int) {
        let shards = (1...count).compactMap { Shard(number: $0, of: count) }
        var owned = [Int](repeating: 0, count: count)
        for number in 0..<2000 {
            let owners = shards.filter { $0.owns(self.entry(number)) }
            #expect(owners.count == 1)
            if let owner = owners.first { owned[owner.number - 1] += 1 }
        }
        // With equal chances, a task of 8 has between 190 and 310 of 2000 entries in all but one of 10^4 cases.
        if count == 8 { #expect(owned.allSatisfy { (190...310).contains($0) }) }
    }

    @Test("Tasks of different counts can share entries exactly if their numbers are congruent")
    func congruent() throws {
        for count in 1...6 {
            for other in 1...6 {
                for first in 1...count {
                    for second in 1...other {
                        let (one, two) = (
                            try #require(Shard(number: first, of: count)),
                            try #require(Shard(number: second, of: other))
                        )
                        let share = (0..<(count * other)).contains { share in
                            let entry = EntryFingerprint(high: 0, share: UInt32(share))
                            return one.owns(entry) && two.owns(entry)
                        }
                        #expect(one.mayShareEntries(with: two) == share, "\(one) and \(two)")
                    }
                }
            }
        }
    }

    @Test("Ranges cover a file without overlap, at multiples of the alignment", arguments: [1, 2, 3, 8, 100])
    func ranges(count: Int) throws {
        for length: Int64 in [0, 1, 4095, 4096, 4097, 100_000, 1 << 33] {
            var end: Int64 = 0
            for number in 1...count {
                let range = try #require(Shard(number: number, of: count)).range(in: length, alignedTo: 4096)
                #expect(range.lowerBound == end)
                #expect(range.lowerBound % 4096 == 0 || range.lowerBound == length)
                end = range.upperBound
            }
            #expect(end == length)
        }
    }

    @Test("Portions add up to the whole")
    func portions() throws {
        for whole: Int64 in [0, 1, 7, 8, 9, 1000] {
            let portions = try (1...8).map { try #require(Shard(number: $0, of: 8)).portion(of: whole) }
            #expect(portions.reduce(0, +) == whole)
            let limits = try (1...8).map { try #require(Shard(number: $0, of: 8)).limit(of: whole) }
            #expect(limits == portions.map { max($0, 1) })
            #expect(try #require(portions.max()) - #require(portions.min()) <= 1)
        }
    }

    @Test("A set has the entries it was built from, and no others", arguments: [0, 1, 7, 8, 100, 5000, 100_000])
    func finished(count: Int) {
        let set = FinishedEntries(capacity: count) { take in for number in 0..<count { take(self.entry(number)) } }
        #expect(set.count == count)
        for number in 0..<count { #expect(set.contains(self.entry(number))) }
        for number in count..<count + 5000 { #expect(!set.contains(self.entry(number))) }
    }

    @Test("An entry that was recorded hundreds of times leaves the others their places")
    func repeated() {
        let entries = (0..<50).map { self.entry($0) } + [EntryFingerprint](repeating: self.entry(3), count: 1000)
        let set = FinishedEntries(capacity: entries.count) { entries.forEach($0) }
        #expect(set.count == 50 && entries.allSatisfy(set.contains))
    }

    @Test("Entries are told apart whose stored bits would all be 0")
    func zeros() {
        let zero = EntryFingerprint(high: 0, share: 0)
        let other = EntryFingerprint(high: 2, share: 0)
        // One bucket, which has the first 48 bits.
        #expect(!FinishedEntries(capacity: 1) { $0(EntryFingerprint(high: 1 << 63, share: 0)) }.contains(zero))
        #expect(FinishedEntries(capacity: 1) { $0(zero) }.contains(zero))
        #expect(!FinishedEntries().contains(zero) && !FinishedEntries().contains(other))
        // An entry that is passed only the first time leaves room, which is no entry.
        var isSecond = false
        let short = FinishedEntries(capacity: 1) { take in
            if !isSecond { take(zero) }
            isSecond = true
        }
        #expect(short.count == 0 && !short.contains(zero))
    }

    @Test("The ranges of buckets follow each other", arguments: [1, 2, 63, 64, 255, 256, 257, 1000], [0, 1, 3, 255])
    func ranges(buckets: Int, countMax: Int) {
        var generator = SplitMix64(seed: UInt64(buckets * 256 + countMax))
        // Most buckets of some tables are empty.
        let counts = (0..<buckets).map { bucket in
            bucket % 7 == 0 || countMax == 1 ? UInt8.random(in: 0...UInt8(countMax), using: &generator) : 0
        }
        let ranges = BucketRanges(counts: counts)
        var start = 0
        for (bucket, count) in counts.enumerated() {
            #expect(ranges.range(of: bucket) == start..<start + Int(count))
            start += Int(count)
        }
        #expect(ranges.total == start)
    }

    @Test("Entries that differ in one bit are told apart")
    func bits() {
        let base = self.entry(1)
        let set = FinishedEntries(capacity: 1 << 23) { $0(base) }
        for bit in 0..<64 {
            #expect(!set.contains(EntryFingerprint(high: base.high ^ 1 << UInt64(bit), share: base.share)))
        }
        // 23 bits of the table and 48 bits: 7 of the share.
        for bit in 25..<32 {
            #expect(!set.contains(EntryFingerprint(high: base.high, share: base.share ^ 1 << UInt32(bit))))
        }
    }

    @Test("A record that is damaged in any bit is none")
    func records() {
        let entry = self.entry(7)
        let bytes = FinishedEntryCodec.encode(entry)
        #expect(bytes.count == FinishedEntryCodec.recordLength)
        #expect(bytes.withUnsafeBytes { FinishedEntryCodec.decode($0) } == entry)
        for bit in 0..<128 {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(damaged.withUnsafeBytes { FinishedEntryCodec.decode($0) } == nil)
        }
        #expect([UInt8](repeating: 0, count: 16).withUnsafeBytes { FinishedEntryCodec.decode($0) } == nil)
    }

    @Test("A record of a file to be put into place that is damaged in any bit is none")
    func placingRecords() throws {
        let content = ContentSummary(length: 1 << 40 + 3, crc: CRC32(value: 0x8765_4321))
        let bytes = PlacingCodec.encode(content, of: self.entry(7))
        #expect(bytes.count == PlacingCodec.recordLength)
        let found = try #require(bytes.withUnsafeBytes { PlacingCodec.decode($0) })
        #expect(found.entry == self.entry(7) && found.content == content)
        for bit in 0..<256 {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(damaged.withUnsafeBytes { PlacingCodec.decode($0) == nil })
        }
        #expect([UInt8](repeating: 0, count: 32).withUnsafeBytes { PlacingCodec.decode($0) == nil })
    }
}
