/// Limits the bytes received per second: in total, from each host and for each file.
///
/// Each limit is a token bucket. Waiting downloads are ordered by start-time fair queueing: each has a virtual clock
/// that advances more slowly the higher its priority, and the lowest clock goes first. A bucket that holds any credit
/// lets a whole chunk pass and goes into debt for the rest. In *any* span, therefore, at most the rate times the span
/// plus one burst and one chunk passes.
package struct RateBudget: Hashable, Sendable {
    /// Bytes per second, absent for no limit.
    package struct Limits: Hashable, Sendable {
        package var total: Int64?
        package var perHost: Int64?

        package init(total: Int64? = nil, perHost: Int64? = nil) {
            self.total = total.map { max($0, 1) }
            self.perHost = perHost.map { max($0, 1) }
        }
    }

    /// Identifies a request for permission.
    package struct Ticket: Hashable, Sendable {
        package let rawValue: Int
    }

    /// Permission to receive `length` bytes. It is less than requested if the rate was lowered meanwhile.
    package struct Grant: Hashable, Sendable {
        package let ticket: Ticket
        package let length: Int
    }

    private struct Waiting: Hashable {
        let ticket: Ticket
        let download: DownloadID
        let host: String
        let length: Int
    }

    private var limits = Limits()
    private var total: RateBucket?
    /// These are accessed only by key, never iterated, so that runs can be replayed.
    private var hosts: [String: RateBucket] = [:]
    private var files: [DownloadID: RateBucket] = [:]
    private var weights: [DownloadID: Double] = [:]
    private var clocks: [DownloadID: Double] = [:]
    /// In the order of arrival; at most one for each connection.
    private var waiting: [Waiting] = []
    /// The clock of the download whose chunk passed last.
    private var clock = 0.0
    private var filesLimited = 0
    private var ticketNext = 0

    package init() {}

    /// Whether any limit is set.
    package var isLimited: Bool { self.limits != Limits() || self.filesLimited > 0 }

    /// Whether a ticket is neither granted nor withdrawn.
    package func isWaiting(_ ticket: Ticket) -> Bool { self.waiting.contains { $0.ticket == ticket } }

    // MARK: Adjusting

    package mutating func update(_ limits: Limits, now: Duration) {
        if limits.perHost != self.limits.perHost { self.hosts = [:] }
        self.total = RateBucket.adjusted(self.total, to: limits.total, now: now)
        self.limits = limits
    }

    /// Sets or removes the limit of one file.
    package mutating func update(_ download: DownloadID, bytesPerSecond: Int64?, now: Duration) {
        let before = self.files[download]
        let after = RateBucket.adjusted(before, to: bytesPerSecond.map { max($0, 1) }, now: now)
        self.filesLimited += (after == nil ? 0 : 1) - (before == nil ? 0 : 1)
        self.files[download] = after
    }

    package mutating func update(_ download: DownloadID, weight: Double) {
        precondition(weight > 0)
        self.weights[download] = weight
    }

    /// Removes the state of a download that has ended.
    package mutating func forget(_ download: DownloadID) {
        if self.files.removeValue(forKey: download) != nil { self.filesLimited -= 1 }
        self.weights[download] = nil
        self.clocks[download] = nil
    }

    // MARK: Passing

    /// The longest chunk that may pass at once under a limit in bytes per second.
    package static func chunkLength(_ rate: Int64) -> Int { RateBucket.chunkLength(rate) }

    /// The longest chunk that may pass at once under all limits of a download.
    package func chunkLength(_ download: DownloadID, host: String) -> Int {
        var length = Int.max
        for rate in [self.limits.total, self.limits.perHost, self.files[download]?.rate] {
            if let rate { length = min(length, RateBucket.chunkLength(rate)) }
        }
        return length
    }

    /// Requests permission to receive `length` bytes, which ``grant(now:)`` later gives.
    package mutating func request(_ length: Int, for download: DownloadID, host: String) -> Ticket {
        let ticket = Ticket(rawValue: self.ticketNext)
        self.ticketNext += 1
        // A download that was idle starts level with the others: unused time is not credited.
        if !self.waiting.contains(where: { $0.download == download }) {
            self.clocks[download] = max(self.clock, self.clocks[download] ?? 0)
        }
        self.waiting.append(Waiting(ticket: ticket, download: download, host: host, length: length))
        return ticket
    }

    /// Withdraws a request.
    package mutating func withdraw(_ ticket: Ticket) {
        self.waiting.removeAll { $0.ticket == ticket }
    }

    private static let weightDefault = 0.5

    /// Grants all requests that may pass now, in fair order.
    package mutating func grant(now: Duration) -> [Grant] {
        var granted: [Grant] = []
        while let index = self.next(now: now) {
            let waiting = self.waiting.remove(at: index)
            let length = min(waiting.length, self.chunkLength(waiting.download, host: waiting.host))
            self.total?.take(length, now: now)
            self.files[waiting.download]?.take(length, now: now)
            if let rate = self.limits.perHost {
                self.hosts[waiting.host, default: RateBucket(rate: rate, now: now)].take(length, now: now)
            }
            // The clock advances when a chunk passes, not when it is requested, so that a new weight takes effect at
            // once.
            let clock = self.clocks[waiting.download] ?? self.clock
            self.clock = max(self.clock, clock)
            self.clocks[waiting.download] =
                clock + Double(length) / (self.weights[waiting.download] ?? Self.weightDefault)
            granted.append(Grant(ticket: waiting.ticket, length: length))
        }
        return granted
    }

    private func next(now: Duration) -> Int? {
        self.waiting.indices.filter { self.passesAt(self.waiting[$0], now: now) <= now }
            .min { (self.clock(of: $0), $0) < (self.clock(of: $1), $1) }
    }

    private func clock(of index: Int) -> Double { self.clocks[self.waiting[index].download] ?? self.clock }

    /// The earliest time at which a waiting request may pass, absent if none waits.
    package func grantsAt(now: Duration) -> Duration? {
        self.waiting.map { self.passesAt($0, now: now) }.min()
    }

    private func passesAt(_ waiting: Waiting, now: Duration) -> Duration {
        var time = now
        if let total { time = max(time, total.passesAt(now: now)) }
        if self.limits.perHost != nil, let host = self.hosts[waiting.host] { time = max(time, host.passesAt(now: now)) }
        if let file = self.files[waiting.download] { time = max(time, file.passesAt(now: now)) }
        return time
    }
}

