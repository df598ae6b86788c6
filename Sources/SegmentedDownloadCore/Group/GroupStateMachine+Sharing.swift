/// Takes connections back: those above the limits, and those that another download should have for its weight.
///
/// A connection moves from one download to another only if the giver would then still have more for its weight than the
/// taker has now. The move back does not satisfy this condition, so connections do not oscillate.
extension GroupStateMachine {
    /// How long after a change connections are moved as fast as possible.
    static let settlingTime: Duration = .seconds(3)

    /// The time between two moves while nothing changes. Each then gains less than it costs.
    static let rebalanceSpacing: Duration = .seconds(2)

    /// One of this many connections, and at least one, may move at a tick, so all can move within two seconds.
    static let connectionsPerMove = 8

    mutating func noteChange(now: Duration) {
        self.settlesAt = now + Self.settlingTime
        self.rebalanceAt = now
    }

    // MARK: Connections above the limits

    /// Takes back the connections above the limits.
    ///
    /// A stream that cannot be resumed is left to finish, because all of its bytes would have to be fetched again.
    mutating func shed(now: Duration) {
        for index in self.active {
            for _ in 0..<max(self.entries[index].machine.surplus, 0) {
                let mine = self.holdings.filter { $0.download == self.entries[index].id && !$0.isEnding }
                guard self.giveUp(one: mine, of: index, now: now) else { break }
            }
        }
        while self.holdings.count(where: { !$0.isEnding }) > self.limits.connections,
            self.giveUpOne(host: nil, now: now)
        {}
        guard self.holdings.count > self.limits.connectionsPerHost else { return }
        var hosts: [String] = []
        for holding in self.holdings where !hosts.contains(holding.host) { hosts.append(holding.host) }
        for host in hosts {
            while self.holdings.count(where: { !$0.isEnding && $0.host == host }) > self.limits.connectionsPerHost,
                self.giveUpOne(host: host, now: now)
            {}
        }
    }

    /// Takes one connection, to the given host or to any, from the download with the most for its weight.
    private mutating func giveUpOne(host: String?, now: Duration) -> Bool {
        let live = self.live()
        let givers = self.active.indices.filter { live[$0] > 0 }.sorted { left, right in
            let (left, right) = (self.rank(left, live), self.rank(right, live))
            return left > right
        }
        for place in givers {
            let index = self.active[place]
            let mine = self.holdings.filter {
                $0.download == self.entries[index].id && !$0.isEnding && (host == nil || $0.host == host)
            }
            if self.giveUp(one: mine, of: index, now: now) { return true }
        }
        return false
    }

    /// The order in which downloads give up connections, highest first: by what each would keep for its weight. Of
    /// those that would keep none, one that is still probing comes first.
    private func rank(_ place: Int, _ live: [Int]) -> (Double, Int, Int) {
        let entry = self.entries[self.active[place]]
        return (Double(live[place] - 1) / entry.weight, entry.machine.isProbing ? 1 : 0, place)
    }

    private mutating func giveUp(one holdings: [Holding], of index: Int, now: Duration) -> Bool {
        var lease: LeaseID?
        self.update(index, now: now) { machine in
            guard let yielding = machine.yield(among: holdings.map(\.lease), now: now) else { return [] }
            lease = yielding.lease
            return yielding.actions
        }
        guard let lease, let holding = self.holding(self.entries[index].id, lease) else { return false }
        self.holdings[holding].isEnding = true
        return true
    }

    /// The number of connections not being given up, for each active download.
    private func live() -> [Int] {
        self.active.map { index in
            let id = self.entries[index].id
            return self.holdings.count { $0.download == id && !$0.isEnding }
        }
    }

    // MARK: Fairness

    /// Moves connections to downloads that have too few for their weight.
    mutating func rebalance(now: Duration) {
        guard self.active.count > 1, !self.holdings.isEmpty else { return }
        var live = self.live()
        // Connections already being given up will go to the first of these downloads.
        var coming = self.holdings.count(where: \.isEnding)
        // Demands cost more to find than this, and without a giver they lead to nothing.
        guard coming > 0 || live.contains(where: { $0 > 1 }) else { return }
        var demands = self.demands(now: now)
        guard !demands.isEmpty else { return }
        let isSettled = now >= self.settlesAt
        let movesMax = isSettled ? 1 : max(self.limits.connections / Self.connectionsPerMove, 1)
        var moves = 0
        while let demand = self.firstDemand(demands, live) {
            let taker = demands[demand].place
            if coming > 0 {
                coming -= 1
            } else {
                guard moves < movesMax, !isSettled || now >= self.rebalanceAt || live[taker] == 0,
                    let giver = self.giver(to: taker, demands[demand].host, live, now: now)
                else {
                    demands.remove(at: demand)
                    continue
                }
                live[giver] -= 1
                moves += 1
                if isSettled { self.rebalanceAt = now + Self.rebalanceSpacing }
            }
            live[taker] += 1
            demands[demand].count -= 1
            if demands[demand].count == 0 { demands.remove(at: demand) }
        }
    }

    private struct ConnectionDemand {
        /// The position in ``active``.
        let place: Int
        /// The host whose limit is reached, absent if the limit over all hosts is.
        let host: String?
        var count: Int
    }

    private func demands(now: Duration) -> [ConnectionDemand] {
        var running = self.running
        return self.active.indices.compactMap { place in
            let entry = self.entries[self.active[place]]
            guard entry.machine.mayFetch,
                !(entry.machine.isProbing && !self.mayProbe(self.active[place], beside: running))
            else { return nil }
            let host = entry.machine.settings.host
            let isHostShort: Bool
            switch self.budget.shortage(host, now: now) {
            case .total: isHostShort = false
            case .host: isHostShort = true
            case .closed, nil: return nil
            }
            let count = entry.machine.additionalConnectionsUsable(max: Self.connectionsPerMove, now: now)
            if count > 0, entry.machine.isProbing { running.append(self.active[place]) }
            return count == 0 ? nil : ConnectionDemand(place: place, host: isHostShort ? host : nil, count: count)
        }
    }

    private func firstDemand(_ demands: [ConnectionDemand], _ live: [Int]) -> Int? {
        demands.indices.min { self.has(demands[$0].place, live) < self.has(demands[$1].place, live) }
    }

    private func has(_ place: Int, _ live: [Int]) -> Double {
        Double(live[place]) / self.entries[self.active[place]].weight
    }

    /// Takes a connection from the download with the most for its weight, if it would still have more than the taker.
    private mutating func giver(to taker: Int, _ host: String?, _ live: [Int], now: Duration) -> Int? {
        let givers = self.active.indices.filter { place in
            place != taker && live[place] > 1
                && Double(live[place] - 1) / self.entries[self.active[place]].weight > self.has(taker, live)
        }
        for place in givers.sorted(by: { self.rank($0, live) > self.rank($1, live) }) {
            let index = self.active[place]
            let mine = self.holdings.filter {
                $0.download == self.entries[index].id && !$0.isEnding && (host == nil || $0.host == host)
            }
            if self.giveUp(one: mine, of: index, now: now) { return place }
        }
        return nil
    }
}
