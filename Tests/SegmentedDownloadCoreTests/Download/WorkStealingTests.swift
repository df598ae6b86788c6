import Testing

@testable import SegmentedDownloadCore

@Suite("Taking work from other connections")
struct WorkStealingTests {
    private static let splitter = SegmentSplitter(planner: SegmentPlanner(splitLengthMinimum: 1 << 20))

    private static func candidate(_ id: Int, _ range: Range<Int64>, _ rate: Double) -> SegmentSplitter.Candidate {
        .init(lease: LeaseID(id), remaining: range, rate: rate)
    }

    /// Finished connections brought 2 MB/s; a request costs 0.05 s.
    private static var path: PathStatistics {
        var path = PathStatistics()
        path.noteHead(cost: 0.05)
        path.noteRate(2e6)
        return path
    }

    private static func proposal(
        _ stealing: inout WorkStealing, _ candidates: [SegmentSplitter.Candidate], now: Duration
    ) -> SegmentSplitter.Proposal? {
        stealing.proposal(among: candidates, splitter: Self.splitter, path: Self.path, free: 1, now: now)
    }

    // MARK: When

    @Test("If nothing can be taken, the next attempt is 100 ms later")
    func spacing() {
        var stealing = WorkStealing(beganAt: .zero)
        #expect(stealing.isDue(now: .zero))
        let proposal = Self.proposal(&stealing, [], now: .seconds(1))
        #expect(proposal == nil)
        #expect(!stealing.isDue(now: .milliseconds(1099)) && stealing.isDue(now: .milliseconds(1100)))
        stealing.postpone(now: .seconds(2))
        #expect(!stealing.isDue(now: .milliseconds(2099)) && stealing.isDue(now: .milliseconds(2100)))
    }

    @Test("After work was taken, the next connection may take some at once")
    func split() {
        var stealing = WorkStealing(beganAt: .zero)
        let candidates = [Self.candidate(0, 0..<64 << 20, 1e7), Self.candidate(1, 64 << 20..<80 << 20, 1e7)]
        let proposal = Self.proposal(&stealing, candidates, now: .seconds(1))
        #expect(proposal == .split(LeaseID(0), at: 32 << 20))
        #expect(stealing.isDue(now: .seconds(1)) && stealing.replacements == 0)
    }

    @Test("A slow connection is replaced a second after the beginning, and the next one two seconds after that")
    func replace() {
        let straggler = [Self.candidate(0, 0..<1 << 20, 10_000)]
        var stealing = WorkStealing(beganAt: .seconds(1))
        let early = Self.proposal(&stealing, straggler, now: .milliseconds(1999))
        #expect(early == nil && stealing.replacements == 0)
        let proposal = Self.proposal(&stealing, straggler, now: .seconds(2))
        #expect(proposal == .replace(LeaseID(0)) && stealing.replacements == 1 && stealing.replaceAt == .seconds(4))
        #expect(!stealing.isDue(now: .milliseconds(2099)) && stealing.isDue(now: .milliseconds(2100)))
        let again = Self.proposal(&stealing, straggler, now: .milliseconds(3999))
        let last = Self.proposal(&stealing, straggler, now: .seconds(4))
        #expect(again == nil && last == .replace(LeaseID(0)))
    }

    @Test("The interval between replacements doubles up to 64 seconds")
    func intervals() {
        var stealing = WorkStealing(beganAt: .zero)
        let intervals = (0..<8).map { _ in
            stealing.noteReplacement(now: .seconds(10))
            return stealing.replaceAt - .seconds(10)
        }
        #expect(intervals == [2, 4, 8, 16, 32, 64, 64, 64].map { Duration.seconds($0) })
    }

    // MARK: Lengths

    @Test("A piece is worth a second of a connection or four requests, within the settings' limits")
    func planner() {
        let settings = DownloadSettings()
        for (rates, cost, length) in [
            ([], 0, 1 << 20), ([0], 0, 1 << 20), ([], 0.089, 1 << 20), ([], 0.09, 1 << 18), ([100_000], 0, 100_000),
            ([1, 100_000, 1e9], 0.25, 100_000), ([100_000], 0.5, 200_000), ([1], 0, 16 << 10), ([1e9], 0, 1 << 20),
        ] as [([Double], Double, Int64)] {
            let planner = WorkStealing.planner(settings, rates: rates, requestCost: cost)
            #expect(planner.splitLengthMinimum == length, "\(rates), \(cost)")
        }
        var fixed = settings
        fixed.stealLengthMinimum = fixed.planLengthMinimum
        #expect(WorkStealing.planner(fixed, rates: [1], requestCost: 0).splitLengthMinimum == 1 << 20)
        #expect(WorkStealing.planner(fixed, rates: [], requestCost: 1).splitLengthMinimum == 1 << 20)
    }

