/// The rate and the connections of a download, steady enough to read.
///
/// The rate is an average in which older bytes count less. Both figures change at most once a second.
struct SteadyFigures {
    /// 5 s: longer than the bursts of a sender, and short enough to follow a lasting change within some seconds.
    private static let timeConstant: Duration = .seconds(5)
    /// 1 s: a figure that changes faster cannot be read.
    private static let refreshInterval: Duration = .seconds(1)
    /// 500 ms: a shorter span does not measure a rate.
    private static let spanMin: Duration = .milliseconds(500)

    private struct Sample {
        var time: Duration
        var bytes: Int64
    }

    private var first: Sample?
    private var last: Sample?
    /// The weighted sum of the rates so far, and the sum of their weights.
    private var sum = (rates: 0.0, weights: 0.0)
    private var connectionsMost = 0
    private var refreshedAt: Duration?

    /// In bytes per second; nil while too little has been measured.
    private(set) var rate: Double?
    /// The most connections in the last second: one that ends is usually replaced at once.
    private(set) var connections = 0

    /// Records the bytes and connections at a time. Fewer bytes than before begin a new measurement.
    mutating func record(bytes: Int64, connections: Int, at time: Duration) {
        guard let first = self.first, let last = self.last, bytes >= last.bytes else {
            self = SteadyFigures()
            self.first = Sample(time: time, bytes: bytes)
            self.last = self.first
            self.connections = connections
            self.connectionsMost = connections
            return
        }
        self.connectionsMost = max(self.connectionsMost, connections)
        if self.connections == 0 { self.connections = connections }
        guard time > last.time else { return }
        let span = time - last.time
        let kept = Self.timeConstant / (Self.timeConstant + span)
        let rate = Double(bytes - last.bytes) / (span / .seconds(1))
        self.sum.rates = self.sum.rates * kept + rate * (1 - kept)
        self.sum.weights = self.sum.weights * kept + 1 - kept
        self.last = Sample(time: time, bytes: bytes)
        let isDue = self.refreshedAt.map { time - $0 >= Self.refreshInterval } ?? (time - first.time >= Self.spanMin)
        guard isDue else { return }
        self.refreshedAt = time
        self.rate = self.sum.rates / self.sum.weights
        self.connections = self.connectionsMost
        self.connectionsMost = connections
    }
}
