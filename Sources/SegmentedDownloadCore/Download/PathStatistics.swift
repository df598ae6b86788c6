/// What the connections of a download have shown about the path to its sources.
struct PathStatistics: Hashable, Sendable {
    /// 8, the number of connections of a typical download. Older rates say less about the present.
    static let ratesBeforeMax = 8

    /// How many times a request's cost the rate of a new connection grows.
    static let coldCosts = 2.0

    /// 2.5 s: four round trips by satellite. A head that takes longer waits for the server, which says nothing about the path.
    static let pathCostMax = 2.5

    /// The rates of the last finished connections in bytes per second.
    var ratesBefore: [Double] = []
    /// The shortest time from a request to its head, in seconds.
    var requestCost = 0.0
    /// The longest time from a request to its head, in seconds.
    var slowestHead = 0.0

    /// The part of ``requestCost`` that the path needs, as far as that is known.
    var pathCost: Double { self.requestCost > Self.pathCostMax ? 0 : self.requestCost }

    /// Seconds until the head of a request is expected. One that is late is assumed to need as long again, and one that is later
    /// than heads usually are is not expected any more.
    func timeToHead(of lease: Lease, now: Duration) -> Double {
        let elapsed = (now - lease.startedAt).inSeconds
        guard elapsed > self.requestCost else { return self.requestCost - elapsed }
        return elapsed > max(Hedging.silenceMinimumSeconds, Hedging.headSpread * self.requestCost) ? .infinity : elapsed
    }

    /// Records the time from a request to its head, in seconds.
    mutating func noteHead(cost: Double) {
        self.requestCost = self.requestCost == 0 ? cost : min(self.requestCost, cost)
        self.slowestHead = max(self.slowestHead, cost)
    }

    /// Records the rate of a connection that has done its work.
    mutating func noteRate(_ rate: Double) {
        self.ratesBefore = (self.ratesBefore + [rate]).suffix(Self.ratesBeforeMax)
    }

    /// The rates of the connections that receive now and of those that finished last.
    func rates(of leases: [Lease]) -> [Double] {
        leases.compactMap { $0.phase == .receiving ? $0.meter.rate : nil } + self.ratesBefore
    }

    /// The rate that a new connection is expected to reach. Absent until a connection has shown its speed.
    func rateExpected(with leases: [Lease]) -> Double? {
        SegmentSplitter.middle(self.rates(of: leases).filter { $0 > 0 })
    }

    /// Whether a connection has just begun, so that its rate is still growing.
    ///
    /// - Parameter costs: How many times a request's cost this phase lasts.
    func isCold(_ lease: Lease, costs: Double = Self.coldCosts, now: Duration) -> Bool {
        (now - lease.startedAt).inSeconds < costs * self.pathCost + ThroughputMeter.spanMinimum.inSeconds
    }
}