    @Test("A file shorter than 128 of the smallest pieces is not cut that small")
    func brief() {
        let planner = Self.splitter.planner
        for (length, least) in [(2 << 20, 16 << 10), ((2 << 20) - 1, 1 << 20), (nil, 1 << 20)] as [(Int64?, Int64)] {
            let splitter = WorkStealing.splitter(DownloadSettings(), planner: planner, completeLength: length)
            #expect(splitter.planner == planner && splitter.stealLengthMinimum == least)
        }
    }

    // MARK: Laggards

    /// The connection to replace at 2 s among three that bring 1 MB/s and, with the number 1, one that brings less.
    private static func laggard(
        _ rate: Double = 1e5, startedAt: Duration = .zero, left: Int64? = 10_000_000, beganAt: Duration = .zero,
        stallTimeout: Duration = .seconds(10), _ change: (inout [Lease]) -> Void = { _ in }
    ) -> LeaseID? {
        let now = Duration.seconds(2)
        var leases = [
            Lease.sample(0, rate: 1e6, now: now), .sample(1, startedAt: startedAt, rate: rate, now: now),
            .sample(2, rate: 1e6, now: now), .sample(3, rate: 1e6, now: now),
        ]
        change(&leases)
        return WorkStealing(beganAt: beganAt).laggard(among: leases, stallTimeout: stallTimeout, now: now) { lease in
            lease.id == LeaseID(1) ? left : 10_000_000
        }
    }

    @Test("A connection is replaced if it is more than five times slower than the median and has two seconds left")
    func laggard() {
        #expect(Self.laggard() == LeaseID(1))
        #expect(Self.laggard(2e5) == nil)
        #expect(Self.laggard(left: 200_001) == LeaseID(1) && Self.laggard(left: 200_000) == nil)
        #expect(Self.laggard(left: nil) == nil, "its segment is gone")
    }

    @Test("No connection is replaced too early, while it stalls, or after a rate limit held it back")
    func spared() {
        #expect(Self.laggard(startedAt: .milliseconds(999)) == LeaseID(1))
        #expect(Self.laggard(startedAt: .seconds(1)) == nil)
        #expect(Self.laggard(beganAt: .seconds(1)) == LeaseID(1))
        #expect(Self.laggard(beganAt: .seconds(1) + .nanoseconds(1)) == nil)
        #expect(Self.laggard(stallTimeout: .seconds(2) + .nanoseconds(1)) == LeaseID(1))
        #expect(Self.laggard(stallTimeout: .seconds(2)) == nil)
        #expect(Self.laggard { $0[1].heldAt = .zero } == LeaseID(1))
        #expect(Self.laggard { $0[1].heldAt = .nanoseconds(1) } == nil)
    }

    @Test("The slowest connection is replaced, the first of several, and only if there is another to compare with")
    func slowest() {
        #expect(Self.laggard { $0[3] = .sample(3, rate: 5e4, now: .seconds(2)) } == LeaseID(3))
        #expect(Self.laggard { $0[0] = .sample(4, rate: 1e5, now: .seconds(2)) } == LeaseID(1))
        #expect(Self.laggard { $0 = [$0[0], $0[1]] } == LeaseID(1))
        #expect(Self.laggard { $0 = [$0[1]] } == nil)
    }

    @Test("Only the rates of connections that have settled decide the length of a piece")
    func settled() throws {
        var fetching = Fetching.sample(pieces: 2, connections: 2)
        let orders = try (0..<2).map { _ in try fetching.asked() }
        for order in orders { fetching.accept(order.lease, at: .zero) }
        fetching.traffic.path.noteHead(cost: 1)
        // The rate is known after 0.25 s, but connections on this path need seconds to reach their speed.
        fetching.bring(orders[0].lease, to: 30_000, at: .milliseconds(300))
        let young = fetching.planner(now: .milliseconds(300)).splitLengthMinimum
        let none = WorkStealing.planner(fetching.settings, rates: [], requestCost: fetching.traffic.path.requestCost)
        #expect(young == none.splitLengthMinimum)
        fetching.bring(orders[0].lease, to: 6_000_000, at: .seconds(60))
        #expect(fetching.planner(now: .seconds(60)).splitLengthMinimum != young)
    }
}
