/// Who is started, and who gets the next connection.
///
/// The next connection goes to the download that has fewest for its weight, so that one that has none comes before any that
/// has one. That is also what keeps a thousand small files from waiting behind three large ones: a file whose length is not
/// known yet, or is small, gets its only connection before a large one gets its second, and while it is looked up at the
/// destination, a connection is kept for it. `downloads` stays a hard limit: there is no second way in beside it.
extension GroupStateMachine {
    /// 8 MiB: a file so short is fetched before a second connection would pay. So long, too, it has no manifest.
    static let briefLength: Int64 = 8 << 20

    mutating func schedule(now: Duration) {
        self.startQueued(now: now)
        guard self.budget.free > 0 else { return }
        var kept = self.keptConnections()
        var candidates = self.active.filter { self.entries[$0].machine.mayFetch }
        var idle: [Int] = []
        while let place = self.neediest(candidates) {
            let index = candidates[place]
            let held = self.entries[index].held
            let allHosts = self.entries[index].machine.settings.hosts
            let hosts = allHosts.filter { host in
                self.budget.allows(host, now: now) && (held == 0 || self.leaves(kept, host))
            }
            // A probe told to stop may not have hung up yet: the next one would be a second connection.
            guard !(held > 0 && self.entries[index].machine.isProbing), !hosts.isEmpty else {
                candidates.remove(at: place)
                continue
            }
            if let order = self.entries[index].machine.nextFetch(now: now, isOpen: { hosts.contains($0) }) {
                self.open(order, of: index)
                continue
            }
            candidates.remove(at: place)
            // To cut a running response only to try whether one more is allowed would cost more than it teaches.
            guard let host = hosts.first(where: { self.budget.allowsWithoutTrial($0, now: now) }) else { continue }
            let before = self.outbox.count
            self.update(index, now: now) { $0.steal(now: now) }
            // What it cuts off is known in a moment; the connection for it is not given away before.
            if self.outbox[before...].contains(where: \.isNarrowing) { kept.append(host) } else { idle.append(index) }
        }
        self.hedge(idle, keeping: kept, now: now)
    }

    /// Asks again for what is late, over connections that nobody has another use for.
    private mutating func hedge(_ idle: [Int], keeping kept: [String], now: Duration) {
        for index in idle {
            while true {
                let hosts = self.entries[index].machine.settings.hosts.filter { host in
                    self.budget.allowsWithoutTrial(host, now: now) && self.leaves(kept, host)
                }
                guard self.budget.free > kept.count, !hosts.isEmpty,
                    let order = self.entries[index].machine.nextHedge(now: now, isOpen: { hosts.contains($0) })
                else { break }
                self.open(order, of: index)
            }
        }
    }

    private mutating func open(_ order: FetchOrder, of index: Int) {
        let host = self.entries[index].machine.settings.hosts[order.source.rawValue]
        self.budget.reserve(host)
        self.holdings.append(Holding(download: self.entries[index].id, lease: order.lease, host: host))
        self.entries[index].held += 1
        self.outbox.append(.fetch(self.entries[index].id, order))
    }

    /// The candidate that has fewest connections for its weight, the earlier one of two.
    private func neediest(_ candidates: [Int]) -> Int? {
        let need = { (index: Int) in
            // Field by field: an entry holds a whole download's state, and a copy of it retains all of that.
            (Double(self.entries[index].held) / self.entries[index].weight, self.entries[index].id)
        }
        return candidates.indices.min { need(candidates[$0]) < need(candidates[$1]) }
    }

    // MARK: Starting

    /// Starts who waits, while there is room. A file that could not even get a connection is not begun: those that are begun
    /// are finished first.
    private mutating func startQueued(now: Duration) {
        guard !self.queue.isEmpty, self.active.count < self.limits.downloads else { return }
        var needing = self.active.count { self.entries[$0].machine.standing != .ending }
        while self.active.count < self.limits.downloads, needing < self.limits.connections,
            let index = self.queue.next()
        {
            needing += 1
            self.update(index, now: now) { $0.start() }
        }
    }

    /// A connection each, by host, for those that will ask for their first one in a moment.
    private func keptConnections() -> [String] {
        let hasNext = !self.queue.isEmpty
        return self.active.compactMap { index in
            guard self.entries[index].held == 0 else { return nil }
            let isNext = hasNext && self.entries[index].isBrief && self.entries[index].machine.standing == .ending
            guard isNext || self.entries[index].machine.isSurveying else { return nil }
            return self.entries[index].machine.settings.host
        }
    }

    private func leaves(_ kept: [String], _ host: String) -> Bool {
        guard !kept.isEmpty else { return true }
        let keptByHost = kept.count { $0 == host }
        return self.budget.free > kept.count && (keptByHost == 0 || self.budget.free(host) > keptByHost)
    }
}

extension GroupAction {
    fileprivate var isNarrowing: Bool {
        if case .download(_, .narrow) = self { true } else { false }
    }
}

extension DownloadStateMachine {
    /// Whether it may have requests to make.
    var mayFetch: Bool {
        switch self.state {
        case .probing, .fetching: true
        case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting: false
        }
    }
}
