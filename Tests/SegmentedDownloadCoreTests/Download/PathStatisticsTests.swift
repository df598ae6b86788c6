import Testing

@testable import SegmentedDownloadCore

@Suite("What connections have shown")
struct PathStatisticsTests {
    @Test("A request costs what the fastest head took, and the slowest one is kept too")
    func heads() {
        var path = PathStatistics()
        for cost in [0.3, 0.1, 0.2] { path.noteHead(cost: cost) }
        #expect(path.requestCost == 0.1 && path.slowestHead == 0.3)
    }

    @Test("A head that takes longer than any path waits for the server; a late one is expected to need as long again")
    func serverTime() {
        var path = PathStatistics()
        path.noteHead(cost: PathStatistics.pathCostMax)
        #expect(path.pathCost == PathStatistics.pathCostMax)
        path = PathStatistics()
        path.noteHead(cost: 6)
        #expect(path.pathCost == 0 && path.requestCost == 6)
        let lease = Lease.sample(0, startedAt: .seconds(10))
        #expect(path.timeToHead(of: lease, now: .seconds(12)) == 4)
        #expect(path.timeToHead(of: lease, now: .seconds(18)) == 8)
        #expect(path.timeToHead(of: lease, now: .seconds(35)) == .infinity)
    }

    @Test("The rates of the last eight finished connections are kept")
    func rates() {
        var path = PathStatistics()
        for rate in 1...10 { path.noteRate(Double(rate)) }
        #expect(path.ratesBefore == (3...10).map(Double.init))
    }

    @Test("A rate counts while its connection receives, before those of finished ones")
    func running() {
        var path = PathStatistics()
        path.noteRate(5)
        var ending = Lease.sample(2, rate: 7, now: .seconds(1))
        ending.phase = .ending
        let leases = [Lease.sample(0, rate: 9, now: .seconds(1)), Lease.sample(1), ending]
        #expect(path.rates(of: leases) == [9, 5])
    }

    @Test("A new connection is expected to be as fast as the middle one of those that bring anything")
    func expected() {
        var path = PathStatistics()
        #expect(path.rateExpected(with: [Lease.sample(0)]) == nil)
        path.noteRate(0)
        #expect(path.rateExpected(with: []) == nil)
        path.noteRate(3)
        path.noteRate(5)
        #expect(path.rateExpected(with: [Lease.sample(0, rate: 9, now: .seconds(1))]) == 5)
    }
}
