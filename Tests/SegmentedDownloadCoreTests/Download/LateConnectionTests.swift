import Testing

@testable import SegmentedDownloadCore

/// From when on a connection counts as late, to the tick.
@Suite("Late connections")
struct LateConnectionTests {
    private static let length: Int64 = 64 << 20
    private static func isOpen(_ host: String) -> Bool { true }

    /// Two connections may be open and one is, which has 100,000 bytes to bring; a request costs 0.2 s, and the last ones brought
    /// 1 MB/s.
    private static func alone(isAnswered: Bool) throws -> Fetching {
        var fetching = Fetching.sample(
            length: Self.length, missing: [Self.length - 100_000..<Self.length], connections: 2)
        let order = try fetching.asked()
        if isAnswered { fetching.accept(order.lease, at: .zero) }
        fetching.traffic.path.requestCost = 0.2
        fetching.traffic.path.ratesBefore = [1e6]
        return fetching
    }

    /// Whether another connection would ask for the same at some time, in milliseconds.
    private static func isHedged(_ fetching: Fetching, at milliseconds: Int) -> Bool {
        var trial = fetching
        return trial.nextHedge(now: .milliseconds(milliseconds), isOpen: Self.isOpen) != nil
    }

    @Test("One that brings nothing is asked for again after the cost of two requests, and a half more than that takes")
    func silent() throws {
        let fetching = try Self.alone(isAnswered: true)
        // 0.3 s anew, times 1.5.
        #expect(!Self.isHedged(fetching, at: 440) && Self.isHedged(fetching, at: 460))
        var slower = fetching
        slower.traffic.path.requestCost = 0.5
        #expect(!Self.isHedged(slower, at: 990) && Self.isHedged(slower, at: 1010))
    }

    @Test("One that has no answer is asked for again after the cost of four requests")
    func unanswered() throws {
        let fetching = try Self.alone(isAnswered: false)
        #expect(!Self.isHedged(fetching, at: 790) && Self.isHedged(fetching, at: 810))
    }

    @Test("Nothing is asked for again while something is settled first, or where no more connections are wanted")
    func notNow() throws {
        let fetching = try Self.alone(isAnswered: true)
        let changes: [(inout Fetching) -> Void] = [
            { $0.outcome = .complete }, { $0.withdrawals.add(.first) }, { $0.withdrawals.add([0..<1]) },
            { $0.mode = .stream }, { $0.proving.proof = .awaited }, { $0.mode = .segmented(rangeRefusals: 1) },
            { $0.rebalancing.narrowing = .split(into: 1) },
            { $0.rebalancing.narrowing = .takeover(by: LeaseID(9)) },
            { $0.rebalancing.hedging.postpone(now: .seconds(1)) },
            { $0.traffic.controller.update(.exactly(1)) }, { $0.traffic.path.ratesBefore = [] },
            { $0.traffic.path.ratesBefore = [0] },
            { $0.rebalancing.hedging.begin(Self.length / 50 - 100_000 - 2 * Hedging.requestLength + 1) },
            { $0.leases[0].yieldsBy = .seconds(9) }, { $0.leases[0].phase = .ending },
            { $0.leases[0].heldAt = .milliseconds(1) },
            { _ = $0.revise(withdrawing: [], remarks: false) },
        ]
        #expect(Self.isHedged(fetching, at: 1000))
        for (number, change) in changes.enumerated() {
            var changed = fetching
            change(&changed)
            #expect(!Self.isHedged(changed, at: 1000), "change \(number)")
        }
        var enough = fetching
        enough.rebalancing.hedging.begin(Self.length / 50 - 100_000 - 2 * Hedging.requestLength)
        #expect(Self.isHedged(enough, at: 1000))
        enough.rebalancing.hedging.postpone(now: .zero)
        #expect(Self.isHedged(enough, at: 1000))
    }

    @Test("What was asked for twice is counted with what a request costs, and not asked for a third time")
    func counted() throws {
        var fetching = try Self.alone(isAnswered: true)
        fetching.traffic.controller.update(.exactly(3))
        let hedge = fetching.nextHedge(now: .seconds(1), isOpen: Self.isOpen)
        let order = try #require(hedge)
        #expect(fetching.rebalancing.hedging.length == 100_000 + Hedging.requestLength)
        #expect(order.writesFrom == Self.length - 100_000 && order.limit == Self.length)
        #expect(order.hedged == fetching.leases[0].order.segment && fetching.leases.count == 2)
        #expect(!Self.isHedged(fetching, at: 2000))
    }

    // MARK: Silent and slow ones

    /// Eight connections, all asked at once; those with a number up to `answered` were answered after 0.1 s.
    private static func asked(answered: Int) -> Fetching {
        var fetching = Fetching.sample(length: Self.length, pieces: 8, connections: 8)
        while fetching.ask() != nil {}
        for lease in 0..<answered { fetching.accept(LeaseID(lease), at: .milliseconds(100)) }
        return fetching
    }

