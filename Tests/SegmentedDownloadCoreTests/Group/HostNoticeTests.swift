import SegmentedDownloadCore
import Testing

/// The notices with which tasks of a job on one machine share the places at a host.
@Suite("Notices about places at a host")
struct HostNoticeTests {
    private static func notice(_ kind: HostNotice.Kind, until time: Duration, host: String = "a") -> [HostNotice] {
        [HostNotice(kind, host: HostKey(host), until: time)]
    }

    /// A budget with connections to the host "a", made at 10 s, of which the host serves some.
    private static func budget(tasks: Int = 2, open: Int = 1, accepted: Int = 0) -> ConcurrencyBudget {
        var budget = ConcurrencyBudget(connectionsMax: 8, connectionsPerHostMax: 4, tasks: tasks)
        budget.admit("a", seed: 1, now: .zero)
        for _ in 0..<open { budget.reserve("a", now: .seconds(10)) }
        for _ in 0..<accepted { budget.accepted("a", now: .seconds(10)) }
        return budget
    }

    /// The task is refused at 10 s.
    private static func refused(tasks: Int = 2, retryAfter: Duration? = nil) -> ConcurrencyBudget {
        var budget = Self.budget(tasks: tasks)
        _ = budget.refused("a", retryAfter: retryAfter, now: .seconds(10))
        budget.release("a", wasAccepted: false, now: .seconds(10))
        return budget
    }

    /// The first time, in steps of 10 ms, at which a request may be made.
    private static func opens(_ budget: ConcurrencyBudget, from start: Duration) -> Duration {
        var now = start
        while !budget.allows("a", now: now), now < start + .seconds(100) { now += .milliseconds(10) }
        return now
    }

    @Test("A task that is refused without a Retry-After posts until when it waits, one with a Retry-After nothing")
    func waiting() throws {
        var budget = Self.refused()
        let notices = budget.takeNotices()
        let notice = try #require(notices.first)
        #expect(notices.count == 1 && notice.kind == .waiting && notice.host == HostKey("a"))
        #expect(!budget.allows("a", now: notice.until - .nanoseconds(1)) && budget.allows("a", now: notice.until))
        #expect(budget.takeNotices().isEmpty)
        var told = Self.refused(retryAfter: .seconds(20))
        #expect(told.takeNotices().isEmpty)
    }

    @Test("A place passes from one task to another: offered, taken, and left alone by the first")
    func turn() throws {
        var (holder, waiter) = (Self.budget(accepted: 1), Self.refused())
        holder.noticed(waiter.takeNotices(), now: .seconds(10))
        holder.noticed(Self.notice(.waiting, until: .seconds(60)), now: .seconds(10))
        holder.release("a", wasAccepted: true, now: .seconds(20))
        let offer = holder.takeNotices()
        #expect(offer == Self.notice(.offer, until: .seconds(22)))
        #expect(!holder.allows("a", now: .milliseconds(21_999)) && holder.allows("a", now: .seconds(22)))

        waiter.noticed(offer, now: .seconds(20))
        let time = Self.opens(waiter, from: .seconds(20))
        #expect(time <= .seconds(21))
        waiter.reserve("a", now: time)
        let taken = waiter.takeNotices()
        #expect(taken == Self.notice(.taken, until: .seconds(22)))
        waiter.accepted("a", now: time)

        holder.noticed(taken, now: time)
        #expect(holder.allows("a", now: .seconds(60)), "it asks again by itself")
        holder.noticed(Self.notice(.offer, until: .seconds(40)), now: .seconds(38))
        #expect(Self.opens(holder, from: .seconds(38)) <= .seconds(39), "and is offered places")
    }

    @Test("A process that is no task of a job posts nothing and ignores notices about places")
    func lone() {
        let kinds = HostNotice.Kind.allCases.filter { $0 != .refusal }
        var refused = Self.refused(tasks: 1)
        var serving = Self.budget(tasks: 1, accepted: 1)
        let before = [refused, serving]
        for kind in kinds {
            refused.noticed(Self.notice(kind, until: .seconds(60)), now: .seconds(10))
            serving.noticed(Self.notice(kind, until: .seconds(60)), now: .seconds(10))
        }
        #expect([refused, serving] == before)
        serving.release("a", wasAccepted: true, now: .seconds(30))
        refused.reserve("a", now: .seconds(30))
        serving.leave(now: .seconds(30))
        #expect(refused.takeNotices().isEmpty && serving.takeNotices().isEmpty)
        #expect(serving.allows("a", now: .seconds(30)))
    }

