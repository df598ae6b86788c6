/// Where each bucket of an array that is sorted by bucket begins and ends, in a bit for each bucket and each element.
///
/// A bucket is a zero, and a one for each of its elements (Elias, "Efficient storage and retrieval by content and
/// address of static files", 1974).
package struct BucketRanges: Sendable {
    private var words: [UInt64]
    /// The positions of the zeros of every 256th bucket.
    private var samples: [UInt32] = []
    /// The number of elements of all buckets.
    package let total: Int

    /// 256: with an element in each bucket, eight words are read to find a bucket.
    private static let spacing = 256

    /// - Parameter counts: The number of elements of each bucket.
    package init(counts: [UInt8]) {
        self.total = counts.reduce(0) { $0 + Int($1) }
        // One more zero ends the last bucket.
        self.words = [UInt64](repeating: 0, count: (counts.count + self.total) / 64 + 1)
        self.samples.reserveCapacity(counts.count / Self.spacing + 1)
        var position = 0
        for (bucket, count) in counts.enumerated() {
            if bucket % Self.spacing == 0 { self.samples.append(UInt32(position)) }
            for one in position + 1..<position + 1 + Int(count) { self.words[one / 64] |= 1 << UInt64(one % 64) }
            position += 1 + Int(count)
        }
    }

    /// The indices of a bucket's elements.
    package func range(of bucket: Int) -> Range<Int> {
        let sample = Int(self.samples[bucket / Self.spacing])
        var word = sample / 64
        var zeros = ~self.words[word] & .max << UInt64(sample % 64)
        var remaining = bucket % Self.spacing
        while zeros.nonzeroBitCount <= remaining {
            remaining -= zeros.nonzeroBitCount
            word += 1
            zeros = ~self.words[word]
        }
        for _ in 0..<remaining { zeros &= zeros - 1 }
        let position = word * 64 + zeros.trailingZeroBitCount
        zeros &= zeros - 1
        while zeros == 0 {
            word += 1
            zeros = ~self.words[word]
        }
        let next = word * 64 + zeros.trailingZeroBitCount
        return position - bucket..<next - bucket - 1
    }
}
