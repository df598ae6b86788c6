import SegmentedDownloadCore
import Testing

@Suite("Concurrency controller")
struct ConcurrencyControllerTests {
    /// A controller in front of connections that bring what is said of them.
    private struct Path {
        var controller = ConcurrencyController(.automatic)
        var bytes: Int64 = 0
        var now: Duration = .zero
        var most = 0

        /// No more of them receive.
        var mostReceiving = Int.max

        /// Lets time pass. `rate` says how many bytes a second so many connections bring.
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

    @Test("A number given is exact, whatever comes of it")
    func exact() {
        var controller = ConcurrencyController(.exactly(5))
        for tick in 0..<100 { controller.observe(.init(bytes: 0, receiving: 5), now: .seconds(tick)) }
        controller.refused(open: 2, now: .seconds(100))
        #expect(controller.target == 5)
    }

    @Test("Connections double while doubling pays, up to the most that annoys nobody")
    func doubles() {
        #expect(Path.settled { Double($0) * 1e6 } == 32)
    }

    @Test("Where four bring four times as much as one, all are tried that may be")
    func linear() {
        var path = Path()
        var ticks = 0
        while path.controller.target < 32, ticks < 100 {
            path.tick { Double($0) * 1e6 }
            ticks += 1
        }
        #expect(ticks <= 8, "not one doubling after another")
    }

    @Test("New connections are judged from the moment the last of them receives, not from the next tick")
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

    @Test("On a long way several are begun with the first response, on a short one what it brings is seen first")
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

    @Test("A path one connection fills is left to one, once that is seen")
    func saturated() {
        var path = Path()
        path.run(60) { _ in 1e7 }
        #expect(path.controller.target == 1 && path.most == 4)
    }

    @Test(
        "Where each connection is limited and all together are, it settles where both meet", arguments: [3, 6, 10, 13])
    func knee(count: Int) {
        #expect(Path.settled { min(Double($0) * 2e6, Double(count) * 2e6) } == count)
    }

    @Test("What is given back and missed is taken again")
    func givesBackTooMuch() {
        var path = Path()
        // The first one seemed to bring much: its beginning came from a cache.
        path.run(1) { $0 == 1 ? 9e6 : 1e7 }
        path.run(60) { Double(min($0, 4)) * 2.5e6 }
        #expect(path.controller.target == 4)
    }

    @Test("A rate that falls for good has more tried, and no more than helps")
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

    @Test("A dip that passes leaves no more connections than before", arguments: [1, 3])
    func dips(windows: Int) {
        var path = Path()
        path.run(10) { _ in 1e7 }
        for _ in 0..<8 {
            for _ in 0..<(3 * windows) { path.tick { _ in 4e6 } }
            path.run(20) { _ in 1e7 }
        }
        #expect(path.controller.target == 1)
    }

    @Test("A rate that varies by a third has nothing closed and opened again and again")
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

    @Test("Connections that never come are not waited for: it does with those that are there")
    func bounded() {
        var path = Path()
        path.mostReceiving = 3
        path.run(20) { Double(min($0, 3)) * 1e6 }
        #expect(path.controller.target == 3)
    }

    @Test("A file that is nearly there is left to one connection")
    func short() {
        var controller = ConcurrencyController(.automatic)
        for tick in 1...3 {
            controller.observe(
                .init(bytes: Int64(tick) * 100_000, receiving: 1, bytesMissing: 250_000), now: .milliseconds(100 * tick)
            )
        }
        #expect(controller.target == 1)
    }

    @Test("A number is judged only once nearly so many connections receive")
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

    @Test("An origin that refuses more is asked for more after 10 s, then after 20 s")
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

    @Test("Where every one brings something none is given back, however rates vary", arguments: UInt64(0)..<10)
    func keepsWhatHelps(seed: UInt64) {
        var (path, generator) = (Path(), SplitMix64(seed: seed))
        for _ in 0..<1200 {
            let factor = Double.random(in: 0.96...1.04, using: &generator)
            path.tick { Double($0) * 5e4 * factor }
        }
        #expect(path.controller.target >= 28, "one by one they would all go")
    }

    @Test("What paid the last time is begun with, and more is tried later")
    func known() {
        var path = Path()
        path.controller = ConcurrencyController(.automatic, known: 6)
        #expect(path.controller.target == 1, "nothing has answered yet")
        path.controller.begin(requestCost: 0.02, now: .zero)
        #expect(path.controller.target == 6)
        path.run(9) { Double($0) * 1e6 }
        #expect(path.controller.target == 6 && path.controller.lesson == nil, "nothing was tried")
        path.run(30) { Double($0) * 1e6 }
        #expect(path.controller.target == 32 && path.controller.lesson == 32)
        var fixed = ConcurrencyController(.exactly(3), known: 6)
        fixed.begin(requestCost: 0.02, now: .zero)
        #expect(fixed.target == 3)
    }

    @Test("A lesson is what was found by trying: the knee, or what is not refused")
    func lesson() {
        var path = Path()
        #expect(path.controller.lesson == nil)
        path.run(60) { Double(min($0, 6)) * 2e6 }
        #expect(path.controller.lesson == 6)
        var bounded = Path()
        bounded.mostReceiving = 3
        bounded.run(20) { Double(min($0, 3)) * 1e6 }
        #expect(bounded.controller.lesson == nil, "others have a say in that")
        var refused = Path()
        refused.run(1) { Double($0) * 1e6 }
        refused.controller.refused(open: 2, now: refused.now)
        #expect(refused.controller.lesson == 2)
        var fixed = ConcurrencyController(.exactly(5))
        fixed.refused(open: 2, now: .zero)
        #expect(fixed.lesson == nil)
    }

    /// As nginx's `limit_rate` sends: each connection a second's worth at once, then nothing for a second.
    @Test("Connections that bring a second's bytes at once are not taken for ones that hinder each other")
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
        #expect(controller.target == 32, "and it stays so, though single windows bring nothing")
    }

    @Test("What is being tried when a file ends is no lesson")
    func untried() {
        var path = Path()
        while path.controller.target < 32 { path.tick { Double($0) * 1e6 } }
        #expect(path.controller.lesson == nil || path.controller.lesson == 4)
    }

    @Test("Where what is known is more than may be, it does with those that come")
    func knownTooMany() {
        var path = Path()
        path.controller = ConcurrencyController(.automatic, known: 32)
        path.controller.begin(requestCost: 0.02, now: .zero)
        path.mostReceiving = 6
        path.run(5) { Double(min($0, 6)) * 1e6 }
        #expect(path.controller.target == 6 && path.controller.lesson == nil)
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
        #expect(path.controller.target > 1 && path.controller.lesson != nil)
        path.controller.reopen()
        #expect(path.controller.lesson == nil)
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
