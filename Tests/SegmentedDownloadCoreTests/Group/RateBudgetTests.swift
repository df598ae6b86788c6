import SegmentedDownloadCore
import Testing

@Suite("Rate limits")
struct RateBudgetTests {
    /// Some connections per download that always request bytes, and a timer that is late at times.
    private struct Flow {
        var budget = RateBudget()
        var now: Duration = .zero
        var generator: SplitMix64
        /// The granted chunks and their times.
        var passed: [(at: Duration, download: Int, length: Int)] = []
        private var waiting: [(ticket: RateBudget.Ticket, download: Int)] = []
        let lateness: Int

        init(seed: UInt64, lateness: Int = 0) {
            self.generator = SplitMix64(seed: seed)
            self.lateness = lateness
        }

        static func host(_ download: Int) -> String { download % 2 == 0 ? "even" : "odd" }

        mutating func ask(_ download: Int) {
            let id = DownloadID(download)
            let length = min(self.budget.chunkLength(id, host: Self.host(download)), 1 << 20)
            let ticket = self.budget.request(length, for: id, host: Self.host(download))
            self.waiting.append((ticket, download))
        }

        /// Advances the time; granted requests are repeated at once.
        mutating func run(for time: Duration) {
            let end = self.now + time
            while self.now < end {
                for grant in self.budget.grant(now: self.now) {
                    guard let index = self.waiting.firstIndex(where: { $0.ticket == grant.ticket }) else { continue }
                    let chunk = self.waiting.remove(at: index)
                    self.passed.append((self.now, chunk.download, grant.length))
                    self.ask(chunk.download)
                }
                let late = Duration.milliseconds(Int.random(in: 0...self.lateness, using: &self.generator))
                let next = self.budget.grantsAt(now: self.now) ?? end
                self.now = min(max(next, self.now) + late, end)
            }
        }

        func bytes(_ download: Int? = nil, from start: Duration = .zero, to end: Duration = .seconds(1 << 20)) -> Int {
            self.passed.reduce(0) { sum, chunk in
                let counts = chunk.at >= start && chunk.at < end && (download == nil || chunk.download == download)
                return sum + (counts ? chunk.length : 0)
            }
        }

        /// The largest deviation from `rate` over any span of five seconds, as a fraction of it.
        func deviation(from rate: Int64, in range: Range<Int>) -> Double {
            var worst = 0.0
            for start in stride(from: range.lowerBound, through: range.upperBound - 5000, by: 100) {
                let bytes = self.bytes(from: .milliseconds(start), to: .milliseconds(start + 5000))
                worst = max(worst, abs(Double(bytes) / (5 * Double(rate)) - 1))
            }
            return worst
        }
    }

    @Test(
        "Over any five seconds the rate is within five percent of the limit",
        arguments: [100 << 10, 1 << 20, 10_000_000, 100 << 20] as [Int64], [1, 8])
    func accuracy(rate: Int64, files: Int) {
        // 20 ms: the delay of a timer on a busy machine.
        var flow = Flow(seed: UInt64(rate), lateness: 20)
        flow.budget.update(.init(total: rate), now: .zero)
        for file in 0..<files {
            for _ in 0..<4 { flow.ask(file) }
        }
        flow.run(for: .seconds(15))
        let deviation = flow.deviation(from: rate, in: 0..<15_000)
        #expect(deviation < 0.05)
    }

    @Test("Unused rate is lost, except for a tenth of a second")
    func burst() {
        let rate: Int64 = 1 << 20
        var flow = Flow(seed: 1)
        flow.budget.update(.init(total: rate), now: .zero)
        flow.ask(0)
        flow.run(for: .seconds(1))
        let before = flow.bytes()
        flow.now += .seconds(3600)
        flow.run(for: .milliseconds(1))
        #expect(flow.bytes() - before <= Int(Double(rate) * 0.25))
    }

    @Test("Downloads share a limit in proportion to their weights", arguments: UInt64(0)..<20)
    func fairness(seed: UInt64) {
        var flow = Flow(seed: seed, lateness: 5)
        flow.budget.update(.init(total: 1 << 20), now: .zero)
        let weights = (0..<Int.random(in: 2...8, using: &flow.generator)).map { _ in
            Double(Int.random(in: 1...20, using: &flow.generator)) / 20
        }
        for (file, weight) in weights.enumerated() {
            flow.budget.update(DownloadID(file), weight: weight)
            // The number of connections does not affect the share.
            for _ in 0..<Int.random(in: 1...8, using: &flow.generator) { flow.ask(file) }
        }
        flow.run(for: .seconds(20))
        let total = Double(flow.bytes())
        for (file, weight) in weights.enumerated() {
            let share = Double(flow.bytes(file)) / total
            let due = weight / weights.reduce(0, +)
            #expect(abs(share - due) < 0.02, "replay with \(seed)")
        }
    }

    @Test("A download that starts later gets its share, but not what it missed")
    func latecomer() {
        var flow = Flow(seed: 1)
        flow.budget.update(.init(total: 1 << 20), now: .zero)
        flow.ask(0)
        flow.run(for: .seconds(60))
        flow.ask(1)
        flow.run(for: .seconds(10))
        let (first, second) = (flow.bytes(0, from: .seconds(60)), flow.bytes(1, from: .seconds(60)))
        #expect(abs(Double(first) / Double(second) - 1) < 0.05)
    }

