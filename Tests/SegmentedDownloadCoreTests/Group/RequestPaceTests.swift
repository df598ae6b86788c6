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
            _ = pace.requested(now: .seconds(-1), using: &generator)
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

    @Test("A task of two asks on quickly after one refusal at its beginning, and one of a thousand does not")
    func unmeasured() {
        var generator = SplitMix64(seed: 1)
        for (tasks, range) in [(2, 50.0..<100.0), (5, 1.0..<10.0), (10, 0.05..<0.15), (1000, 0.05..<0.15)] {
            var pace = RequestPace(tasks: tasks)
            _ = pace.requested(now: .seconds(1), using: &generator)
            _ = pace.refused(asked: nil, now: .seconds(1), using: &generator)
            #expect(range.contains(pace.rate ?? 0), "\(tasks) tasks")
        }
    }

    @Test("A host that has never answered is not closed when it is unreachable, one that has is")
    func unreachable() {
        for hasAnswered in [false, true] {
            var budget = Self.budget(2)
            var now = Duration.seconds(1)
            if hasAnswered {
                budget.reserve("a", now: now)
                budget.accepted("a", now: now)
                budget.release("a", wasAccepted: true, now: now)
            }
            now = .seconds(2)
            budget.reserve("a", now: now)
            budget.unreachable("a", now: now)
            budget.release("a", wasAccepted: false, now: now)
            #expect(budget.allows("a", now: now) == !hasAnswered)
        }
    }

    @Test("The delay that the user chose replaces that of the pace")
    func delayFixed() {
        var budget = Self.budget(2)
        for number in 1...5 {
            let now = Duration.seconds(10 * number)
            budget.reserve("a", now: now)
            _ = budget.refused("a", retryAfter: nil, delayFixed: .seconds(1), now: now)
            budget.release("a", wasAccepted: false, now: now)
            #expect(budget.closedUntil("a") == now + .seconds(1))
        }
    }

    @Test("The pace delays no further connection of a download that is served")
    func further() {
        var budget = Self.budget(100)
        budget.reserve("a", now: .seconds(2))
        _ = budget.refused("a", retryAfter: nil, now: .seconds(2))
        budget.release("a", wasAccepted: false, now: .seconds(2))
        let later = Self.opens(budget, from: .seconds(2))
        budget.reserve("a", now: later)
        budget.accepted("a", now: later)
        let trial = later + ConcurrencyBudget.probeDelay
        #expect(!budget.allows("a", now: trial) && budget.allows("a", isFurther: true, now: trial))
    }

    @Test("A file is at fault if others are served at the same time, or each time directly after it was refused")
    func fileRefusals() {
        var file = FileRefusals()
        for number in 1...2 {
            let isOfFile = file.note(servesOthers: false, now: .seconds(number))
            #expect(!isOfFile)
            file.noteOtherServed()
        }
        let isOfFile = file.note(servesOthers: false, now: .seconds(3))
        #expect(isOfFile && file.lastAt == .seconds(3))
        var (crowded, bad) = (FileRefusals(), FileRefusals())
        for number in 1...40 { _ = crowded.note(servesOthers: false, now: .seconds(number)) }
        #expect(!crowded.isLasting)
        for number in 1...31 { _ = bad.note(servesOthers: true, now: .seconds(number)) }
        #expect(bad.isLasting)
    }

    /// The downloads that a group asks for, with the time.
    private struct World {
        var group: GroupStateMachine
        var now: Duration = .seconds(1)
        var fetches: [(id: DownloadID, order: FetchOrder)] = []
        var delays: [Duration] = []

        init(tasks: Int, downloads: Int, connectionsPerHost: Int) {
            var limits = GroupStateMachine.Limits()
            limits.downloads = downloads
            limits.connectionsPerHost = connectionsPerHost
            limits.tasks = tasks
            self.group = GroupStateMachine(limits: limits)
        }

        mutating func add(_ number: Int, host: String, _ settings: DownloadSettings = DownloadSettings()) {
            var settings = settings
            settings.host = host
            self.handle(.added(DownloadID(number), settings, seed: 7))
            self.handle(.tick)
        }

        mutating func handle(_ event: GroupEvent) {
            for action in self.group.handle(event, now: self.now) {
                switch action {
                case .fetch(let id, let order): self.fetches.append((id, order))
                case .download(let id, .survey): self.handle(.download(id, .surveyed(.nothing)))
                case .download(_, .report(.retrying(_, attempt: _, let delay))): self.delays.append(delay)
                case .download, .post: break
                }
            }
        }

        /// Answers the next request with a refusal. Returns the download.
        mutating func refuse(retryAfter: RetryAfter? = nil) -> DownloadID {
            let (id, order) = self.fetches.removeFirst()
            let refusal = RangeResponse.refused(status: 503, retryAfter: retryAfter)
            self.handle(.download(id, .responded(order.lease, refusal, suggestedName: nil)))
            self.handle(.download(id, .ended(order.lease, .stopped)))
            return id
        }

        mutating func wait() {
            let end = self.now + .seconds(700)
            while self.fetches.isEmpty, self.now < end {
                self.now += .milliseconds(100)
                self.handle(.tick)
            }
        }
    }

    @Test("After a refusal the file is asked for that was refused least recently")
    func leastRecently() {
        var world = World(tasks: 100, downloads: 3, connectionsPerHost: 1)
        for number in 0..<3 { world.add(number, host: "a") }
        var asked: [Int] = []
        for _ in 0..<6 {
            world.wait()
            guard !world.fetches.isEmpty else { break }
            asked.append(world.refuse().rawValue)
        }
        #expect(asked == [0, 1, 2, 0, 1, 2])
    }

    @Test("A retry is reported with the delay after which it is made")
    func delayReported() throws {
        var world = World(tasks: 100, downloads: 1, connectionsPerHost: 1)
        world.add(0, host: "a")
        for _ in 0..<3 {
            world.wait()
            _ = world.refuse()
            let end = world.now + (try #require(world.delays.last))
            world.wait()
            #expect(world.now >= end && world.now < end + .milliseconds(101))
        }
    }

    @Test("A Retry-After that no download waits for closes no host, and is not shared")
    func tooLong() {
        for tasks in [1, 2] {
            var world = World(tasks: tasks, downloads: 2, connectionsPerHost: 1)
            for number in 0..<2 { world.add(number, host: "a") }
            world.wait()
            let asked = RetryAfter(fieldValue: "99999", date: nil, fallbackNow: nil)
            _ = world.refuse(retryAfter: asked)
            #expect(world.group.budget.closedUntil("a") <= world.now)
            let refusal = RangeResponse.refused(status: 503, retryAfter: asked)
            #expect(refusal.notice(of: HostKey("a"), now: world.now) == nil)
        }
    }

    @Test("Files of a closed host that have had no connection keep files of other hosts from starting no longer")
    func startsOthers() {
        var world = World(tasks: 1, downloads: 2, connectionsPerHost: 1)
        for number in 0..<4 { world.add(number, host: "closed") }
        for number in 4..<6 { world.add(number, host: "open") }
        let asked = RetryAfter(fieldValue: "300", date: nil, fallbackNow: nil)
        _ = world.refuse(retryAfter: asked)
        world.handle(.tick)
        #expect(world.fetches.map(\.id) == [DownloadID(4)])
        #expect(world.group.active.count == 4, "both of the closed host, and two others")
    }

    @Test(
        "A task of a job gives up no file in the first ten minutes of a host that answered before, unless retries are limited"
    )
    func patience() {
        var settings = DownloadSettings()
        func isRepeated(failures: Int, hadContact: Bool = true, after seconds: Int) -> Bool {
            let refusal = DownloadError(.server, "busy", isTransient: true, status: 503)
            var request = FailedRequest(.bytes, refusal, failures: failures - 1)
            (request.hadContact, request.waited) = (hadContact, .seconds(seconds))
            var generator = SplitMix64(seed: 1)
            return settings.retry.decision(on: request, using: &generator) != .giveUp
        }
        #expect(!isRepeated(failures: 11, after: 60))
        settings.isOfJob = true
        #expect(isRepeated(failures: 11, after: 599))
        #expect(!isRepeated(failures: 11, after: 600))
        #expect(!isRepeated(failures: 4, hadContact: false, after: 60))
        settings.options.retries = 2
        #expect(!isRepeated(failures: 3, after: 60))
    }
}
