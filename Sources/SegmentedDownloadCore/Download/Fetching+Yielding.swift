/// Gives up connections that other downloads should have, and reports how many more this one could use.
extension Fetching {
    /// A connection with less time left, in seconds, is not closed. Closing it costs a request and frees it hardly
    /// sooner.
    static let yieldPatienceSeconds = 0.25

    /// How long such a connection is awaited at most, because it may be slower than predicted.
    static let yieldTimeout: Duration = .milliseconds(500)

    /// The number of open connections above the target.
    var surplus: Int {
        self.outcome == nil ? self.leases.count { $0.phase != .ending && $0.yieldsBy == nil } - self.target : 0
    }

    /// Gives up the connection that costs the least: one that is nearly done, else one without a response, else the one
    /// with the most left.
    ///
    /// Bytes being written are still written and claimed. Nil if no connection can be given up.
    mutating func yield(among held: [LeaseID], now: Duration) -> (lease: LeaseID, actions: [DownloadAction])? {
        guard self.outcome == nil, !self.isSingleStream else { return nil }
        let candidates = self.leases.indices.filter { index in
            let lease = self.leases[index]
            return lease.phase != .ending && lease.yieldsBy == nil && held.contains(lease.id)
        }
        let nearlyDone = candidates.filter { (self.timeLeft(self.leases[$0]) ?? .infinity) < Self.yieldPatienceSeconds }
        if let index = nearlyDone.min(by: { self.remaining($0) < self.remaining($1) }) {
            self.leases[index].yieldsBy = now + Self.yieldTimeout
            return (self.leases[index].id, [])
        }
        let asked = candidates.last { self.leases[$0].phase == .requested }
        guard let index = asked ?? candidates.max(by: { self.remaining($0) < self.remaining($1) }) else { return nil }
        let id = self.leases[index].id
        return (id, self.revoke(id, .yielding))
    }

    /// Closes connections that were awaited too long.
    mutating func endPatience(now: Duration) -> [DownloadAction] {
        self.leases.filter { $0.phase != .ending && now >= $0.yieldsBy ?? .seconds(Int64.max) }
            .flatMap { self.revoke($0.id, .yielding) }
    }

    private func remaining(_ index: Int) -> Int64 {
        self.plan[self.leases[index].order.segment]?.remaining ?? 0
    }

    /// Seconds until a lease ends, absent if unknown.
    private func timeLeft(_ lease: Lease) -> Double? {
        guard lease.phase == .receiving, let rate = lease.meter.rate, rate > 0,
            let segment = self.plan[lease.order.segment]
        else { return nil }
        return Double(segment.remaining) / rate
    }
}

extension DownloadStateMachine {
    /// Gives up one of the given connections. Nil if none can be given up.
    mutating func yield(among held: [LeaseID], now: Duration) -> (lease: LeaseID, actions: [DownloadAction])? {
        switch self.state {
        case .probing(var probing):
            guard let lease = probing.lease, lease.revocation == nil, held.contains(lease.id) else { return nil }
            probing.lease?.revocation = .yielding
            self.state = .probing(probing)
            return (lease.id, [.revoke(lease.id)])
        case .fetching(var fetching):
            let yielding = fetching.yield(among: held, now: now)
            self.state = .fetching(fetching)
            return yielding
        case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting:
            return nil
        }
    }

    /// The number of open connections above the number wanted for this file.
    var surplus: Int {
        if case .fetching(let fetching) = self.state { fetching.surplus } else { 0 }
    }

    /// The number of additional connections it could use now, counted up to `max`.
    func additionalConnectionsUsable(max: Int, now: Duration) -> Int {
        // Runs on a copy, so that the prediction equals what would happen.
        var trial = self
        var count = 0
        while count < max, trial.nextFetch(now: now) != nil { count += 1 }
        guard count == 0 else { return count }
        let wouldCut = trial.steal(now: now).contains { if case .narrow = $0 { true } else { false } }
        return wouldCut ? 1 : 0
    }

    /// Applies the user's new setting for the number of connections.
    mutating func update(segments: DownloadOptions.Segments) -> [DownloadAction] {
        self.context.settings.segments = segments
        return self.updateFetching { fetching in
            if fetching.mode != .stream { fetching.traffic.controller.update(segments) }
            return []
        }
    }

    /// Repeats the search for the number of connections, because a rate limit has changed.
    mutating func reconsiderConnections() -> [DownloadAction] {
        self.updateFetching { fetching in
            fetching.traffic.controller.reopen()
            return []
        }
    }
}