    @Test("No offer shortens a Retry-After, be it of a response here, of another process, or of one of two responses")
    func retryAfter() {
        for seconds in [10, 11, 40] {
            var budget = Self.refused(retryAfter: .seconds(20))
            budget.noticed(Self.notice(.offer, until: .seconds(seconds + 2)), now: .seconds(seconds))
            #expect(Self.opens(budget, from: .seconds(10)) >= .seconds(30))
        }
        for refusalFirst in [true, false] {
            var budget = Self.refused()
            let notices = Self.notice(.refusal, until: .seconds(50)) + Self.notice(.offer, until: .seconds(12))
            budget.noticed(refusalFirst ? notices : notices.reversed(), now: .seconds(10))
            budget.noticed(Self.notice(.offer, until: .seconds(13)), now: .seconds(11))
            #expect(Self.opens(budget, from: .seconds(10)) >= .seconds(50))
        }
        var both = Self.budget(open: 2)
        _ = both.refused("a", retryAfter: .seconds(20), now: .seconds(10))
        _ = both.refused("a", retryAfter: nil, now: .seconds(10))
        both.release("a", wasAccepted: false, now: .seconds(10))
        both.release("a", wasAccepted: false, now: .seconds(10))
        both.noticed(Self.notice(.offer, until: .seconds(13)), now: .seconds(11))
        #expect(both.takeNotices().isEmpty)
        #expect(Self.opens(both, from: .seconds(10)) >= .seconds(30))
    }

    @Test("A task with several connections gives one to a task that waits, and goes on with the others")
    func several() {
        var budget = Self.budget(open: 3, accepted: 3)
        budget.noticed(Self.notice(.waiting, until: .seconds(60)), now: .seconds(10))
        budget.release("a", wasAccepted: true, now: .seconds(20))
        #expect(budget.takeNotices() == Self.notice(.offer, until: .seconds(22)))
        #expect(!budget.allows("a", now: .seconds(21)), "the place that it offers")
        budget.release("a", wasAccepted: true, now: .seconds(21))
        #expect(budget.allows("a", now: .seconds(21)), "the next request over another connection")
        budget.reserve("a", now: .seconds(21))
        budget.accepted("a", now: .seconds(21))
        budget.noticed(Self.notice(.taken, until: .seconds(22)), now: .seconds(21))
        #expect(budget.inUse == 2 && !budget.allows("a", now: .seconds(21)))
        budget.release("a", wasAccepted: true, now: .seconds(21))
        #expect(budget.allows("a", now: .seconds(21)))
        budget.reserve("a", now: .seconds(21))
        budget.accepted("a", now: .seconds(21))
        #expect(budget.takeNotices().isEmpty, "the next turn has not passed")
        #expect(budget.allows("a", now: .seconds(60)), "later it tries whether there is room for one more")
    }

    @Test("A task that ends leaves its place to one that waits, also before the end of its turn")
    func leaving() {
        var budget = Self.budget(accepted: 1)
        budget.noticed(Self.notice(.waiting, until: .seconds(60)), now: .seconds(10))
        budget.release("a", wasAccepted: true, now: .seconds(11))
        #expect(budget.takeNotices().isEmpty)
        budget.leave(now: .seconds(11))
        #expect(budget.takeNotices() == Self.notice(.offer, until: .seconds(13)))
    }

    @Test(
        "With any notices at any times, a task may ask again within a minute, and its connections stay counted",
        arguments: UInt64(0)..<50)
    func model(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var budget = Self.budget(open: 0)
        var open: [Bool] = []
        var now = Duration.seconds(10)
        for _ in 0..<500 {
            now += .milliseconds(Int.random(in: 0...1000, using: &generator))
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                guard budget.allows("a", now: now) else { continue }
                budget.reserve("a", now: now)
                open.append(false)
            case 2:
                guard let index = open.firstIndex(of: false) else { continue }
                if Bool.random(using: &generator) {
                    open[index] = true
                    budget.accepted("a", now: now)
                } else {
                    _ = budget.refused("a", retryAfter: nil, now: now)
                    budget.release("a", wasAccepted: false, now: now)
                    open.remove(at: index)
                }
            case 3:
                guard let index = open.firstIndex(of: true) else { continue }
                open.remove(at: index)
                budget.release("a", wasAccepted: true, wasCut: Bool.random(using: &generator), now: now)
            default:
                let kind = HostNotice.Kind.allCases[Int.random(in: 1...3, using: &generator)]
                let until = now + .milliseconds(Int.random(in: 0...3000, using: &generator))
                budget.noticed(Self.notice(kind, until: until), now: now)
            }
            for notice in budget.takeNotices() { #expect(notice.until > now, "replay with \(seed)") }
            #expect(budget.inUse == open.count, "replay with \(seed)")
        }
        for wasAccepted in open { budget.release("a", wasAccepted: wasAccepted, now: now) }
        #expect(budget.allows("a", now: now + .seconds(61)), "replay with \(seed)")
    }
}
