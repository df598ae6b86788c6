/// Giving up connections that others are to have, and telling how many more would be of use.
extension Fetching {
    /// A connection that is done so soon is waited for: to close it would cost a request and free it hardly sooner.
    static let yieldPatience = 0.25

    /// The longest such a connection is waited for: it may turn out slower than it was.
    static let yieldTimeout: Duration = .milliseconds(500)

    /// How many connections are open beyond those wanted.
    var surplus: Int {
        self.outcome == nil ? self.leases.count { $0.phase != .ending && $0.yieldsBy == nil } - self.target : 0
    }

    /// Gives up the connection with which least is lost: one that is nearly done, else one that has brought nothing yet, else
    /// the one with most left. What is being written is written and claimed.
    mutating func yield(among held: [LeaseID], now: Duration) -> (lease: LeaseID, actions: [DownloadAction])? {
        guard self.outcome == nil, !self.isSingleStream else { return nil }
        let candidates = self.leases.indices.filter { index in
            let lease = self.leases[index]
            return lease.phase != .ending && lease.yieldsBy == nil && held.contains(lease.id)
        }
        let nearlyDone = candidates.filter { (self.timeLeft(self.leases[$0]) ?? .infinity) < Self.yieldPatience }
        if let index = nearlyDone.min(by: { self.remaining($0) < self.remaining($1) }) {
            self.leases[index].yieldsBy = now + Self.yieldTimeout
            return (self.leases[index].id, [])
        }
        let asked = candidates.last { self.leases[$0].phase == .requested }
        guard let index = asked ?? candidates.max(by: { self.remaining($0) < self.remaining($1) }) else { return nil }
        let id = self.leases[index].id
        return (id, self.revoke(id, .yielding))
    }

    /// Ends the patience with connections that were to be done soon.
    mutating func endPatience(now: Duration) -> [DownloadAction] {
        self.leases.filter { $0.phase != .ending && now >= $0.yieldsBy ?? .seconds(Int64.max) }
            .flatMap { self.revoke($0.id, .yielding) }
    }

    private func remaining(_ index: Int) -> Int64 {
        self.plan[self.leases[index].order.segment]?.remaining ?? 0
    }

    /// Seconds until a lease is done, absent while unknown.
    private func timeLeft(_ lease: Lease) -> Double? {
        guard lease.phase == .receiving, let rate = lease.meter.rate, rate > 0,
            let segment = self.plan[lease.order.segment]
        else { return nil }
        return Double(segment.remaining) / rate
    }
}

extension DownloadStateMachine {
    /// Gives up one of the connections named, if any of them can be.
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

    /// How many connections are open beyond those wanted for this file.
    var surplus: Int {
        if case .fetching(let fetching) = self.state { fetching.surplus } else { 0 }
    }

    /// How many connections it would make use of at once, were they free; no more than `max` are counted.
    func appetite(max: Int, now: Duration) -> Int {
        // Asked of a copy, so that what it would do is what it will do.
        var trial = self
        var count = 0
        while count < max, trial.nextFetch(now: now) != nil { count += 1 }
        guard count == 0 else { return count }
        let wouldCut = trial.steal(now: now).contains { if case .narrow = $0 { true } else { false } }
        return wouldCut ? 1 : 0
    }

    /// Takes another wish of the user as to how many connections fetch the file.
    mutating func update(segments: DownloadOptions.Segments) -> [DownloadAction] {
        self.settings.segments = segments
        return self.updateFetching { fetching in
            fetching.settings.segments = segments
            if fetching.isSegmented { fetching.controller.update(segments) }
            return []
        }
    }

    /// What limited the rate has changed: whether more connections pay is looked at anew.
    mutating func reconsiderConnections() -> [DownloadAction] {
        self.updateFetching { fetching in
            fetching.controller.reopen()
            return []
        }
    }
}
