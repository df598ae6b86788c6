/// The places at which the bytes of another program's partial file are compared with the server's.
///
/// They are both ends of every run of bytes, one random place in each of up to 4096 equal stretches, and one in each
/// run of zeros, which a crash or a reserved file may have left. Together they are less than 2 % of the bytes, unless
/// there are fewer than 64 KiB.
package struct AdoptionPlaces: Hashable, Sendable {
    /// Ordered and disjoint.
    package let places: [Range<Int64>]

    /// 64 KiB: the shortest stretch. A shorter one would cost more in requests than in bytes.
    private static let stretchLengthMinimum: Int64 = 64 << 10
    /// 2048: the requests take some seconds on a path of 50 ms. Above 2 GiB there is a place in every MiB.
    private static let stretchesMax: Int64 = 2048
    /// 4096: bounds the requests for a file of any length.
    private static let placesMax: Int64 = 4096
    /// 512: most partial files have fewer runs of zeros. Of more, the longest and random ones are compared.
    private static let zerosMax = 512
    /// 64 bytes: one byte that is not zero is enough.
    private static let zerosLength: Int64 = 64
    /// 256 bytes: different files do not agree over this length by chance.
    private static let lengthMinimum: Int64 = 256
    /// 16 KiB: see ``SampleSpots/length``.
    private static let lengthMaximum: Int64 = 16 << 10

    /// - Parameters:
    ///   - runs: The bytes on disk, ordered and disjoint.
    ///   - zeros: The runs of zeros in them, ordered and disjoint.
    package init(in runs: [Range<Int64>], zeros: [Range<Int64>], using generator: inout SplitMix64) {
        let total = runs.reduce(0) { $0 + $1.length }
        let wanted = min(total / Self.stretchLengthMinimum, max(Self.stretchesMax, total >> 20), Self.placesMax)
        let stretch = max(total / max(wanted, 1), 1)
        var places: [Range<Int64>] = []
        for run in runs {
            let end = Self.length(of: run.length / 256, in: run)
            places += [run.lowerBound..<run.lowerBound + end, run.upperBound - end..<run.upperBound]
            let count = max(run.length / stretch, 1)
            for number in 0..<count where run.length > 4 * end {
                let part = run.slice(number, of: count)
                places.append(part.random(Self.length(of: stretch / 240, in: part), using: &generator))
            }
        }
        for run in Self.chosen(zeros, min(Self.zerosMax, max(Int(total >> 14), 16)), using: &generator) {
            places.append(run.random(min(run.length, Self.zerosLength), using: &generator))
        }
        self.places = places.merged()
    }

    /// The longest runs, and as many random ones of the others. What a crash loses is a page or more.
    private static func chosen(
        _ zeros: [Range<Int64>], _ count: Int, using generator: inout SplitMix64
    ) -> [Range<Int64>] {
        guard zeros.count > count else { return zeros }
        let ordered = zeros.sorted { ($1.length, $0.lowerBound) < ($0.length, $1.lowerBound) }
        let others = ordered[(count / 2)...]
        // One of each of equally many others.
        return ordered[..<(count / 2)]
            + (0..<count - count / 2).map { number in
                let part = (Int64(others.startIndex)..<Int64(others.endIndex)).slice(
                    Int64(number), of: Int64(count - count / 2))
                return others[Int(part.random(1, using: &generator).lowerBound)]
            }
    }

    private static func length(of share: Int64, in run: Range<Int64>) -> Int64 {
        min(max(min(share, Self.lengthMaximum), Self.lengthMinimum), run.length)
    }
}

extension Range<Int64> {
    /// The number of bytes.
    var length: Int64 { self.upperBound - self.lowerBound }

    /// One of `count` equal parts.
    fileprivate func slice(_ number: Int64, of count: Int64) -> Range<Int64> {
        // Computed in parts, because the product may overflow.
        let (part, rest) = self.length.quotientAndRemainder(dividingBy: count)
        let start = self.lowerBound + number * part + Swift.min(number, rest)
        return start..<start + part + (number < rest ? 1 : 0)
    }

    /// A random run of a length that is at most that of the range.
    fileprivate func random(_ length: Int64, using generator: inout SplitMix64) -> Range<Int64> {
        let start = self.lowerBound + Int64(generator.next() % UInt64(self.length - length + 1))
        return start..<start + length
    }
}
