import SegmentedDownloadCore
import Testing

@Suite("Segment splitter")
struct SegmentSplitterTests {
    private static let splitter = SegmentSplitter(planner: SegmentPlanner(splitLengthMinimum: 1 << 20))
    private static let megabyte = 1_000_000.0

    private static func candidate(_ lease: Int, _ mebibytes: Range<Int64>, _ rate: Double?) -> SegmentSplitter.Candidate
    {
        .init(lease: LeaseID(lease), remaining: (mebibytes.lowerBound << 20)..<(mebibytes.upperBound << 20), rate: rate)
    }

    private static func proposal(
        _ candidates: [SegmentSplitter.Candidate], cost: Double = 0.05
    ) -> SegmentSplitter.Proposal? {
        Self.splitter.proposal(among: candidates, requestCost: cost)
    }

    @Test("A connection far faster than all others keeps all but the smallest piece, at any length")
    func fastest() {
        let fast = SegmentSplitter.Candidate(lease: LeaseID(0), remaining: 0..<Int64.max, rate: 1e18)
        let slow = (1...2).map { Self.candidate($0, 0..<1, 1) }
        let kept = Int64.max - Self.splitter.planner.splitLengthMinimum
        #expect(Self.proposal([fast] + slow) == .split(LeaseID(0), at: kept))
    }

    @Test("The victim has the most time left, not the most bytes")
    func mostTime() {
        let candidates = [
            Self.candidate(0, 0..<100, 50 * Self.megabyte), Self.candidate(1, 100..<140, 10 * Self.megabyte),
        ]
        guard case .split(LeaseID(1), _, _)? = Self.proposal(candidates) else {
            Issue.record("\(String(describing: Self.proposal(candidates)))")
            return
        }
    }

    @Test("The last active connection is compared with completed ones: if it is far slower, it is replaced")
    func lastStraggler() {
        let straggler = [Self.candidate(0, 0..<1, 10_000)]
        #expect(Self.proposal(straggler) == nil)
        let before = [2 * Self.megabyte, 2 * Self.megabyte]
        #expect(
            Self.splitter.proposal(among: straggler, ratesBefore: before, requestCost: 0.05) == .replace(LeaseID(0)))
    }

    @Test("With equal rates the rest is cut in the middle, at a block")
    func middle() {
        let rate = 10 * Self.megabyte
        let candidates = [Self.candidate(0, 0..<64, rate), Self.candidate(1, 64..<80, rate)]
        #expect(Self.proposal(candidates) == .split(LeaseID(0), at: 32 << 20))
    }

    @Test("The cut is in proportion to the rates, so that both parts complete together")
    func proportion() {
        // The new connection is expected to reach 30 MB/s, the victim has 10: it keeps a quarter.
        let candidates = [
            Self.candidate(0, 0..<80, 10 * Self.megabyte), Self.candidate(1, 80..<90, 30 * Self.megabyte),
            Self.candidate(2, 90..<100, 30 * Self.megabyte),
        ]
        #expect(Self.proposal(candidates) == .split(LeaseID(0), at: 20 << 20))
    }

    @Test("Neither piece is shorter than the minimum", arguments: UInt64(0)..<300)
    func minimum(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let candidates = (0..<Int.random(in: 1...6, using: &generator)).map { lease in
            let lower = Int64(lease) << 32
            let length = Int64.random(in: 0...(50 << 20), using: &generator)
            let rate =
                Int.random(in: 0..<5, using: &generator) == 0 ? nil : Double.random(in: 0...5e7, using: &generator)
            return SegmentSplitter.Candidate(lease: LeaseID(lease), remaining: lower..<(lower + length), rate: rate)
        }
        guard case .split(let victim, let offset, _)? = Self.proposal(candidates) else { return }
        let remaining = candidates[victim.rawValue].remaining
        #expect(offset - remaining.lowerBound >= 1 << 20, "replay with \(seed)")
        #expect(remaining.upperBound - offset >= 1 << 20, "replay with \(seed)")
    }

    @Test("A victim too slow to keep even a small piece is replaced")
    func replaced() {
        let candidates = [Self.candidate(0, 0..<2, 10_000), Self.candidate(1, 10..<11, 20 * Self.megabyte)]
        #expect(Self.proposal(candidates) == .replace(LeaseID(0)))
    }

    @Test("Nothing is proposed if waiting is as good")
    func notWorthIt() {
        #expect(Self.proposal([]) == nil)
        // 20 ms left.
        #expect(Self.proposal([Self.candidate(0, 0..<2, 100 * Self.megabyte)]) == nil)
        // A second left, and a request takes as long.
        #expect(Self.proposal([Self.candidate(0, 0..<10, 10 * Self.megabyte)], cost: 1) == nil)
        // Too short to split, and not slow enough to replace.
        let rate = 1 * Self.megabyte
        #expect(Self.proposal([Self.candidate(0, 0..<1, rate), Self.candidate(1, 5..<6, rate)]) == nil)
    }

    @Test("A lone connection is never replaced")
    func lone() {
        #expect(Self.proposal([Self.candidate(0, 0..<1, 100)]) == nil)
    }

    @Test("A connection of unknown rate may be split, and is not replaced")
    func unknownRate() {
        #expect(Self.proposal([Self.candidate(0, 0..<64, nil)]) == .split(LeaseID(0), at: 32 << 20))
        #expect(Self.proposal([Self.candidate(0, 0..<1, nil), Self.candidate(1, 5..<6, 1e9)]) == nil)
    }

    @Test("Of two equal victims the same one is chosen every time")
    func deterministic() {
        let candidates = [Self.candidate(1, 64..<128, 1e7), Self.candidate(0, 0..<64, 1e7)]
        #expect(Self.proposal(candidates) == Self.proposal(candidates.reversed()))
    }

    @Test("Several free connections are divided among the victims by the time left")
    func shared() {
        let rate = 10 * Self.megabyte
        let candidates = [Self.candidate(0, 0..<300, rate), Self.candidate(1, 300..<400, rate)]
        // Three of four take from the victim with three quarters of the rest, which keeps as much as each of them.
        #expect(
            Self.splitter.proposal(among: candidates, requestCost: 0.05, free: 4)
                == .split(LeaseID(0), at: 75 << 20, into: 3))
        let little = [Self.candidate(0, 0..<4, 0.5 * Self.megabyte)]
        #expect(
            Self.splitter.proposal(among: little, requestCost: 0.05, free: 30)
                == .split(LeaseID(0), at: 1 << 20, into: 3), "no piece is shorter than the minimum")
    }

    @Test("A minimum without limit never splits a file")
    func neverCut() {
        let splitter = SegmentSplitter(planner: SegmentPlanner(splitLengthMinimum: .max))
        #expect(splitter.proposal(among: [Self.candidate(0, 0..<64, nil)], requestCost: 0) == nil)
    }
}
