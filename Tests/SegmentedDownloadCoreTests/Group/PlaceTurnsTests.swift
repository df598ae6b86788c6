import Testing

@testable import SegmentedDownloadCore

@Suite("Turns at the places of a host")
struct PlaceTurnsTests {
    private static let pause: Duration = .seconds(7)

    /// A task that was refused at the first time, and asks again at the second.
    private static func waiting(since: Duration = .zero, until: Duration = .seconds(30)) -> PlaceTurns {
        var turns = PlaceTurns()
        _ = turns.requested(now: since)
        turns.refused(asksAt: until, now: since)
        return turns
    }

    /// A task that is served, while another one waits for a minute unless `waiters` is false.
    private static func served(since: Duration = .zero, waiters: Bool = true) -> PlaceTurns {
        var turns = PlaceTurns()
        _ = turns.requested(now: since)
        turns.accepted(now: since)
        if waiters { _ = Self.notice(&turns, .waiting, until: .seconds(60), now: since) }
        return turns
    }

    /// A task that has offered its place from 10 s to 12 s.
    private static func offering() -> PlaceTurns {
        var turns = Self.served()
        #expect(turns.released(asksAt: .seconds(10), now: .seconds(10)) == .seconds(12))
        return turns
    }

    private static func notice(
        _ turns: inout PlaceTurns, _ kind: HostNotice.Kind, until: Duration, holdsPlaces: Bool = false,
        now: Duration = .zero, seed: UInt64 = 1
    ) -> Duration? {
        var generator = SplitMix64(seed: seed)
        return turns.noticed(
            kind, until: until, holdsPlaces: holdsPlaces, pause: Self.pause, now: now, using: &generator)
    }

    @Test("A task that waits asks within a second of an offer, or at its own time if that is earlier")
    func offered() {
        for seed in UInt64(0)..<50 {
            var turns = Self.waiting()
            let time = Self.notice(&turns, .offer, until: .seconds(12), now: .seconds(10), seed: seed)
            #expect(time.map { $0 >= .seconds(10) && $0 < .seconds(11) } == true, "replay with \(seed)")
            var soon = Self.waiting(until: .seconds(10))
            #expect(Self.notice(&soon, .offer, until: .seconds(12), now: .seconds(10), seed: seed) == .seconds(10))
        }
    }

    @Test("A task to which the host said when to ask takes no offer, nor does one that is served")
    func notOffered() {
        var turns = Self.waiting()
        _ = turns.requested(now: .seconds(30))
        turns.refused(asksAt: nil, now: .seconds(30))
        #expect(Self.notice(&turns, .offer, until: .seconds(32), now: .seconds(30)) == nil)
        var served = Self.served()
        #expect(Self.notice(&served, .offer, until: .seconds(2)) == nil)
        #expect(served.requested(now: .seconds(1)) == nil)
    }

    @Test("The first request after an offer takes it, once, whether the task waited or has just begun")
    func takes() {
        for start in [Self.waiting(), PlaceTurns()] {
            var turns = start
            _ = Self.notice(&turns, .offer, until: .seconds(12), now: .seconds(10))
            #expect(turns.requested(now: .milliseconds(10_500)) == .seconds(12))
            turns.refused(asksAt: .seconds(11), now: .milliseconds(10_600))
            #expect(turns.requested(now: .seconds(11)) == nil)
        }
        var late = Self.waiting()
        _ = Self.notice(&late, .offer, until: .seconds(12), now: .seconds(10))
        #expect(late.requested(now: .seconds(12)) == nil)
    }

    @Test("If another task takes the offer, the task asks at its own time; the end of an earlier offer changes nothing")
    func takenByAnother() {
        var turns = Self.waiting(until: .seconds(30))
        _ = Self.notice(&turns, .offer, until: .seconds(12), now: .seconds(10))
        #expect(Self.notice(&turns, .taken, until: .seconds(9), now: .seconds(10)) == nil)
        #expect(Self.notice(&turns, .taken, until: .milliseconds(12_050), now: .milliseconds(10_100)) == .seconds(30))
        #expect(turns.requested(now: .seconds(11)) == nil, "no offer stands any more")
    }

