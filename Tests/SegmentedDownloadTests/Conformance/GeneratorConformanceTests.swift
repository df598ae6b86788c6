import SegmentedDownloadCore
import Testing

/// Randomness has one implementation, and enters as its seed: the system's for a client, the world's in a simulation.
@Suite("What the generator of random numbers does with a seed")
struct GeneratorConformanceTests {
    /// A seed from the system, as a client draws it, and seeds with few bits.
    private static let seeds: [UInt64] = [0, 1, .max, 1 << 63, .random(in: .min ... .max)]

    @Test("The numbers are those of SplitMix64, so that a seed is the same run on every machine")
    func reference() {
        var generator = SplitMix64(seed: 1_234_567)
        // Source: https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64
        let numbers = (0..<5).map { _ in generator.next() }
        #expect(
            numbers == [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
                4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
            ])
    }

    @Test("A seed gives the same numbers again, and another seed others")
    func seeds() {
        for seed in Self.seeds {
            var (one, again, other) = (SplitMix64(seed: seed), SplitMix64(seed: seed), SplitMix64(seed: seed ^ 1 << 32))
            let numbers = (0..<100).map { _ in one.next() }
            let (same, others) = ((0..<100).map { _ in again.next() }, (0..<100).map { _ in other.next() })
            #expect(numbers == same && Set(numbers).isDisjoint(with: others), "seed \(seed)")
        }
    }

    @Test("Every bit takes both values, and a range is neither left nor avoided")
    func range() {
        for seed in Self.seeds {
            var generator = SplitMix64(seed: seed)
            let numbers = (0..<256).map { _ in generator.next() }
            #expect(numbers.reduce(0, |) == .max && numbers.reduce(.max, &) == 0, "seed \(seed)")
            let drawn = Set((0..<1000).map { _ in Int.random(in: -3...3, using: &generator) })
            #expect(drawn == Set(-3...3), "seed \(seed)")
        }
    }
}
