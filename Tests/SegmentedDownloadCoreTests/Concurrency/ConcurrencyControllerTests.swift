import SegmentedDownloadCore
import Testing

@Suite("Concurrency controller")
struct ConcurrencyControllerTests {
    /// A controller, and connections with given rates.
    private struct Path {
        var controller = ConcurrencyController(.automatic)
        var bytes: Int64 = 0
        var now: Duration = .zero
        var most = 0

        /// The most connections that receive.
        var mostReceiving = Int.max

        /// Advances the time. `rate` is the bytes per second of a number of connections together.
        mutating func run(_ seconds: Int, _ rate: (Int) -> Double) {
            for _ in 0..<(10 * seconds) { self.tick(rate) }
        }

        mutating func tick(_ rate: (Int) -> Double) {
            self.now += .milliseconds(100)
            self.bytes += Int64(rate(self.controller.target) / 10)
            let receiving = min(self.controller.target, self.mostReceiving)
            self.controller.observe(.init(bytes: self.bytes, receiving: receiving), now: self.now)
            self.most = max(self.most, self.controller.target)
        }

        static func settled(_ rate: (Int) -> Double) -> Int {
            var path = Path()
            path.run(60, rate)
            return path.controller.target
        }
    }

    @Test("A fixed number of connections stays fixed")
    func exact() {
        var controller = ConcurrencyController(.exactly(5))
        for tick in 0..<100 { controller.observe(.init(bytes: 0, receiving: 5), now: .seconds(tick)) }
        controller.refused(open: 2, now: .seconds(100))
        #expect(controller.target == 5)
    }

    @Test("Connections are added only if the rest takes the first one twice as long as others need for their heads")
    func slowHeads() {
        for (missing, grows) in [(12_000_000, false), (12_100_000, true)] as [(Int64, Bool)] {
            var controller = ConcurrencyController(.automatic)
            controller.begin(requestCost: 0, now: .zero)
            controller.observe(
                .init(bytes: 1_000_000, receiving: 1, bytesMissing: missing, headTime: 6), now: .seconds(1))
            #expect((controller.target > 1) == grows)
            guard grows else { continue }
            // Others need six seconds, too.
            let target = controller.target
            for second in 2...13 {
                controller.observe(.init(bytes: 2_000_000, receiving: 1, headTime: 6), now: .seconds(second))
                #expect(controller.target == target)
            }
            controller.observe(.init(bytes: 2_000_000, receiving: 1, headTime: 6), now: .seconds(14))
            #expect(controller.target == 2)
        }
    }

    @Test("The number of connections doubles while that increases the rate, up to the default maximum")
    func doubles() {
        #expect(Path.settled { Double($0) * 1e6 } == 32)
    }

    @Test("If four connections have four times the rate of one, all allowed ones are opened")
    func linear() {
        var path = Path()
        var ticks = 0
        while path.controller.target < 32, ticks < 100 {
            path.tick { Double($0) * 1e6 }
            ticks += 1
        }
        #expect(ticks <= 8, "without one doubling after another")
    }

    @Test("New connections are measured from the moment the last of them receives, not from the next tick")
    func joined() {
        var untold = Path()
        untold.mostReceiving = 1
        while untold.controller.target == 1, untold.now < .seconds(10) { untold.tick { Double($0) * 1e6 } }
        let target = untold.controller.target
        untold.mostReceiving = .max
        var told = untold
        told.controller.joined(.init(bytes: told.bytes, receiving: target), now: told.now)
        let ticks = [told, untold].map { path in
            var path = path
            var ticks = 0
            while path.controller.target == target, ticks < 100 {
                path.tick { Double($0) * 1e6 }
                ticks += 1
            }
            return ticks
        }
        #expect(target > 1 && ticks[0] == ticks[1] - 1, "\(ticks)")
    }

    @Test(
        "With a long round trip several connections start at once, with a short one only after a measurement"
    )
    func longWay() {
        for (cost, target) in [(0.01, 1), (0.08, 1), (0.1, 16), (0.2, 32)] {
            var controller = ConcurrencyController(.automatic)
            controller.begin(requestCost: cost, now: .seconds(1))
            #expect(controller.target == target)
            var exact = ConcurrencyController(.exactly(3))
            exact.begin(requestCost: cost, now: .seconds(1))
            #expect(exact.target == 3)
        }
    }

    @Test("A path that one connection fills is left to one, once that is measured")
    func saturated() {
        var path = Path()
        path.run(60) { _ in 1e7 }
        #expect(path.controller.target == 1 && path.most == 4)
    }

    @Test(
        "With limits per connection and in total, the number settles where both meet", arguments: [3, 6, 10, 13])
    func knee(count: Int) {
        #expect(Path.settled { min(Double($0) * 2e6, Double(count) * 2e6) } == count)
    }