    @Test("A request on its way is not affected by offers, and the wait goes on if it is refused")
    func asking() {
        var turns = Self.waiting()
        _ = Self.notice(&turns, .offer, until: .seconds(12), now: .seconds(10))
        _ = turns.requested(now: .seconds(10))
        #expect(Self.notice(&turns, .offer, until: .seconds(13), now: .seconds(11)) == nil)
        #expect(Self.notice(&turns, .taken, until: .seconds(13), now: .seconds(11)) == nil)
        turns.refused(asksAt: .seconds(40), now: .seconds(11))
        #expect(Self.notice(&turns, .offer, until: .seconds(15), now: .seconds(13)) != nil)
        _ = turns.requested(now: .seconds(14))
        turns.failed()
        #expect(Self.notice(&turns, .offer, until: .seconds(20), now: .seconds(18)) == nil, "no answer, no wait")
    }

    @Test("A task offers its place after its turn, or if it has no use for it, while another task waits")
    func offers() {
        var turns = Self.served()
        #expect(turns.released(asksAt: .seconds(9), now: .milliseconds(9999)) == nil)
        #expect(turns.released(asksAt: .seconds(12), now: .seconds(10)) == .seconds(12))
        #expect(turns.released(asksAt: .seconds(12), now: .seconds(10)) == nil, "one offer at a time")
        var idle = Self.served()
        #expect(idle.released(asksAt: .seconds(3), now: .seconds(1)) == nil)
        #expect(idle.released(asksAt: .milliseconds(3001), now: .seconds(1)) == .seconds(3))
        var alone = Self.served(waiters: false)
        #expect(alone.released(asksAt: .seconds(60), now: .seconds(20)) == nil)
        var over = Self.served()
        #expect(over.released(asksAt: .seconds(60), now: .seconds(60)) == nil, "the wait of the other is over")
    }

    @Test("The last response of a task frees its place for others, at any time")
    func leaves() {
        var turns = Self.served()
        #expect(turns.left(now: .seconds(1)) == .seconds(3))
        var alone = Self.served(waiters: false)
        #expect(alone.left(now: .seconds(1)) == nil)
        var waiting = Self.waiting()
        #expect(waiting.left(now: .seconds(1)) == nil)
    }

    @Test("A task whose place was taken waits, and is offered others")
    func placeTaken() {
        var turns = Self.offering()
        #expect(Self.notice(&turns, .taken, until: .seconds(15), now: .seconds(11)) == nil, "another offer")
        #expect(Self.notice(&turns, .taken, until: .seconds(12), now: .seconds(11)) == .seconds(11) + Self.pause)
        #expect(Self.notice(&turns, .offer, until: .seconds(14), now: .seconds(12)).map { $0 < .seconds(13) } == true)
    }

    @Test(
        "A task with other connections at the host keeps them when a place is taken, and offers one more a turn later")
    func placeTakenOfSeveral() {
        var turns = Self.offering()
        #expect(turns.requested(now: .seconds(11)) == nil)
        turns.accepted(now: .seconds(11))
        #expect(
            Self.notice(&turns, .taken, until: .seconds(12), holdsPlaces: true, now: .seconds(11))
                == .seconds(11) + Self.pause)
        #expect(turns.released(asksAt: .zero, now: .seconds(20)) == nil)
        #expect(turns.released(asksAt: .zero, now: .seconds(21)) == .seconds(23))
    }

    @Test("After an offer that no task took, a new turn begins; a notice that it was taken comes too late")
    func notTaken() {
        var turns = Self.offering()
        #expect(turns.requested(now: .seconds(12)) == nil)
        #expect(Self.notice(&turns, .taken, until: .seconds(12), now: .seconds(12)) == nil)
        turns.accepted(now: .seconds(12))
        #expect(turns.released(asksAt: .zero, now: .seconds(21)) == nil)
        #expect(turns.released(asksAt: .zero, now: .seconds(22)) == .seconds(24))
    }

    @Test("Of two tasks that wait, the one that has waited longer is more often the first")
    func order() {
        let first = (UInt64(0)..<200).count { seed in
            var (longer, shorter) = (Self.waiting(), Self.waiting(since: .seconds(30)))
            longer.refused(asksAt: .seconds(90), now: .seconds(25))
            shorter.refused(asksAt: .seconds(90), now: .seconds(31))
            let times = [
                Self.notice(&longer, .offer, until: .seconds(33), now: .seconds(31), seed: seed),
                Self.notice(&shorter, .offer, until: .seconds(33), now: .seconds(31), seed: ~seed),
            ].compactMap { $0 }
            return times.count == 2 && times[0] < times[1]
        }
        #expect(first > 150)
    }
}
