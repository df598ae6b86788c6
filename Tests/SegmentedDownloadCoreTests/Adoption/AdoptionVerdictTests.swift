import Testing

@testable import SegmentedDownloadCore

@Suite("What of a partial file is kept")
struct AdoptionVerdictTests {
    /// Ten places of 10 bytes in each run, at the multiples of a hundred.
    private static func places(_ runs: [Range<Int64>], differing: Set<Int64>) -> [AdoptionVerdict.Place] {
        runs.flatMap { run in
            stride(from: run.lowerBound, to: run.upperBound, by: 100).map {
                AdoptionVerdict.Place($0..<$0 + 10, agrees: !differing.contains($0))
            }
        }
    }

    private static let run: Range<Int64> = 0..<1010

    @Test("All is kept if all places agree")
    func agreement() {
        let places = Self.places([Self.run], differing: [])
        #expect(AdoptionVerdict(runs: [Self.run], places: places) == .kept([Self.run]))
    }

    @Test("Around a place that differs nothing is kept up to the second place that agrees")
    func margin() {
        let places = Self.places([Self.run], differing: [500])
        #expect(AdoptionVerdict(runs: [Self.run], places: places) == .kept([0..<310, 700..<1010]))
        let two = Self.places([Self.run], differing: [400, 600])
        #expect(AdoptionVerdict(runs: [Self.run], places: two) == .kept([0..<210, 800..<1010]))
    }

    @Test("Damage near an end of a run reaches to that end, and not into the next run")
    func ends() {
        let runs: [Range<Int64>] = [0..<1010, 2000..<3010]
        let places = Self.places(runs, differing: [1000, 2100])
        #expect(AdoptionVerdict(runs: runs, places: places) == .kept([0..<810, 2300..<3010]))
    }

    @Test("A file is foreign if more than a quarter of the places differ", arguments: [2, 3])
    func foreign(count: Int) {
        let places = Self.places([Self.run], differing: Set((0..<Int64(count)).map { $0 * 100 }))
        #expect((AdoptionVerdict(runs: [Self.run], places: places) == .foreign) == (count > 2))
    }

    @Test("A file whose places all differ, or of which nothing would be kept, is foreign")
    func nothing() {
        let one = [AdoptionVerdict.Place(0..<10, agrees: false)]
        #expect(AdoptionVerdict(runs: [0..<10], places: one) == .foreign)
        // They only are zeros, but nothing else is there.
        #expect(AdoptionVerdict(runs: [0..<10], zeros: [0..<10], places: one) == .foreign)
    }

    @Test("If zeros differ no run of zeros is kept, and they say nothing else")
    func zeros() {
        let zeros: [Range<Int64>] = [100..<150, 300..<350, 500..<550, 720..<760]
        let places = Self.places([Self.run], differing: [100, 500])
        // The place at 300 agrees, and there is none at 720.
        #expect(
            AdoptionVerdict(runs: [Self.run], zeros: zeros, places: places)
                == .kept([0..<100, 150..<300, 350..<500, 550..<720, 760..<1010]))
        let right = Self.places([Self.run], differing: [])
        #expect(AdoptionVerdict(runs: [Self.run], zeros: zeros, places: right) == .kept([Self.run]))
    }

    @Test("A run of zeros in which one of many places differs is not kept")
    func zerosWithContent() {
        let places = Self.places([Self.run], differing: [600])
        #expect(AdoptionVerdict(runs: [Self.run], zeros: [300..<950], places: places) == .kept([0..<300, 950..<1010]))
    }

    @Test("A place that differs and is only partly of zeros drops them too, and zeros that agree end no margin")
    func zerosInPart() {
        // The places at 300, 400 and 600 agree, but are zeros.
        let zeros: [Range<Int64>] = [300..<505, 600..<690]
        let places = Self.places([Self.run], differing: [500])
        #expect(AdoptionVerdict(runs: [Self.run], zeros: zeros, places: places) == .kept([0..<110, 800..<1010]))
    }

    @Test("No byte of a place that differs is kept", arguments: UInt64(0)..<500)
    func invariant(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        func ranges(in bounds: Range<Int64>, gap: Int64, length: Int64) -> [Range<Int64>] {
            var ranges: [Range<Int64>] = []
            var offset = bounds.lowerBound + Int64.random(in: 0...gap, using: &generator)
            while offset < bounds.upperBound {
                let end = min(offset + .random(in: 1...length, using: &generator), bounds.upperBound)
                ranges.append(offset..<end)
                offset = end + .random(in: 1...gap, using: &generator)
            }
            return ranges
        }
        let runs = ranges(in: 0..<4000, gap: 100, length: 2000)
        let zeros = runs.flatMap { ranges(in: $0, gap: 300, length: 300) }
        let unstated = runs.filter { _ in Bool.random(using: &generator) }
        let share = Int.random(in: 2...20, using: &generator)
        let places = runs.flatMap { ranges(in: $0, gap: 40, length: 20) }
            .map { AdoptionVerdict.Place($0, agrees: .random(in: 0..<share, using: &generator) > 0) }
        guard case .kept(let kept) = AdoptionVerdict(runs: runs, zeros: zeros, unstated: unstated, places: places)
        else { return }
        for place in places where !place.agrees {
            #expect(!kept.contains { $0.overlaps(place.range) }, "\(place.range)")
        }
        // Nothing is kept that is not there.
        #expect(kept.allSatisfy { range in runs.contains { $0.clamped(to: range) == range } })
    }

    @Test("Bytes that the control file does not state do not make a file foreign")
    func unstated() {
        let differing = Set(stride(from: Int64(500), through: 1000, by: 100))
        let places = Self.places([Self.run], differing: differing)
        #expect(AdoptionVerdict(runs: [Self.run], places: places) == .foreign)
        #expect(
            AdoptionVerdict(runs: [Self.run], unstated: [500..<1010], places: places) == .kept([0..<310]))
    }
}