    @Test("One that has no answer a second after it was asked is replaced where others have theirs")
    func replacesSilent() {
        var fetching = Self.asked(answered: 7)
        #expect(fetching.tick(now: .seconds(1)).isEmpty)
        #expect(fetching.tick(now: .milliseconds(1001)) == [.revoke(LeaseID(7))])
        #expect(fetching.traffic.silences == 1 && fetching.lease(LeaseID(7))?.revocation == .silent)
        var alone = Self.asked(answered: 0)
        #expect(alone.tick(now: .seconds(9)).isEmpty)
    }

    @Test("Each time that those asked anew are silent, too, the next ones are waited for twice as long")
    func doublesPatience() {
        var fetching = Self.asked(answered: 7)
        for _ in 0..<2 { fetching.traffic.noteSilence() }
        #expect(fetching.tick(now: .seconds(4)).isEmpty)
        #expect(fetching.tick(now: .milliseconds(4001)) == [.revoke(LeaseID(7))])
        #expect(fetching.traffic.silences == 3)
    }

    @Test("A head that took long makes for twice that patience")
    func slowHeads() {
        var fetching = Self.asked(answered: 7)
        fetching.traffic.path.slowestHead = 1.5
        #expect(fetching.tick(now: .seconds(3)).isEmpty)
        #expect(fetching.tick(now: .milliseconds(3001)) == [.revoke(LeaseID(7))])
    }

    @Test("Once all have their answers the count of silent ones begins anew")
    func resetsSilences() {
        var fetching = Self.asked(answered: 6)
        for _ in 0..<3 { fetching.traffic.noteSilence() }
        fetching.accept(LeaseID(6), at: .milliseconds(200))
        #expect(fetching.traffic.silences == 3)
        fetching.accept(LeaseID(7), at: .milliseconds(200))
        #expect(fetching.traffic.silences == 0)
    }

    @Test("A head in time is waited for, and one that is late, or a body that stalls, is given up")
    func timeouts() {
        var fetching = Self.asked(answered: 0)
        #expect(fetching.tick(now: .seconds(30)).isEmpty)
        #expect(fetching.tick(now: .seconds(30) + .nanoseconds(1)).count == 8)
        #expect(fetching.leases.allSatisfy { $0.revocation == .headTooSlow(.seconds(30)) })
        var receiving = Self.asked(answered: 8)
        let stalled = Duration.milliseconds(100) + receiving.settings.stallTimeout
        #expect(receiving.tick(now: stalled).isEmpty)
        #expect(receiving.tick(now: stalled + .nanoseconds(1)).count == 8)
        #expect(receiving.leases.allSatisfy { $0.revocation == .stalled })
    }

    @Test("A connection is cold for twice what a request costs, and a quarter of a second")
    func cold() {
        var fetching = Self.asked(answered: 8)
        fetching.traffic.path.requestCost = 0.1
        #expect(fetching.traffic.path.isCold(fetching.leases[0], now: .milliseconds(449)))
        #expect(!fetching.traffic.path.isCold(fetching.leases[0], now: .milliseconds(451)))
        #expect(fetching.traffic.path.isCold(fetching.leases[0], costs: 4, now: .milliseconds(649)))
        #expect(!fetching.traffic.path.isCold(fetching.leases[0], costs: 4, now: .milliseconds(651)))
    }

    @Test("The slowest of several is replaced where it is five times slower than the middle one and has long to go")
    func laggard() {
        var fetching = Self.asked(answered: 8)
        for lease in 0..<8 {
            let start = Int64(lease) * (Self.length / 8)
            fetching.bring(LeaseID(lease), to: start + (lease == 3 ? 190_000 : 1_000_000), at: .milliseconds(1100))
        }
        var slower = fetching
        #expect(slower.tick(now: .milliseconds(1100)) == [.revoke(LeaseID(3))])
        #expect(slower.rebalancing.stealing.replacements == 1)
        // Within the next patience, which is twice as long, no other is.
        #expect(slower.rebalancing.stealing.replaceAt == .milliseconds(1100) + WorkStealing.replacementPatience * 2)
        // Not before a second has passed, nor one that a rate limit has just held back.
        var early = fetching
        early.rebalancing.stealing = WorkStealing(beganAt: .milliseconds(101))
        #expect(early.tick(now: .milliseconds(1100)).isEmpty)
        var held = fetching
        held.leases[3].heldAt = .milliseconds(500)
        #expect(held.tick(now: .milliseconds(1100)).isEmpty)
    }

    @Test("One whose rate is nothing is silent, not slow: it is late only once it was silent for long")
    func noRate() throws {
        var fetching = try Self.alone(isAnswered: true)
        let position = fetching.leases[0].position
        fetching.leases[0].meter.record(position, at: .seconds(1))
        #expect(fetching.leases[0].meter.rate == 0)
        fetching.leases[0].progressAt = .seconds(1)
        #expect(!Self.isHedged(fetching, at: 1200) && Self.isHedged(fetching, at: 1500))
    }

