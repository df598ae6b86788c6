import Testing

@testable import SegmentedDownloadCore

@Suite("Places at which a partial file is compared")
struct AdoptionPlacesTests {
    private static func places(
        _ runs: [Range<Int64>], zeros: [Range<Int64>] = [], seed: UInt64 = 1
    ) -> [Range<Int64>] {
        var generator = SplitMix64(seed: seed)
        return AdoptionPlaces(in: runs, zeros: zeros, using: &generator).places
    }

    private static func length(_ ranges: [Range<Int64>]) -> Int64 { ranges.reduce(0) { $0 + $1.length } }

    private static let mebibyte: Int64 = 1 << 20

    @Test(
        "They cost less than 2 % of the bytes", arguments: [128 << 10, 1 << 20, 64 << 20, 1 << 30, 1 << 40] as [Int64])
    func cost(length: Int64) {
        let sixteen = (Int64(0)..<16).map { $0 * length..<$0 * length + length / 16 }
        for runs in [[0..<length], length >= 16 * Self.mebibyte ? sixteen : [0..<length]] {
            let places = Self.places(runs)
            #expect(Self.length(places) * 50 < length, "\(places.count)")
            #expect(places.count < 5000)
        }
    }

    @Test("They are ordered and disjoint, and each lies within a run", arguments: UInt64(0)..<50)
    func order(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var runs: [Range<Int64>] = []
        var offset: Int64 = 0
        for _ in 0..<20 {
            offset += Int64.random(in: 1...100_000, using: &generator)
            let end = offset + Int64.random(in: 1...5_000_000, using: &generator)
            runs.append(offset..<end)
            offset = end
        }
        let places = Self.places(runs, zeros: [runs[3], runs[7].lowerBound..<runs[7].lowerBound + 1], seed: seed)
        #expect(zip(places, places.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound })
        #expect(places.allSatisfy { place in runs.contains { $0.clamped(to: place) == place } })
        // Both ends of every run.
        for run in runs {
            #expect(
                places.contains { $0.lowerBound == run.lowerBound }
                    && places.contains { $0.upperBound == run.upperBound })
        }
    }

    @Test("Two stretches of 64 KiB without a place do not follow each other", arguments: UInt64(0)..<20)
    func gaps(seed: UInt64) {
        let places = Self.places([0..<32 * Self.mebibyte], seed: seed)
        #expect(zip(places, places.dropFirst()).allSatisfy { $1.lowerBound - $0.upperBound < 128 << 10 })
    }

    @Test("Every run of zeros is compared, up to a number")
    func zeros() {
        let zeros = (Int64(0)..<100).map { $0 * 300_000 + 7..<$0 * 300_000 + 20 }
        let places = Self.places([0..<64 * Self.mebibyte], zeros: zeros)
        #expect(zeros.allSatisfy { run in places.contains { $0.overlaps(run) } })
        let many = (Int64(0)..<20_000).map { $0 * 3000..<$0 * 3000 + ($0 % 1000 == 7 ? 200 : 20) }
        let some = Self.places([0..<64 * Self.mebibyte], zeros: many)
        #expect(some.count < 2000)
        // The longest are among them.
        #expect(many.filter { $0.length == 200 }.allSatisfy { run in some.contains { $0.overlaps(run) } })
    }

    @Test("A short run is compared as a whole, and without bytes there are no places")
    func short() {
        #expect(Self.places([5..<100]) == [5..<100])
        #expect(Self.places([]) == [])
    }
}
