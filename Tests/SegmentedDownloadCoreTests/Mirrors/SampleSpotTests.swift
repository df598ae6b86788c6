import Testing

@testable import SegmentedDownloadCore

@Suite("Where bytes are compared")
struct SampleSpotTests {
    private static let length = SampleSpots.length

    @Test("A sample is as far as possible from those before; of equally far places the first one is taken")
    func farthest() {
        let run: [Range<Int64>] = [1000..<2000]
        #expect(SampleSpots.farthest(from: [1000], in: run, length: 100) == 1900..<2000)
        #expect(SampleSpots.farthest(from: [1000, 1900], in: run, length: 100) == 1450..<1550)
        #expect(SampleSpots.farthest(from: [1000, 1900, 1450], in: run, length: 100) == nil)
        #expect(SampleSpots.farthest(from: [], in: run, length: 100) == 1000..<1100)
        #expect(SampleSpots.farthest(from: [1450], in: run, length: 100) == 1000..<1100)
    }

    @Test("A run that is too short has no place, and none overlaps an earlier one")
    func tooShort() {
        #expect(SampleSpots.farthest(from: [], in: [0..<99, 200..<300], length: 100) == 200..<300)
        #expect(SampleSpots.farthest(from: [], in: [0..<99], length: 100) == nil)
        #expect(SampleSpots.farthest(from: [0], in: [0..<200], length: 100) == 100..<200)
        #expect(SampleSpots.farthest(from: [1], in: [0..<200], length: 100) == nil)
        #expect(SampleSpots.farthest(from: [], in: [0..<10], length: 0) == nil)
    }

    @Test("Of a long run both ends are compared, of a short one all")
    func ends() {
        #expect(SampleSpots.ends(of: 5..<10) == [5..<10])
        #expect(SampleSpots.ends(of: 0..<2 * Self.length) == [0..<2 * Self.length])
        #expect(
            SampleSpots.ends(of: 0..<2 * Self.length + 1) == [Self.length + 1..<2 * Self.length + 1, 0..<Self.length])
    }

    @Test("A random place for each MiB of long runs lies within one of them, and takes one random number")
    func random() {
        let runs: [Range<Int64>] = [0..<2 * Self.length, 1 << 20..<3 << 20, 5 << 20..<6 << 20]
        var (used, expected) = (SplitMix64(seed: 7), SplitMix64(seed: 7))
        let spots = SampleSpots.random(in: runs, using: &used)
        #expect(spots.count == 3)
        for spot in spots {
            #expect(spot.upperBound - spot.lowerBound == Self.length)
            #expect(runs.dropFirst().contains { $0.lowerBound <= spot.lowerBound && spot.upperBound <= $0.upperBound })
            _ = expected.next()
        }
        #expect(used == expected)
        var unused = used
        #expect(SampleSpots.random(in: [runs[0]], using: &unused).isEmpty && unused == used)
    }
}
