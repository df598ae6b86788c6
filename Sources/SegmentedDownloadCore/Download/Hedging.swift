/// Which late segment a free connection requests again, and how many bytes may be fetched twice for that.
struct Hedging: Hashable, Sendable {
    /// At most 1/50 of the file is fetched twice. When a hedge takes over, the bytes it delivers are no longer counted.
    static let share: Int64 = 50

    /// 16 KiB: the cost of a request in addition to its bytes. It limits the number of hedges, however small each is.
    static let requestLength: Int64 = 16 << 10

    /// Waiting must take this many times as long as a new request.
    static let gain = 1.5

    /// Two ticks, in seconds: a connection without a byte for this long may be silent.
    static let silenceMinimumSeconds = 0.2

    /// A head may take this many times as long as the fastest one.
    static let headSpread = 4.0

    /// Half a tick, in seconds: a connection that ends sooner is not taken over.
    static let takeoverMinimumSeconds = 0.05

    /// The pause after an unsuccessful hedge.
    static let pause: Duration = .seconds(1)

    /// The number of bytes that were or may be fetched twice.
    private(set) var length: Int64 = 0
    /// When the next hedge may be made after an unsuccessful one.
    private(set) var nextAt: Duration = .zero

    // MARK: Whether

    /// Whether a hedge may be made now.
    func isDue(now: Duration) -> Bool { now >= self.nextAt }

    /// Whether a file is long enough for so many more bytes to be fetched twice.
    func allows(_ length: Int64, of completeLength: Int64?) -> Bool {
        length + Self.requestLength <= (completeLength ?? 0) / Self.share - self.length
    }

    /// Records a request for so many bytes that another connection is fetching.
    mutating func begin(_ length: Int64) { self.length += length + Self.requestLength }

    /// Records that a hedge delivers so many bytes instead of the other connection.
    mutating func takeOver(_ length: Int64) { self.length -= length }

    /// Records an unsuccessful hedge.
    mutating func postpone(now: Duration) { self.nextAt = now + Self.pause }

    // MARK: Which

    /// The segment for which a new request saves the most time. Nil if none is worth it.
    ///
    /// - Parameters:
    ///   - candidates: Incomplete segments, each with the lease that fetches it.
    ///   - leases: All connections, whose rates show how fast a new one will be.
    func latest(
        among candidates: [(lease: Lease, segment: Segment)], leases: [Lease], path: PathStatistics,
        completeLength: Int64?, now: Duration
    ) -> Segment? {
        let affordable = candidates.filter { self.allows($0.segment.remaining, of: completeLength) }
        guard !affordable.isEmpty, let rate = path.rateExpected(with: leases) else { return nil }
        var latest: (segment: Segment, saved: Double)?
        for (lease, segment) in affordable {
            let anew = Self.timeAnew(segment.remaining, rate: rate, path: path)
            guard let left = Self.timeLeft(lease, segment.remaining, path: path, now: now),
                left > max(SegmentSplitter.timeLeftMinimum, path.requestCost), left > Self.gain * anew,
                left - anew > latest?.saved ?? 0
            else { continue }
            latest = (segment, left - anew)
        }
        return latest?.segment
    }

    /// Whether a connection is still late when the head of its hedge's response has arrived.
    static func isLate(
        _ lease: Lease, _ remaining: Int64, leases: [Lease], path: PathStatistics, now: Duration
    ) -> Bool {
        guard lease.phase != .ending, let left = Self.timeLeft(lease, remaining, path: path, now: now),
            let rate = path.rateExpected(with: leases)
        else { return false }
        let anew = Self.timeAnew(remaining, rate: rate, path: path)
        return left > max(anew - path.requestCost, Self.takeoverMinimumSeconds)
    }

    /// Seconds until a lease ends. A silent lease is assumed to stay silent for as long again.
    static func timeLeft(_ lease: Lease, _ remaining: Int64, path: PathStatistics, now: Duration) -> Double? {
        let isAsked = lease.phase == .requested
        let silence = (now - (isAsked ? lease.startedAt : lease.progressAt)).inSeconds
        let patience = max(Self.silenceMinimumSeconds, (isAsked ? Self.headSpread : 2) * path.requestCost)
        // A connection without bytes is silent, not slow. A new connection will become faster.
        let isCold = path.isCold(lease, costs: Self.headSpread, now: now)
        let rate = isAsked || isCold ? nil : lease.meter.rate.flatMap { $0 > 0 ? $0 : nil }
        let moving = rate.map { Double(remaining) / $0 }
        return silence > patience ? max(silence, moving ?? 0) : moving
    }

    /// Seconds that a new request for the rest of a segment would take.
    private static func timeAnew(_ remaining: Int64, rate: Double, path: PathStatistics) -> Double {
        path.requestCost + Double(remaining) / rate
    }
}