    @Test("On a short path an origin whose limit is near is not met with the maximum of connections")
    func nearLimit() {
        var path = Path()
        path.run(60) { min(Double($0) * 2e6, 12e6) }
        #expect(path.most == 12 && path.controller.target == 6)
    }

    @Test("On a short path connections that bring nothing are given back with their first measurement")
    func givenBack() {
        var path = Path()
        var ticks = 0
        while path.most <= 1 || path.controller.target > 1, ticks < 100 {
            path.tick { $0 == 1 ? 1.3e8 : 1.2e8 }
            ticks += 1
        }
        #expect(path.most == 4 && ticks <= 6, "\(ticks)")
    }

    @Test("A connection that was closed by mistake is opened again")
    func givesBackTooMuch() {
        var path = Path()
        // The first connection seemed fast: its beginning came from a cache.
        path.run(1) { $0 == 1 ? 9e6 : 1e7 }
        path.run(60) { Double(min($0, 4)) * 2.5e6 }
        #expect(path.controller.target == 4)
    }

    @Test("A permanent fall of the rate leads to new trials, and to no more connections than help")
    func falls() {
        var path = Path()
        path.run(10) { _ in 2e7 }
        #expect(path.controller.target == 1)
        path.run(20) { Double($0) * 5e5 }
        #expect(path.controller.target == 32)
        path = Path()
        path.run(10) { _ in 2e7 }
        path.run(30) { _ in 5e6 }
        #expect(path.controller.target == 1)
    }

    @Test("A temporary dip leaves no more connections than before", arguments: [1, 3])
    func dips(windows: Int) {
        var path = Path()
        path.run(10) { _ in 1e7 }
        for _ in 0..<8 {
            for _ in 0..<(3 * windows) { path.tick { _ in 4e6 } }
            path.run(20) { _ in 1e7 }
        }
        #expect(path.controller.target == 1)
    }

    @Test("A rate that varies by a third does not close and reopen connections repeatedly")
    func noise() {
        var path = Path()
        path.run(5) { Double(min($0, 8)) * 1e6 }
        var (generator, changes, before) = (SplitMix64(seed: 7), 0, path.controller.target)
        for _ in 0..<3000 {
            let factor = Double.random(in: 0.67...1.33, using: &generator)
            path.tick { Double(min($0, 8)) * 1e6 * factor }
            if path.controller.target != before { changes += 1 }
            before = path.controller.target
        }
        #expect(changes <= 12)
    }

    @Test("Connections that never open are not waited for: the controller uses the open ones")
    func bounded() {
        var path = Path()
        path.mostReceiving = 3
        path.run(20) { Double(min($0, 3)) * 1e6 }
        #expect(path.controller.target == 3)
    }

    @Test("The end of a file is left to one connection")
    func short() {
        var controller = ConcurrencyController(.automatic)
        for tick in 1...3 {
            controller.observe(
                .init(bytes: Int64(tick) * 100_000, receiving: 1, bytesMissing: 250_000), now: .milliseconds(100 * tick)
            )
        }
        #expect(controller.target == 1)
    }

    @Test("A number is evaluated only after nearly that many connections receive")
    func waitsForAll() {
        var path = Path()
        for _ in 0..<3 { path.tick { _ in 1e6 } }
        #expect(path.controller.target == 4)
        path.mostReceiving = 2
        path.run(2) { Double($0) * 1e6 }
        #expect(path.controller.target == 4)
        path.mostReceiving = 3
        path.run(1) { Double($0) * 1e6 }
        #expect(path.controller.target > 4)
    }

    @Test("An origin that refuses more connections is asked again after 10 s, then after 20 s")
    func refused() throws {
        var path = Path()
        let rate = { (count: Int) in Double(min(count, 2)) * 1e6 }
        path.run(1, rate)
        try #require(path.controller.target > 2)
        for (patience, another) in [(9, 2), (19, 2)] {
            // Several connections are refused at once.
            for _ in 0..<3 { path.controller.refused(open: 2, now: path.now) }
            path.most = 0
            path.run(patience, rate)
            #expect(path.most == 2)
            path.run(another, rate)
            #expect(path.most == 4)
        }
    }

    @Test("While every connection adds to the rate none is closed, however rates vary", arguments: UInt64(0)..<10)
    func keepsWhatHelps(seed: UInt64) {
        var (path, generator) = (Path(), SplitMix64(seed: seed))
        for _ in 0..<1200 {
            let factor = Double.random(in: 0.96...1.04, using: &generator)
            path.tick { Double($0) * 5e4 * factor }
        }
        #expect(path.controller.target >= 28, "otherwise all would be closed one by one")
    }