    @Test("Each host and each file has a limit of its own, in addition to the total")
    func layers() {
        var flow = Flow(seed: 1)
        flow.budget.update(.init(total: 10 << 20, perHost: 4 << 20), now: .zero)
        flow.budget.update(DownloadID(1), bytesPerSecond: 1 << 20, now: .zero)
        for file in 0..<4 { flow.ask(file) }
        flow.run(for: .seconds(10))
        let (even, odd) = (flow.bytes(0) + flow.bytes(2), flow.bytes(1) + flow.bytes(3))
        #expect(abs(Double(even) / Double(40 << 20) - 1) < 0.03)
        #expect(abs(Double(odd) / Double(40 << 20) - 1) < 0.03)
        #expect(abs(Double(flow.bytes(1)) / Double(10 << 20) - 1) < 0.03)
    }

    @Test("A changed limit applies at once", arguments: [(10 << 20, 100 << 10), (100 << 10, 10 << 20)])
    func change(before: Int, after: Int) {
        var flow = Flow(seed: 1)
        flow.budget.update(.init(total: Int64(before)), now: .zero)
        for file in 0..<3 { flow.ask(file) }
        flow.run(for: .seconds(5))
        flow.budget.update(.init(total: Int64(after)), now: flow.now)
        // Pieces requested under the old rate are cut to the new length.
        flow.run(for: .seconds(15))
        let deviation = flow.deviation(from: Int64(after), in: 5000..<20_000)
        #expect(deviation < 0.05)
    }

    @Test("Without a limit every request is granted at once, as are waiting ones when the last limit is lifted")
    func lifted() {
        var budget = RateBudget()
        let free = budget.request(1 << 30, for: DownloadID(0), host: "a")
        #expect(budget.grant(now: .zero).map(\.ticket) == [free])
        budget.update(.init(total: 1), now: .zero)
        budget.update(DownloadID(0), bytesPerSecond: 1, now: .zero)
        #expect(budget.isLimited)
        let first = budget.request(1000, for: DownloadID(0), host: "a")
        let second = budget.request(1000, for: DownloadID(0), host: "a")
        #expect(budget.grant(now: .zero).map(\.ticket) == [first])
        budget.update(.init(), now: .zero)
        #expect(budget.grant(now: .zero).map(\.ticket) == [])
        budget.update(DownloadID(0), bytesPerSecond: nil, now: .zero)
        #expect(budget.grant(now: .zero).map(\.ticket) == [second])
        #expect(!budget.isLimited)
    }

    @Test("A withdrawn request is not granted, and costs its download nothing")
    func withdrawn() {
        var budget = RateBudget()
        budget.update(.init(total: 1000), now: .zero)
        let first = budget.request(1000, for: DownloadID(0), host: "a")
        let second = budget.request(1000, for: DownloadID(0), host: "a")
        let other = budget.request(1000, for: DownloadID(1), host: "a")
        let third = budget.request(1000, for: DownloadID(1), host: "a")
        #expect(budget.grant(now: .zero).map(\.ticket) == [first])
        budget.withdraw(second)
        #expect(!budget.isWaiting(second))
        let again = budget.request(1000, for: DownloadID(0), host: "a")
        // Each request is granted when the previous one is paid for; the two downloads alternate.
        #expect(budget.grant(now: .milliseconds(999)).map(\.ticket) == [])
        #expect(budget.grant(now: .milliseconds(1001)).map(\.ticket) == [other])
        #expect(budget.grant(now: .milliseconds(2003)).map(\.ticket) == [third])
        #expect(budget.grant(now: .milliseconds(3005)).map(\.ticket) == [again])
    }

    @Test("A download that has ended leaves no limit behind")
    func forgotten() {
        var budget = RateBudget()
        budget.update(DownloadID(0), bytesPerSecond: 1, now: .zero)
        budget.forget(DownloadID(0))
        #expect(!budget.isLimited)
        #expect(budget == RateBudget())
    }

    @Test("Who comes back after a rest shares with the others from then on, and is owed nothing")
    func returning() {
        var budget = RateBudget()
        budget.update(.init(total: 1 << 20), now: .zero)
        var now = Duration.zero
        func pass(_ budget: inout RateBudget) -> [RateBudget.Ticket] {
            now = budget.grantsAt(now: now) ?? now
            return budget.grant(now: now).map(\.ticket)
        }
        _ = budget.request(1 << 14, for: DownloadID(0), host: "a")
        _ = pass(&budget)
        for _ in 0..<100 {
            _ = budget.request(1 << 14, for: DownloadID(1), host: "a")
            _ = pass(&budget)
        }
        var owners: [RateBudget.Ticket: Int] = [:]
        for download in [1, 0] {
            for _ in 0..<20 { owners[budget.request(1 << 14, for: DownloadID(download), host: "a")] = download }
        }
        var passed: [Int] = []
        while passed.count < 20 { passed += pass(&budget).compactMap { owners[$0] } }
        #expect((9...11).contains(passed.prefix(20).count { $0 == 0 }))
    }

    @Test("A chunk is a twentieth of a second's bytes under the lowest of the limits, and a kibibyte at least")
    func chunkLength() {
        var budget = RateBudget()
        #expect(budget.chunkLength(DownloadID(0), host: "a") == .max && !budget.isLimited)
        budget.update(.init(total: 1_000_000, perHost: 400_000), now: .zero)
        #expect(budget.chunkLength(DownloadID(0), host: "a") == 20_000)
        budget.update(DownloadID(0), bytesPerSecond: 100_000, now: .zero)
        #expect(budget.chunkLength(DownloadID(0), host: "a") == 5000)
        #expect(budget.chunkLength(DownloadID(1), host: "a") == 20_000)
        budget.update(DownloadID(0), bytesPerSecond: 1000, now: .zero)
        #expect(budget.chunkLength(DownloadID(0), host: "a") == 1 << 10)
        budget.update(.init(), now: .zero)
        #expect(budget.isLimited)
        budget.update(DownloadID(0), bytesPerSecond: nil, now: .zero)
        #expect(!budget.isLimited)
    }
}
