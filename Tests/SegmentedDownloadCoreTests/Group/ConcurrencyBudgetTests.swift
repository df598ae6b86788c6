import SegmentedDownloadCore
import Testing

@Suite("Concurrency budget")
struct ConcurrencyBudgetTests {
    private static func budget(_ total: Int = 8, perHost: Int = 4, open: Int = 0, accepted: Int = 0)
        -> ConcurrencyBudget
    {
        var budget = ConcurrencyBudget(connectionsMax: total, connectionsPerHostMax: perHost)
        for _ in 0..<open { budget.reserve("a", now: .zero) }
        for _ in 0..<accepted { budget.accepted("a", now: .zero) }
        return budget
    }

    @Test("Connections stay within the limit per host and the limit in all")
    func limits() {
        var budget = Self.budget(5, perHost: 3, open: 3)
        #expect(!budget.allows("a", now: .zero))
        #expect(budget.allows("b", now: .zero))
        budget.reserve("b", now: .zero)
        budget.reserve("b", now: .zero)
        #expect(!budget.allows("c", now: .zero))
        #expect(budget.inUse == 5)
        budget.release("a", wasAccepted: false, now: .zero)
        #expect(budget.allows("c", now: .zero))
        #expect(budget.allows("a", now: .zero))
    }

    @Test("A refusal while other requests are served limits the host to the number served")
    func ceiling() {
        var budget = Self.budget(open: 3, accepted: 2)
        let servesOthers = budget.refused("a", retryAfter: nil, now: .zero)
        #expect(servesOthers)
        budget.release("a", wasAccepted: false, now: .zero)
        #expect(!budget.allows("a", now: .milliseconds(999)))
        budget.release("a", wasAccepted: true, now: .zero)
        #expect(budget.allows("a", now: .zero))
    }

    @Test("After the probe delay one more connection is tried")
    func trial() {
        var budget = Self.budget(open: 3, accepted: 2)
        _ = budget.refused("a", retryAfter: nil, now: .zero)
        budget.release("a", wasAccepted: false, now: .zero)
        #expect(budget.allows("a", now: .seconds(1)))
        budget.reserve("a", now: .zero)
        #expect(!budget.allows("a", now: .seconds(100)))
        budget.accepted("a", now: .seconds(2))
        #expect(!budget.allows("a", now: .milliseconds(2999)))
        #expect(budget.allows("a", now: .seconds(3)))
    }

    @Test("Each refused trial doubles the delay before the next, up to a minute")
    func spacing() {
        var budget = Self.budget(open: 2, accepted: 2)
        var now = Duration.zero
        var waits: [Duration] = []
        for _ in 0..<9 {
            budget.reserve("a", now: .zero)
            _ = budget.refused("a", retryAfter: nil, now: now)
            budget.release("a", wasAccepted: false, now: .zero)
            let refusedAt = now
            while !budget.allows("a", now: now) { now += .milliseconds(500) }
            waits.append(now - refusedAt)
        }
        #expect(waits == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { .seconds($0) })
    }

    @Test("A Retry-After delays all requests to the host if none of them is served")
    func retryAfter() {
        var budget = Self.budget(open: 1)
        let servesOthers = budget.refused("a", retryAfter: .seconds(20), now: .seconds(5))
        #expect(!servesOthers)
        budget.release("a", wasAccepted: false, now: .zero)
        #expect(!budget.allows("a", now: .milliseconds(24_999)))
        #expect(budget.allows("a", now: .seconds(25)))
        #expect(budget.allows("b", now: .seconds(5)))
    }

    @Test(
        "No Retry-After closes a host for longer than ten minutes",
        arguments: [Duration.seconds(601), .seconds(Int64.max)])
    func retryAfterTooLong(asked: Duration) {
        for others in [0, 1] {
            var budget = Self.budget(open: 1 + others, accepted: others)
            _ = budget.refused("a", retryAfter: asked, now: .zero)
            budget.release("a", wasAccepted: false, now: .zero)
            #expect(budget.allows("a", now: .seconds(600)))
        }
    }

