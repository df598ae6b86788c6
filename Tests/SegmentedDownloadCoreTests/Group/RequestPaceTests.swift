import Testing

@testable import SegmentedDownloadCore

@Suite("The pace of a task of a job")
struct RequestPaceTests {
    private static func budget(_ tasks: Int, seed: UInt64 = 1) -> ConcurrencyBudget {
        var budget = ConcurrencyBudget(connectionsMax: 8, connectionsPerHostMax: 4, tasks: tasks)
        budget.admit("a", seed: seed, now: .zero)
        return budget
    }

    /// The first time, in steps of 10 ms, at which a request may be made.
    private static func opens(_ budget: ConcurrencyBudget, from start: Duration = .zero) -> Duration {
        var now = start
        while !budget.allows("a", now: now), now < start + .seconds(100) { now += .milliseconds(10) }
        return now
    }

    @Test("Ten thousand tasks that start together make their first requests over ten seconds, one process at once")
    func start() {
        let times = (0..<200).map { Self.opens(Self.budget(10_000, seed: $0)) }
        #expect(times.allSatisfy { $0 <= .seconds(10) })
        #expect(times.count { $0 < .seconds(5) } > 60)
        #expect(times.count { $0 > .seconds(5) } > 60)
        #expect(Self.opens(Self.budget(1)) == .zero)
    }

    @Test("Tasks that were told the same Retry-After ask again at different times, and none before it")
    func retryAfter() {
        let times = (0..<200).map { (seed: UInt64) -> Duration in
            var budget = Self.budget(100, seed: seed)
            budget.reserve("a", now: .seconds(1))
            _ = budget.refused("a", retryAfter: .seconds(30), now: .seconds(1))
            budget.release("a", wasAccepted: false, now: .seconds(1))
            return Self.opens(budget, from: .seconds(1))
        }
        #expect(times.allSatisfy { $0 >= .seconds(31) && $0 <= .seconds(41) })
        #expect(times.count { $0 > .seconds(36) } > 60)
        #expect(times.count { $0 < .seconds(36) } > 60)
    }

    @Test("A host that refused a task is asked by one connection at a time")
    func oneAtATime() {
        var budget = Self.budget(2)
        budget.reserve("a", now: .seconds(1))
        _ = budget.refused("a", retryAfter: nil, now: .seconds(1))
        budget.release("a", wasAccepted: false, now: .seconds(1))
        let later = Self.opens(budget, from: .seconds(1))
        budget.reserve("a", now: later)
        #expect(!budget.allows("a", now: later + .seconds(60)))
        budget.accepted("a", now: later)
        #expect(budget.hasAnswered("a"))
    }

    @Test("A refusal lowers a high rate by more than a low one, and the time without refusals raises both equally")
    func converges() {
        var generator = SplitMix64(seed: 1)
        func pace(serving count: Int) -> RequestPace {
            var pace = RequestPace(tasks: 10)
            for number in 0..<count { pace.accepted(now: .milliseconds(9000 * number / count)) }
            _ = pace.refused(asked: nil, now: .seconds(9), using: &generator)
            return pace
        }
        var (fast, slow) = (pace(serving: 100), pace(serving: 20))
        let (fastBefore, slowBefore) = (fast.rate ?? 0, slow.rate ?? 0)
        #expect(abs(fastBefore - 7) < 0.01 && abs(slowBefore - 1.4) < 0.01)
        // Two turns later one has passed without a refusal.
        for number in 1...2 {
            fast.accepted(now: .seconds(10 * number))
            slow.accepted(now: .seconds(10 * number))
        }
        let (fastRaise, slowRaise) = ((fast.rate ?? 0) - fastBefore, (slow.rate ?? 0) - slowBefore)
        #expect(fastRaise > 0 && abs(fastRaise - slowRaise) < 1e-9)
    }

    @Test("While a host refuses a file, a task of a job does not ask it for the others")
    func holdsOthers() {
        for (tasks, requests) in [(1, 2), (100, 1)] {
            var limits = GroupStateMachine.Limits()
            limits.connectionsPerHost = 1
            limits.tasks = tasks
            var group = GroupStateMachine(limits: limits)
            var fetches: [(DownloadID, FetchOrder)] = []
            func take(_ actions: [GroupAction]) {
                for action in actions { if case .fetch(let id, let order) = action { fetches.append((id, order)) } }
            }
            for number in 0..<3 {
                take(group.handle(.added(DownloadID(number), DownloadSettings(), seed: 7), now: .zero))
                take(group.handle(.download(DownloadID(number), .surveyed(.nothing)), now: .seconds(1)))
            }
            #expect(fetches.count == 1)
            let (id, order) = fetches[0]
            let refusal = RangeResponse.refused(status: 429, retryAfter: nil)
            take(group.handle(.download(id, .responded(order.lease, refusal, suggestedName: nil)), now: .seconds(1)))
            take(group.handle(.download(id, .ended(order.lease, .stopped)), now: .seconds(1)))
            #expect(fetches.count == requests)
        }
    }

    @Test(
        "A task of a job gives up no file in the first ten minutes of a host that answered before, unless retries are limited"
    )
    func patience() {
        let refusal = Failure(.server, "busy", isTransient: true, status: 503)
        var settings = DownloadSettings()
        #expect(!settings.retry.allows(refusal, failures: 11, waited: .seconds(60)))
        settings.isOfJob = true
        #expect(settings.retry.allows(refusal, failures: 11, waited: .seconds(599)))
        #expect(!settings.retry.allows(refusal, failures: 11, waited: .seconds(600)))
        #expect(!settings.retry.allows(refusal, failures: 4, hadContact: false, waited: .seconds(60)))
        settings.options.retries = 2
        #expect(!settings.retry.allows(refusal, failures: 3, waited: .seconds(60)))
    }
}
