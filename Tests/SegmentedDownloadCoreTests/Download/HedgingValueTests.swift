import Testing

@testable import SegmentedDownloadCore

/// The decisions alone; `HedgingTests` has them in a download.
@Suite("Which bytes are requested twice")
struct HedgingValueTests {
    private static let length: Int64 = 100_000_000

    /// A request costs 0.2 s, and finished connections brought 1 MB/s.
    private static let path: PathStatistics = {
        var path = PathStatistics()
        path.noteHead(cost: 0.2)
        path.noteRate(1e6)
        return path
    }()

    private static func segment(_ id: Int, _ length: Int64) -> Segment {
        Segment(id: Segment.ID(id), lowerBound: 0, position: 0, upperBound: length)
    }

    /// The segment to request at 2 s, of connections that were last heard of after so many seconds and have so many
    /// bytes left.
    private static func latest(_ hedging: Hedging = Hedging(), _ late: (silent: Double, left: Int64)...) -> Segment.ID?
    {
        let now = Duration.seconds(2)
        let candidates = late.enumerated().map { id, late in
            var lease = Lease.sample(id)
            lease.progressAt = now - .seconds(late.silent)
            return (lease: lease, segment: Self.segment(id, late.left))
        }
        return hedging.latest(
            among: candidates, leases: candidates.map(\.lease), path: Self.path, completeLength: Self.length, now: now)?
            .id
    }

    @Test("No more than a fiftieth of the file is requested twice, and each request counts as 16 KiB more")
    func budget() {
        var hedging = Hedging()
        let most = Self.length / 50 - Hedging.requestLength
        #expect(hedging.allows(most, of: Self.length) && !hedging.allows(most + 1, of: Self.length))
        #expect(!hedging.allows(0, of: nil))
        hedging.begin(1000)
        #expect(hedging.length == 1000 + Hedging.requestLength)
        let rest = most - 1000 - Hedging.requestLength
        #expect(hedging.allows(rest, of: Self.length) && !hedging.allows(rest + 1, of: Self.length))
        hedging.takeOver(1000)
        #expect(hedging.length == Hedging.requestLength)
    }

    @Test("A second passes after an unsuccessful one")
    func pause() {
        var hedging = Hedging()
        #expect(hedging.isDue(now: .zero))
        hedging.postpone(now: .seconds(3))
        #expect(!hedging.isDue(now: .milliseconds(3999)) && hedging.isDue(now: .seconds(4)))
    }

    @Test("Of several segments the one is requested that saves the most time, if waiting takes half again as long")
    func latest() {
        #expect(Self.latest() == nil)
        // 0.3 s anew, times 1.5.
        #expect(Self.latest(Hedging(), (0.44, 100_000)) == nil)
        #expect(Self.latest(Hedging(), (0.46, 100_000)) == Segment.ID(0))
        #expect(Self.latest(Hedging(), (1, 100_000), (1.5, 100_000)) == Segment.ID(1))
        #expect(Self.latest(Hedging(), (1.5, 100_000), (1.5, 100_000)) == Segment.ID(0))
        #expect(Self.latest(Hedging(), (1.5, 300_000), (1.4, 100_000)) == Segment.ID(1), "the rest counts too")
    }

    @Test("A segment that is too long for what is left of the fiftieth is passed over")
    func affordable() {
        var hedging = Hedging()
        hedging.begin(Self.length / 50 - 2 * Hedging.requestLength - 100_000)
        #expect(Self.latest(hedging, (2, 100_001), (1, 100_000)) == Segment.ID(1))
        hedging.begin(0)
        #expect(Self.latest(hedging, (2, 100_001), (1, 100_000)) == nil)
    }

    @Test("Without a rate to expect nothing is requested twice")
    func unknown() {
        let candidate = (lease: Lease.sample(0), segment: Self.segment(0, 100_000))
        let chosen = Hedging().latest(
            among: [candidate], leases: [candidate.lease], path: PathStatistics(), completeLength: Self.length,
            now: .seconds(9))
        #expect(chosen == nil)
        #expect(
            !Hedging.isLate(candidate.lease, 100_000, leases: [], path: PathStatistics(), now: .seconds(9)))
    }

    @Test("Once a connection is silent for long, it is assumed to stay silent for as long again")
    func timeLeft() {
        let left = { (lease: Lease, bytes: Int64, now: Duration) in
            Hedging.timeLeft(lease, bytes, path: Self.path, now: now)
        }
        var asked = Lease.sample(0)
        asked.phase = .requested
        #expect(left(asked, 1000, .milliseconds(790)) == nil && left(asked, 1000, .seconds(1)) == 1)
        let silent = Lease.sample(0)
        #expect(left(silent, 1000, .milliseconds(390)) == nil && left(silent, 1000, .milliseconds(500)) == 0.5)
        // With a rate, from four requests and a quarter of a second on.
        var running = Lease.sample(0, rate: 1000, now: .seconds(2))
        running.progressAt = .seconds(2)
        #expect(left(running, 500, .seconds(2)) == 0.5)
        running.progressAt = .seconds(1)
        #expect(left(running, 500, .seconds(2)) == 1 && left(running, 5000, .seconds(2)) == 5)
        var slow = Lease.sample(0, rate: 0, now: .seconds(2))
        slow.progressAt = .seconds(2)
        #expect(left(slow, 500, .seconds(2)) == nil, "it is silent, not slow")
        var cold = Lease.sample(0, startedAt: .seconds(1), rate: 1000, now: .seconds(2))
        cold.progressAt = .seconds(2)
        #expect(left(cold, 500, .seconds(2)) == nil)
    }

    @Test("A hedge takes over only if it delivers the rest sooner by half a tick")
    func isLate() {
        let isLate = { (rate: Double, bytes: Int64) in
            var lease = Lease.sample(0, rate: rate, now: .seconds(2))
            lease.progressAt = .seconds(2)
            return Hedging.isLate(lease, bytes, leases: [], path: Self.path, now: .seconds(2))
        }
        #expect(isLate(5e5, 100_000) && !isLate(2e6, 100_000))
        #expect(!isLate(4e5, 10_000), "it ends within half a tick")
        var ending = Lease.sample(0)
        #expect(Hedging.isLate(ending, 100_000, leases: [], path: Self.path, now: .seconds(2)))
        ending.phase = .ending
        #expect(!Hedging.isLate(ending, 100_000, leases: [], path: Self.path, now: .seconds(2)))
    }
}
