import Testing

@testable import SegmentedDownloadCore

@Suite("Places that a task keeps from one response to the next request")
struct PlaceKeepingTests {
    /// Ends a response, and makes a request after the delay. Returns whether it could have been made at once.
    @discardableResult
    private static func request(
        _ keeping: inout PlaceKeeping, at now: Duration, after delay: Duration = .milliseconds(1)
    ) -> Bool {
        let mayKeep = Self.end(&keeping, at: now)
        keeping.requested(now: now + delay)
        return mayKeep
    }

    /// Ends a response. Returns whether a request could be made at once.
    private static func end(_ keeping: inout PlaceKeeping, at now: Duration) -> Bool { keeping.released(now: now) }

    @Test("After a refusal a place is not kept for 30 s, and for twice as long after each further one")
    func refused() {
        var keeping = PlaceKeeping()
        var now = Duration.seconds(1)
        for pause in [30, 60, 120, 240] {
            #expect(Self.request(&keeping, at: now))
            keeping.refused(saidWhen: false, now: now)
            #expect(!Self.end(&keeping, at: now + .seconds(pause) - .milliseconds(1)))
            now += .seconds(pause)
        }
    }

    @Test("A refusal after eight that were served is an exception", arguments: [7, 8])
    func exception(served: Int) {
        var keeping = PlaceKeeping()
        for number in 0..<served {
            #expect(Self.request(&keeping, at: .seconds(number)))
            keeping.accepted()
        }
        Self.request(&keeping, at: .seconds(10))
        keeping.refused(saidWhen: false, now: .seconds(10))
        #expect(Self.end(&keeping, at: .seconds(11)) == (served == 8))
    }

    @Test("A refusal of a request that had no place says nothing")
    func noPlace() {
        var keeping = PlaceKeeping()
        keeping.requested(now: .seconds(1))
        keeping.refused(saidWhen: false, now: .seconds(1))
        #expect(Self.request(&keeping, at: .seconds(2), after: .seconds(1)))
        keeping.refused(saidWhen: false, now: .seconds(3))
        #expect(Self.end(&keeping, at: .seconds(4)))
        // The refusal of another request, after the one with the place was served.
        Self.request(&keeping, at: .seconds(5))
        keeping.accepted()
        keeping.refused(saidWhen: false, now: .seconds(6))
        #expect(Self.end(&keeping, at: .seconds(7)))
    }

    @Test("After a refusal of the request with the place, another request's refusal says nothing")
    func refusedTwice() {
        var keeping = PlaceKeeping()
        Self.request(&keeping, at: .seconds(1))
        keeping.refused(saidWhen: false, now: .seconds(1))
        keeping.refused(saidWhen: false, now: .seconds(2))
        #expect(Self.end(&keeping, at: .seconds(31)))
    }

    @Test("A host that said when to ask limits requests")
    func saidWhen() {
        var keeping = PlaceKeeping()
        keeping.requested(now: .seconds(1))
        keeping.refused(saidWhen: true, now: .seconds(1))
        #expect(!Self.end(&keeping, at: .seconds(30)))
        #expect(Self.end(&keeping, at: .seconds(31)))
    }

    @Test("A task that was refused asks at once after a response, until its turn ends")
    func turn() {
        var budget = ConcurrencyBudget(connectionsMax: 8, connectionsPerHostMax: 4, tasks: 10)
        budget.admit("a", seed: 1, now: .zero)
        budget.reserve("a", now: .seconds(1))
        _ = budget.refused("a", retryAfter: nil, now: .seconds(1))
        budget.release("a", wasAccepted: false, now: .seconds(1))
        var now = budget.closedUntil("a")
        let end = now + PlaceTurns.turn
        while now < end {
            #expect(budget.allows("a", now: now))
            budget.reserve("a", now: now)
            budget.accepted("a", now: now)
            #expect(!budget.allows("a", now: now))
            now += .seconds(2)
            budget.release("a", wasAccepted: true, now: now)
        }
        #expect(!budget.allows("a", now: now))
    }
}