    @Test(
        "The limit of a host rises with what the host accepts, never beyond the configured limit",
        arguments: UInt64(0)..<50)
    func model(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var budget = Self.budget(6, perHost: 4)
        var open: [(host: String, accepted: Bool)] = []
        var now = Duration.zero
        for _ in 0..<500 {
            now += .milliseconds(Int.random(in: 0...500, using: &generator))
            let host = ["a", "b", "c"].randomElement(using: &generator) ?? "a"
            switch Int.random(in: 0..<4, using: &generator) {
            case 0, 1:
                guard budget.allows(host, now: now) else { continue }
                budget.reserve(host, now: .zero)
                open.append((host, false))
            case 2:
                guard let index = open.indices.randomElement(using: &generator) else { continue }
                let isAccepted = open[index].accepted
                if isAccepted || Bool.random(using: &generator) {
                    if !isAccepted { _ = budget.refused(open[index].host, retryAfter: nil, now: now) }
                    budget.release(open[index].host, wasAccepted: isAccepted, now: now)
                    open.remove(at: index)
                }
            default:
                guard let index = open.firstIndex(where: { !$0.accepted }) else { continue }
                open[index].accepted = true
                budget.accepted(open[index].host, now: now)
            }
            #expect(open.count <= 6 && budget.inUse == open.count, "replay with \(seed)")
            for host in ["a", "b", "c"] { #expect(open.count { $0.host == host } <= 4, "replay with \(seed)") }
        }
        // After any refusals a connection is allowed in the end.
        for connection in open { budget.release(connection.host, wasAccepted: connection.accepted, now: now) }
        #expect(budget.allows("a", now: now + .seconds(61)))
    }

    @Test("What stands against a connection is the host where it has all it may have, and else all there are")
    func shortage() {
        var budget = Self.budget(4, perHost: 3, open: 2)
        #expect(budget.shortage("a", now: .zero) == nil && budget.free("a") == 1 && budget.free == 2)
        budget.reserve("b", now: .zero)
        budget.reserve("b", now: .zero)
        #expect(budget.shortage("a", now: .zero) == .total && budget.shortage("c", now: .zero) == .total)
        budget.release("b", wasAccepted: false, now: .zero)
        budget.reserve("a", now: .zero)
        #expect(budget.shortage("a", now: .zero) == .host && budget.free("a") == 0 && budget.free("c") == 3)
        #expect(budget.shortage("b", now: .zero) == .total && budget.free == 0)
    }

    @Test("A host that asks to wait gets no connection until then, even if some are free")
    func closed() {
        var budget = Self.budget(open: 1)
        _ = budget.refused("a", retryAfter: .seconds(20), now: .zero)
        budget.release("a", wasAccepted: false, now: .zero)
        #expect(budget.shortage("a", now: .milliseconds(19_999)) == .closed)
        #expect(budget.shortage("a", now: .seconds(20)) == nil)
    }

    @Test("A host that counts its connections is given a moment to notice that one was cut")
    func cut() {
        for (hasReducedLimit, wasCut, waits) in [(true, true, true), (true, false, false), (false, true, false)] {
            var budget = Self.budget(open: 3, accepted: 2)
            if hasReducedLimit {
                _ = budget.refused("a", retryAfter: nil, now: .zero)
                budget.release("a", wasAccepted: false, now: .zero)
            }
            budget.release("a", wasAccepted: true, wasCut: wasCut, now: .milliseconds(500))
            #expect(budget.allows("a", now: .milliseconds(599)) == !waits)
            #expect(budget.allows("a", now: .milliseconds(600)))
        }
    }

    private static func refusal(_ host: String, until time: Duration) -> [HostNotice] {
        [HostNotice(.refusal, host: HostKey(host), until: time)]
    }

    @Test("A host that refused another process gets no connection before the time, whether it had one here or not")
    func refusedElsewhere() {
        var budget = Self.budget(open: 1)
        budget.release("a", wasAccepted: false, now: .zero)
        budget.noticed(Self.refusal("a", until: .seconds(3)), now: .zero)
        budget.noticed(Self.refusal("b", until: .seconds(5)), now: .zero)
        for (host, end) in [("a", 3), ("b", 5)] {
            #expect(!budget.allows(host, now: .milliseconds(end * 1000 - 1)))
            #expect(budget.shortage(host, now: .zero) == .closed)
            #expect(budget.closedElsewhere(host, now: .zero) == .seconds(end))
            #expect(budget.allows(host, now: .seconds(end)) && budget.closedElsewhere(host, now: .seconds(end)) == nil)
        }
        #expect(budget.allows("c", now: .zero) && budget.closedElsewhere("c", now: .zero) == nil)
    }

    @Test("A host that serves connections here keeps them when it refuses another process, and gets no more meanwhile")
    func refusedElsewhereWhileServing() {
        var budget = Self.budget(open: 2, accepted: 2)
        budget.noticed(Self.refusal("a", until: .seconds(3)), now: .zero)
        #expect(!budget.allows("a", now: .milliseconds(2999)) && budget.closedElsewhere("a", now: .zero) == nil)
        budget.release("a", wasAccepted: true, now: .zero)
        #expect(budget.allows("a", now: .zero), "the next request over a connection that the host serves")
        budget.reserve("a", now: .zero)
        #expect(budget.allows("a", now: .seconds(3)), "a trial of one more")
    }

    @Test("A refusal elsewhere that claims more than ten minutes counts for ten")
    func refusedElsewhereTooLong() {
        var budget = Self.budget()
        budget.noticed(Self.refusal("a", until: .seconds(86_400)), now: .seconds(1))
        #expect(!budget.allows("a", now: .seconds(600)) && budget.allows("a", now: .seconds(601)))
    }
}
