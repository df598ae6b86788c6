/// One of the tasks that share a job, such as `3/8`.
///
/// Tasks are numbered from 1, as in GNU `split -n` and in test runners with shards.
package struct Shard: Hashable, Sendable, CustomStringConvertible {
    /// 1,000,000: more tasks than any scheduler starts, and far fewer than a fingerprint's share distinguishes.
    package static let countMax = 1_000_000

    /// From 1 to `count`.
    package let number: Int
    /// The number of tasks; at least 1.
    package let count: Int

    package init?(number: Int, of count: Int) {
        guard (1...Self.countMax).contains(count), (1...count).contains(number) else { return nil }
        (self.number, self.count) = (number, count)
    }

    /// The only task of a job.
    package static let only = Shard(unchecked: 1, of: 1)

    private init(unchecked number: Int, of count: Int) { (self.number, self.count) = (number, count) }

    /// Such as `3/8`.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let number = DecimalDigits(parts[0].utf8)?.exact,
            let count = DecimalDigits(parts[1].utf8)?.exact
        else { return nil }
        self.init(number: Int(number), of: Int(count))
    }

    /// The form in names of files, such as `3-of-8`.
    package init?(fileName: some StringProtocol) {
        let parts = fileName.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1] == "of" else { return nil }
        self.init("\(parts[0])/\(parts[2])")
    }

    /// The form in names of files, such as `3-of-8`.
    package var fileName: String { "\(self.number)-of-\(self.count)" }

    package var description: String { "\(self.number)/\(self.count)" }

    /// Whether the task fetches an entry.
    package func owns(_ entry: EntryFingerprint) -> Bool { Int(entry.share % UInt32(self.count)) == self.number - 1 }

    /// Whether an entry can belong to both tasks, which may be of different counts.
    ///
    /// A share that leaves remainder a modulo m and b modulo n exists exactly if a and b are congruent modulo the
    /// greatest common divisor of m and n (Chinese remainder theorem).
    package func mayShareEntries(with other: Shard) -> Bool {
        var (divisor, rest) = (self.count, other.count)
        while rest > 0 { (divisor, rest) = (rest, divisor % rest) }
        return (self.number - other.number) % divisor == 0
    }

    /// The task's part of a whole number that the tasks share. The first tasks get what is left over.
    package func portion(of whole: Int64) -> Int64 {
        whole / Int64(self.count) + (Int64(self.number) <= whole % Int64(self.count) ? 1 : 0)
    }

    /// The task's part of a limit that is for all tasks together: at least 1, because 0 would mean no progress at all.
    package func limit(of whole: Int64) -> Int64 { max(self.portion(of: whole), 1) }

    /// The task's run of positions in `0..<length`, whose bounds are multiples of `alignment` except for the end; empty
    /// if there are more tasks than multiples.
    ///
    /// - Parameters:
    ///   - length: In bytes.
    ///   - alignment: In bytes; at least 1.
    package func range(in length: Int64, alignedTo alignment: Int64) -> Range<Int64> {
        // No product or sum exceeds the length.
        let blocks = Self.blockCount(in: length, alignedTo: alignment)
        let (share, rest) = blocks.quotientAndRemainder(dividingBy: Int64(self.count))
        let index = Int64(self.number - 1)
        let first = share * index + min(index, rest)
        let last = first + share + (index < rest ? 1 : 0)
        return (first < blocks ? first * alignment : length)..<(last < blocks ? last * alignment : length)
    }

    /// The number of blocks of `alignment` bytes that `length` bytes need; the last one may be shorter.
    static func blockCount(in length: Int64, alignedTo alignment: Int64) -> Int64 {
        length / alignment + (length % alignment > 0 ? 1 : 0)
    }
}