    @Test("Of several late ones the one is asked for again by which most time is saved")
    func latest() throws {
        for late in 0...1 {
            var fetching = Fetching.sample(
                length: Self.length, missing: [0..<100_000, Self.length - 100_000..<Self.length], connections: 3)
            #expect(fetching.openAll().count == 2)
            fetching.traffic.path.requestCost = 0.1
            fetching.traffic.path.ratesBefore = [1e6]
            fetching.leases[1 - late].progressAt = .seconds(1)
            let hedge = fetching.nextHedge(now: .seconds(3), isOpen: Self.isOpen)
            #expect(hedge?.hedged == fetching.leases[late].order.segment)
        }
    }

    @Test("What newcomers had brought at the first one's age is averaged over those that fetch pieces")
    func newcomers() throws {
        var fetching = Fetching.sample(length: Self.length, pieces: 4, connections: 4) { $0.segments = .automatic }
        #expect(fetching.observation.newcomer == nil)
        fetching.traffic.controller.begin(requestCost: 0.01, now: .zero)
        fetching.traffic.controller.observe(.init(bytes: 100_000, receiving: 1), now: .milliseconds(100))
        #expect(fetching.traffic.controller.aloneTime == .milliseconds(100) && fetching.traffic.controller.target == 4)
        for (lease, bytes) in [(0, 1000), (1, 3000)] as [(Int, Int64)] {
            let order = try fetching.asked(at: .seconds(1))
            #expect(order.lease == LeaseID(lease))
            fetching.accept(order.lease, at: .seconds(1))
            fetching.bring(order.lease, to: order.writesFrom + bytes, at: .milliseconds(1100))
        }
        #expect(fetching.observation.newcomer == 2000)
        #expect(fetching.observation.receiving == 2 && fetching.observation.bytes == 4000)
        let sample = fetching.sample(0..<10, from: .first, now: .seconds(1))
        fetching.leases[2].phase = .receiving
        fetching.leases[2].headAt = .seconds(1)
        fetching.leases[2].meter.record(sample.writesFrom + 9000, at: .milliseconds(1100))
        #expect(fetching.observation.newcomer == 2000)
    }

    @Test("One that was not measured yet is not replaced for being slow")
    func unmeasured() {
        var fetching = Self.asked(answered: 7)
        fetching.accept(LeaseID(7), at: .seconds(1))
        for lease in 0..<7 {
            let start = Int64(lease) * (Self.length / 8)
            fetching.bring(LeaseID(lease), to: start + 1_000_000, at: .milliseconds(1100))
        }
        #expect(fetching.tick(now: .milliseconds(1100)).isEmpty)
    }

    /// One connection with 600 KB left that has brought 100 KB a second, where two may be open and pieces of 1 MiB are usual.
    private static func slow() throws -> Fetching {
        var fetching = Fetching.sample(
            length: Self.length, missing: [Self.length - 800_000..<Self.length], connections: 2)
        let order = try fetching.asked()
        fetching.accept(order.lease, at: .zero)
        fetching.bring(order.lease, to: Self.length - 600_000, at: .seconds(2))
        return fetching
    }

    @Test("Where connections are slow pieces are cut smaller than usual, as small as is worth a second of one")
    func smallPieces() throws {
        let fetching = try Self.slow()
        var slow = fetching
        let actions = slow.steal(now: .seconds(2))
        #expect(actions.count == 1 && slow.rebalancing.narrowing != nil)
        // What a sample brings says nothing about that, nor one that has just begun.
        for startedAt in [Duration.zero, .milliseconds(1900)] {
            var other = fetching
            other.traffic.controller.update(.exactly(3))
            let sample = other.sample(0..<10, from: .first, now: startedAt)
            let index = try #require(other.leases.firstIndex { $0.id == sample.lease })
            other.leases[index].phase = .receiving
            for step in 0...4 {
                other.leases[index].meter.record(Int64(step) << 28, at: startedAt + .milliseconds(100 * step))
            }
            #expect(!other.steal(now: .seconds(2)).isEmpty)
        }
        var usual = fetching
        usual.context.settings.stealLengthMinimum = usual.settings.planLengthMinimum
        #expect(usual.steal(now: .seconds(2)).isEmpty)
    }

    @Test("Several free connections share what a slow one has left, in pieces smaller than usual")
    func severalSmallPieces() throws {
        var fetching = try Self.slow()
        fetching.traffic.controller.update(.exactly(5))
        let actions = fetching.steal(now: .seconds(2))
        #expect(actions == [.narrow(LeaseID(0), to: Self.length - 480_000)])
        _ = fetching.narrowed(LeaseID(0), to: Self.length - 480_000, now: .seconds(2))
        let starts = [480_000, 360_000, 240_000, 120_000].map { Self.length - $0 }
        #expect(fetching.plan.segments.suffix(4).map(\.lowerBound) == starts)
    }
}