    @Test("A controller starts with the number observed before, and tries more later")
    func known() {
        var path = Path()
        path.controller = ConcurrencyController(.automatic, known: 6)
        #expect(path.controller.target == 1, "no response yet")
        path.controller.begin(requestCost: 0.02, now: .zero)
        #expect(path.controller.target == 6)
        path.run(9) { Double($0) * 1e6 }
        #expect(path.controller.target == 6 && path.controller.limitObserved == nil, "no trial yet")
        path.run(30) { Double($0) * 1e6 }
        #expect(path.controller.target == 32 && path.controller.limitObserved == 32)
        var fixed = ConcurrencyController(.exactly(3), known: 6)
        fixed.begin(requestCost: 0.02, now: .zero)
        #expect(fixed.target == 3)
    }

    @Test("The observed limit comes from a trial: the knee, or the number that is not refused")
    func lesson() {
        var path = Path()
        #expect(path.controller.limitObserved == nil)
        path.run(60) { Double(min($0, 6)) * 2e6 }
        #expect(path.controller.limitObserved == 6)
        var bounded = Path()
        bounded.mostReceiving = 3
        bounded.run(20) { Double(min($0, 3)) * 1e6 }
        #expect(bounded.controller.limitObserved == nil, "other downloads affect it")
        var refused = Path()
        refused.run(1) { Double($0) * 1e6 }
        refused.controller.refused(open: 2, now: refused.now)
        #expect(refused.controller.limitObserved == 2)
        var fixed = ConcurrencyController(.exactly(5))
        fixed.refused(open: 2, now: .zero)
        #expect(fixed.limitObserved == nil)
    }

    /// Like nginx's `limit_rate`: each connection sends a second's worth at once, then nothing for a second.
    @Test("Connections that receive a second's bytes at once are not mistaken for ones that slow each other")
    func bursts() {
        var (controller, now, opened) = (ConcurrencyController(.automatic), Duration.zero, [Duration.zero])
        controller.begin(requestCost: 0.001, now: now)
        for _ in 0..<100 {
            now += .milliseconds(100)
            while opened.count < controller.target { opened.append(now) }
            opened = Array(opened.prefix(controller.target))
            let bytes = opened.reduce(Int64(0)) { $0 + 1_000_000 * ((now - $1).components.seconds + 1) }
            let newcomer = controller.aloneTime.map { age in opened.dropFirst().contains { now - $0 >= age } }
            controller.observe(
                .init(
                    bytes: bytes, receiving: opened.count, bytesMissing: 100_000_000,
                    newcomer: newcomer == true ? 1_000_000 : nil),
                now: now)
        }
        #expect(controller.target == 32, "it stays, although single windows receive nothing")
    }

    @Test("A trial that the end of the file interrupts is not recorded as a limit")
    func untried() {
        var path = Path()
        while path.controller.target < 32 { path.tick { Double($0) * 1e6 } }
        #expect(path.controller.limitObserved == 12, "the number that was tried last with success")
    }

    @Test("If the observed number exceeds what is allowed, the controller uses the connections that open")
    func knownTooMany() {
        var path = Path()
        path.controller = ConcurrencyController(.automatic, known: 32)
        path.controller.begin(requestCost: 0.02, now: .zero)
        path.mostReceiving = 6
        path.run(5) { Double(min($0, 6)) * 1e6 }
        #expect(path.controller.target == 6 && path.controller.limitObserved == nil)
    }

    @Test("Reconsidered before it has begun it begins as ever, and afterwards it grows from where it is")
    func reopened() {
        var fresh = ConcurrencyController(.automatic)
        fresh.reopen()
        fresh.begin(requestCost: 0.2, now: .zero)
        #expect(fresh.target == 32)
        var path = Path()
        path.controller = ConcurrencyController(.automatic, known: 1)
        path.controller.begin(requestCost: 0.02, now: .zero)
        #expect(path.controller.target == 1)
        path.controller.reopen()
        path.run(3) { Double($0) * 1e6 }
        #expect(path.controller.target > 1 && path.controller.limitObserved != nil)
        path.controller.reopen()
        #expect(path.controller.limitObserved == nil)
    }

    @Test("How many are tried first depends on how long a request takes")
    func firstTarget() {
        let costs = [0, 0.0299, 0.03, 0.0899, 0.09, 0.1599, 0.16, 5]
        #expect(costs.map { ConcurrencyController.firstTarget(requestCost: $0) } == [4, 4, 8, 8, 16, 16, 32, 32])
        for (cost, target) in [(0.0899, 1), (0.09, 16)] {
            var controller = ConcurrencyController(.automatic)
            controller.begin(requestCost: cost, now: .zero)
            #expect(controller.target == target)
        }
    }

    @Test("Half a tick is enough to see that a file takes a while, and anything shorter is not")
    func shortestSpan() {
        for (span, target) in [(49_999, 1), (50_000, 4)] {
            var controller = ConcurrencyController(.automatic)
            controller.begin(requestCost: 0.01, now: .zero)
            controller.observe(.init(bytes: 100_000, receiving: 1), now: .microseconds(span))
            #expect(controller.target == target)
        }
    }
}
