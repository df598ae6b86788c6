/// How many bytes may come in a second: in all, from each host, for each file; and who of those that wait is next.
///
/// A token bucket for each limit, and among the downloads start-time fair queueing: each has a clock of its own that runs the
/// slower the higher its priority, and the one whose clock is furthest behind goes first. A bucket lets a piece through as
/// soon as it holds anything at all, and owes the rest: so what passes in *any* span is at most the rate times the span,
/// one burst and one piece.
package struct RateBudget: Hashable, Sendable {
    /// Bytes a second, absent for no limit.
    package struct Limits: Hashable, Sendable {
        package var total: Int64?
        package var perHost: Int64?

        package init(total: Int64? = nil, perHost: Int64? = nil) {
            self.total = total.map { max($0, 1) }
            self.perHost = perHost.map { max($0, 1) }
        }
    }

    /// Names one wait for permission.
    package struct Ticket: Hashable, Sendable {
        package let rawValue: Int
    }

    /// Permission to take so many bytes: fewer than were asked for, if the rate has been lowered since.
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
    /// These are looked up by key only, never iterated.
    private var hosts: [String: RateBucket] = [:]
    private var files: [DownloadID: RateBucket] = [:]
    private var weights: [DownloadID: Double] = [:]
    private var clocks: [DownloadID: Double] = [:]
    /// In the order they came; as many as there are connections.
    private var waiting: [Waiting] = []
    /// Where the clock stood of the download whose piece passed last.
    private var clock = 0.0
    private var filesLimited = 0
    private var ticketNext = 0

    package init() {}

    /// Whether there is any limit at all.
    package var isLimited: Bool { self.limits != Limits() || self.filesLimited > 0 }

    /// Whether a ticket has neither been granted nor withdrawn.
    package func isWaiting(_ ticket: Ticket) -> Bool { self.waiting.contains { $0.ticket == ticket } }

    // MARK: Adjusting

    package mutating func update(_ limits: Limits, now: Duration) {
        if limits.perHost != self.limits.perHost { self.hosts = [:] }
        self.total = RateBucket.adjusted(self.total, to: limits.total, now: now)
        self.limits = limits
    }

    /// Limits one file, or takes its limit back.
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

    /// A download has ended; nothing is kept of it.
    package mutating func forget(_ download: DownloadID) {
        if self.files.removeValue(forKey: download) != nil { self.filesLimited -= 1 }
        self.weights[download] = nil
        self.clocks[download] = nil
    }

    // MARK: Passing

    /// The longest piece that may pass at once under a limit of so many bytes a second.
    package static func pieceLength(_ rate: Int64) -> Int { RateBucket.pieceLength(rate) }

    /// The longest piece that may pass at once without making the flow jerky.
    package func pieceLength(_ download: DownloadID, host: String) -> Int {
        var length = Int.max
        for rate in [self.limits.total, self.limits.perHost, self.files[download]?.rate] {
            if let rate { length = min(length, RateBucket.pieceLength(rate)) }
        }
        return length
    }

    /// Waits for permission to take `length` bytes; ``grant(now:)`` tells when it is there, and for how many.
    package mutating func request(_ length: Int, for download: DownloadID, host: String) -> Ticket {
        let ticket = Ticket(rawValue: self.ticketNext)
        self.ticketNext += 1
        // Who comes after a rest starts with the others, and has saved up nothing.
        if !self.waiting.contains(where: { $0.download == download }) {
            self.clocks[download] = max(self.clock, self.clocks[download] ?? 0)
        }
        self.waiting.append(Waiting(ticket: ticket, download: download, host: host, length: length))
        return ticket
    }

    /// Waits no longer.
    package mutating func withdraw(_ ticket: Ticket) {
        self.waiting.removeAll { $0.ticket == ticket }
    }

    private static let weightDefault = 0.5

    /// Lets through whatever may pass now, in the order of fairness.
    package mutating func grant(now: Duration) -> [Grant] {
        var granted: [Grant] = []
        while let index = self.next(now: now) {
            let waiting = self.waiting.remove(at: index)
            let length = min(waiting.length, self.pieceLength(waiting.download, host: waiting.host))
            self.total?.take(length, now: now)
            self.files[waiting.download]?.take(length, now: now)
            if let rate = self.limits.perHost {
                self.hosts[waiting.host, default: RateBucket(rate: rate, now: now)].take(length, now: now)
            }
            // Counted as it passes, not as it comes, so that another weight takes effect at once.
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

    /// When the first of those that wait may pass, if anybody waits.
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

/// One limit: what may pass now, or how much is owed.
struct RateBucket: Hashable, Sendable {
    /// Credit that was not used is kept for so long: the delay of a timer on a busy machine costs nothing then, and no burst
    /// is more than 2 % of what may pass in five seconds.
    static let burst: Duration = .milliseconds(100)

    /// A piece is no longer than what may pass in this time, so that bytes come as a flow.
    static let pieceDuration: Duration = .milliseconds(50)

    /// 1 KiB: shorter pieces would cost more than they smooth, at a rate at which nobody sees it.
    static let pieceLengthMin = 1 << 10

    let rate: Int64
    /// In bytes; below zero where more has passed than was there.
    private var level: Double
    private var updatedAt: Duration

    init(rate: Int64, now: Duration) {
        self.rate = rate
        self.level = 0
        self.updatedAt = now
    }

    static func pieceLength(_ rate: Int64) -> Int {
        max(Int(clamping: Int64(Double(rate) * Self.pieceDuration.inSeconds)), Self.pieceLengthMin)
    }

    /// The bucket with another rate: neither more credit than that allows nor more debt than one of its pieces.
    static func adjusted(_ bucket: RateBucket?, to rate: Int64?, now: Duration) -> RateBucket? {
        guard let rate else { return nil }
        guard let bucket else { return RateBucket(rate: rate, now: now) }
        var adjusted = RateBucket(rate: rate, now: now)
        adjusted.level = min(
            max(bucket.level(at: now), -Double(Self.pieceLength(rate))), Double(rate) * Self.burst.inSeconds)
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

    /// When a piece may pass.
    func passesAt(now: Duration) -> Duration {
        let level = self.level(at: now)
        // A nanosecond more than the quotient, which is rounded: waiting until then is always enough.
        return level >= 0 ? now : now + .seconds(-level / Double(self.rate)) + .nanoseconds(1)
    }
}