/// A token bucket for one limit.
struct RateBucket: Hashable, Sendable {
    /// Unused credit is kept for this long, so that late timers on a busy machine cost no throughput. A burst is at
    /// most 2 % of what may pass in five seconds.
    static let burst: Duration = .milliseconds(100)

    /// The longest chunk is what may pass in this time, so that bytes flow evenly.
    static let chunkDuration: Duration = .milliseconds(50)

    /// 1 KiB: shorter chunks cost more than they smooth, and at such low rates the difference is not visible.
    static let chunkLengthMin = 1 << 10

    let rate: Int64
    /// The credit in bytes, negative if more has passed than was available.
    private var level: Double
    private var updatedAt: Duration

    init(rate: Int64, now: Duration) {
        self.rate = rate
        self.level = 0
        self.updatedAt = now
    }

    static func chunkLength(_ rate: Int64) -> Int {
        max(Int(clamping: Int64(Double(rate) * Self.chunkDuration.inSeconds)), Self.chunkLengthMin)
    }

    /// The bucket with another rate. Its credit is limited to a burst at the new rate, its debt to one chunk.
    static func adjusted(_ bucket: RateBucket?, to rate: Int64?, now: Duration) -> RateBucket? {
        guard let rate else { return nil }
        guard let bucket else { return RateBucket(rate: rate, now: now) }
        var adjusted = RateBucket(rate: rate, now: now)
        adjusted.level = min(
            max(bucket.level(at: now), -Double(Self.chunkLength(rate))), Double(rate) * Self.burst.inSeconds)
        return adjusted
    }

    private func level(at now: Duration) -> Double {
        let earned = Double(self.rate) * max(now - self.updatedAt, .zero).inSeconds
        return min(self.level + earned, Double(self.rate) * Self.burst.inSeconds)
    }

    mutating func take(_ length: Int, now: Duration) {
        self.level = self.level(at: now) - Double(length)
        self.updatedAt = now
    }

    /// The earliest time at which a chunk may pass.
    func passesAt(now: Duration) -> Duration {
        let level = self.level(at: now)
        // One nanosecond is added because the quotient is rounded: waiting until then must be enough.
        return level >= 0 ? now : now + .seconds(-level / Double(self.rate)) + .nanoseconds(1)
    }
}
