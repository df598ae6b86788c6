/// Chooses the places at which bytes on disk are compared.
enum SampleSpots {
    /// 16 KiB: different files hardly agree over this length by chance, and it costs almost nothing.
    static let length: Int64 = 16 << 10

    /// At most this many random places are compared, one for each MiB of long runs.
    static let randomPlacesMax = 32

    /// The place in runs of bytes that is farthest from earlier ones. Nil if there is none far enough.
    static func farthest(from before: [Int64], in runs: [Range<Int64>], length: Int64) -> Range<Int64>? {
        guard length > 0 else { return nil }
        var places: [Int64] = []
        for run in runs where run.upperBound - run.lowerBound >= length {
            let last = run.upperBound - length
            places += [run.lowerBound, (run.lowerBound + last) / 2, last]
        }
        let far = places.map { place in (place, before.map { abs($0 - place) }.min() ?? .max) }
        guard let (place, distance) = far.max(by: { ($0.1, $1.0) < ($1.1, $0.0) }), distance >= length else {
            return nil
        }
        return place..<(place + length)
    }

    /// The last and the first bytes of a long run, or all of a short one.
    static func ends(of run: Range<Int64>) -> [Range<Int64>] {
        guard Self.isLong(run) else { return [run] }
        return [
            run.upperBound - Self.length..<run.upperBound,
            run.lowerBound..<run.lowerBound + Self.length,
        ]
    }

    /// Random places in long runs. Each byte is equally likely.
    static func random(in runs: [Range<Int64>], using generator: inout SplitMix64) -> [Range<Int64>] {
        let long = runs.filter(Self.isLong)
        let length = long.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
        let count = min(Int(clamping: length >> 20), Self.randomPlacesMax)
        return (0..<count).compactMap { _ in
            var offset = Int64(generator.next() % UInt64(length))
            for run in long {
                guard offset >= run.upperBound - run.lowerBound else {
                    let start = min(run.lowerBound + offset, run.upperBound - Self.length)
                    return start..<(start + Self.length)
                }
                offset -= run.upperBound - run.lowerBound
            }
            return nil
        }
    }

    private static func isLong(_ run: Range<Int64>) -> Bool { run.upperBound - run.lowerBound > 2 * Self.length }
}
