/// When and from which connection a free connection takes work, and which slow connection is replaced.
struct WorkStealing: Hashable, Sendable {
    /// The interval between attempts to take work, so that connections that end together do not cause a busy loop.
    static let spacing: Duration = .milliseconds(100)

    /// How long a connection may lag before it is replaced, and the first interval between two replacements.
    static let replacementPatience: Duration = .seconds(1)

    /// A connection this many times slower than the median is worth replacing.
    static let laggardFactor = 5.0

    /// A file shorter than this many of the smallest segments (2 MiB at the default of 16 KiB) is not cut that small.
    static let briefSegments: Int64 = 128

    /// A segment is worth its request if it takes a connection this many seconds or this many times a request's cost.
    static let segmentTimeSeconds = 1.0
    static let segmentCosts = 4.0

    private var stealAt: Duration = .zero
    private(set) var replaceAt: Duration
    private(set) var replacements = 0

    init(beganAt: Duration) {
        self.replaceAt = beganAt + Self.replacementPatience
    }

    // MARK: Taking work

    /// Whether an attempt may be made now.
    func isDue(now: Duration) -> Bool { now >= self.stealAt }

    /// Decides from which connection work is taken, or which one is replaced. Nil if waiting is as good.
    ///
    /// - Parameter free: The number of free connections. They share the work. Taking it one after the other would halve
    ///   the rest again and again.
    mutating func proposal(
        among candidates: [SegmentSplitter.Candidate], splitter: SegmentSplitter, path: PathStatistics, free: Int,
        now: Duration
    ) -> SegmentSplitter.Proposal? {
        let proposal = splitter.proposal(
            among: candidates, ratesBefore: path.ratesBefore, requestCost: path.requestCost, free: free,
            mayReplace: now >= self.replaceAt)
        switch proposal {
        case .none:
            self.postpone(now: now)
        case .split:
            self.stealAt = now
        case .replace:
            self.postpone(now: now)
            self.noteReplacement(now: now)
        }
        return proposal
    }

    /// Records that there was no work to take.
    mutating func postpone(now: Duration) { self.stealAt = now + Self.spacing }

    // MARK: Lengths of segments

    /// The planner for the current speeds: the slower the connections, the smaller the segments, down to the user's
    /// minimum.
    ///
    /// - Parameter rates: Those of connections whose rate no longer grows.
    static func planner(_ settings: DownloadSettings, rates: [Double], requestCost: Double) -> SegmentPlanner {
        let (least, most) = (settings.stealLengthMinimum, settings.planLengthMinimum)
        guard least < most, let rate = SegmentSplitter.middle(rates), rate > 0 else {
            // On a long path a connection receives little before it becomes fast.
            let isLong = requestCost >= ConcurrencyController.longRequestSeconds
            return SegmentPlanner(splitLengthMinimum: isLong ? max(most / 4, least) : most)
        }
        let worth = rate * max(Self.segmentTimeSeconds, Self.segmentCosts * requestCost)
        return SegmentPlanner(splitLengthMinimum: worth < Double(most) ? max(Int64(worth), least) : most)
    }

    /// The splitter for a file. Near the end of a short file, smaller segments are not worth their requests.
    static func splitter(
        _ settings: DownloadSettings, planner: SegmentPlanner, completeLength: Int64?
    ) -> SegmentSplitter {
        let isBrief = (completeLength ?? 0) / Self.briefSegments < settings.stealLengthMinimum
        return SegmentSplitter(planner: planner, stealLengthMinimum: isBrief ? nil : settings.stealLengthMinimum)
    }

    // MARK: Replacing

    /// The slowest connection, if it is much slower than the others and has much left. Nil if none may be replaced now.
    ///
    /// - Parameters:
    ///   - running: The connections that receive segments.
    ///   - remaining: The bytes that a connection has left, absent if its segment is no longer in the plan.
    func laggard(
        among running: [Lease], stallTimeout: Duration, now: Duration, remaining: (Lease) -> Int64?
    ) -> LeaseID? {
        guard now >= self.replaceAt else { return nil }
        let rates = running.compactMap { $0.meter.rate }
        guard rates.count >= 2, let middle = SegmentSplitter.middle(rates) else { return nil }
        let laggards = running.filter { lease in
            guard let rate = lease.meter.rate, let remaining = remaining(lease) else { return false }
            let left = Double(remaining)
            return now - lease.startedAt > Self.replacementPatience
                && lease.heldAt.map { now - $0 >= ThroughputMeter.window } ?? true
                && now - lease.progressAt < stallTimeout
                && rate * Self.laggardFactor < middle && left > rate * 2 * Self.replacementPatience.inSeconds
        }
        return laggards.min { ($0.meter.rate ?? 0, $0.id) < ($1.meter.rate ?? 0, $1.id) }?.id
    }

    /// Records that a connection is replaced.
    ///
    /// The interval doubles each time, because an origin may always serve one of its connections slowly.
    mutating func noteReplacement(now: Duration) {
        self.replacements += 1
        self.replaceAt = now + Self.replacementPatience * (1 << min(self.replacements, 6))
    }
}
