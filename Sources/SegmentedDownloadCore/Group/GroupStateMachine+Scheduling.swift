/// Decides which download starts next and which gets the next connection.
///
/// The next connection goes to the download with the fewest for its weight, so a download without any comes first. This
/// also keeps many small files from waiting behind a few large ones: a small file, or one of unknown length, gets its
/// only connection before a large one gets its second. While a download is surveying its destination, a connection is
/// reserved for it.
extension GroupStateMachine {
    /// 8 MiB: a shorter file is complete before a second connection would help. It also gets no manifest until its first
    /// checkpoint.
    static let briefLength: Int64 = 8 << 20

    mutating func schedule(now: Duration) {
        self.startQueued(now: now)
        guard self.budget.free > 0 else { return }
        // Most of the time, all have what they need.
        var candidates = self.active.filter { self.mayUseConnection($0) }
        guard !candidates.isEmpty else { return }
        var kept = self.keptConnections()
        var idle: [Int] = []
        var running = self.running
        while let place = self.neediest(candidates) {
            let index = candidates[place]
            let held = self.entries[index].held
            let allHosts = self.entries[index].machine.settings.hosts
            let hosts = allHosts.filter { host in
                let isFurther = held > 0 && self.isServed(index, by: host)
                return self.budget.allows(host, isFurther: isFurther, now: now)
                    && (held == 0 || self.leaves(kept, host))
            }
            let isProbing = self.entries[index].machine.isProbing
            guard !(isProbing && !self.mayProbe(index, beside: running)), !hosts.isEmpty else {
                candidates.remove(at: place)
                continue
            }
            if let order = self.entries[index].machine.nextFetch(now: now, isOpen: { hosts.contains($0) }) {
                if isProbing { running.append(index) }
                self.open(order, of: index, now: now)
                continue
            }
            candidates.remove(at: place)
            // Cutting a running response only to try one more connection costs more than the trial is worth.
            guard let host = hosts.first(where: { self.budget.allowsWithoutTrial($0, now: now) }) else { continue }
            let before = self.outbox.count
            self.update(index, now: now) { $0.steal(now: now) }
            // The victim answers with the new limit within a moment. Until then the connection is reserved.
            if self.outbox[before...].contains(where: \.isNarrowing) { kept.append(host) } else { idle.append(index) }
        }
        self.hedge(idle, keeping: kept, now: now)
    }

    /// Whether one more connection may be of use to a download.
    private func mayUseConnection(_ index: Int) -> Bool {
        self.entries[index].mayUseConnection
            && !(self.entries[index].held > 0 && self.entries[index].machine.isProbing)
    }

    /// Requests late bytes again over connections that have no other use.
    private mutating func hedge(_ idle: [Int], keeping kept: [String], now: Duration) {
        for index in idle {
            while true {
                let hosts = self.entries[index].machine.settings.hosts.filter { host in
                    self.budget.allowsWithoutTrial(host, now: now) && self.leaves(kept, host)
                }
                guard self.budget.free > kept.count, !hosts.isEmpty,
                    let order = self.entries[index].machine.nextHedge(now: now, isOpen: { hosts.contains($0) })
                else { break }
                self.open(order, of: index, now: now)
            }
        }
    }

    private mutating func open(_ order: FetchOrder, of index: Int, now: Duration) {
        let host = self.entries[index].machine.settings.hosts[order.source.rawValue]
        self.budget.reserve(host, isFurther: self.isServed(index, by: host), now: now)
        self.holdings.append(
            Holding(
                download: self.entries[index].id, lease: order.lease, source: order.source, host: host))
        self.entries[index].held += 1
        self.entries[index].isAdmitted = true
        self.outbox.append(.fetch(self.entries[index].id, order))
    }

    /// Whether a host of a job serves a connection of the download, so that further ones need not keep to the pace.
    private func isServed(_ index: Int, by host: String) -> Bool {
        guard self.limits.tasks > 1 else { return false }
        let id = self.entries[index].id
        return self.holdings.contains { $0.download == id && $0.host == host && $0.wasAccepted }
    }

    /// The candidate with the fewest connections for its weight; of two, the one that was refused least recently, and
    /// else the earlier one.
    private func neediest(_ candidates: [Int]) -> Int? {
        let need = { (index: Int) in
            // Reads the fields one by one, because copying an entry retains the whole state of a download.
            (
                Double(self.entries[index].held) / self.entries[index].weight, self.entries[index].refusals.lastAt,
                self.entries[index].id
            )
        }
        return candidates.indices.min { need(candidates[$0]) < need(candidates[$1]) }
    }

    // MARK: Starting

    /// Starts queued downloads while there is room.
    ///
    /// A file that could not get a connection is not started, so that those already started finish first. If there is no
    /// room otherwise, files that wait for a closed host do not count; they keep only files of closed hosts from starting.
    private mutating func startQueued(now: Duration) {
        guard !self.queue.isEmpty else { return }
        var counting = self.active
        if !self.hasRoom(beside: counting) { counting.removeAll { self.waits($0, now: now) } }
        guard self.hasRoom(beside: counting) else { return }
        var needing = counting.count { self.entries[$0].machine.phase != .ending }
        while self.hasRoom(beside: counting), needing < self.limits.connections,
            let index = self.nextQueued(isExtra: counting.count >= self.limits.downloads, now: now)
        {
            needing += 1
            counting.append(index)
            self.entries[index].isShort = self.expectsShort
            self.entries[index].isAdmitted = self.expectsShort
            self.update(index, now: now) { $0.start() }
        }
    }

    /// - Parameter isExtra: Whether ``Limits/downloads`` files are being fetched, so that a further one needs a connection
    ///   of its own.
    private mutating func nextQueued(isExtra: Bool, now: Duration) -> Int? {
        guard self.active.count >= self.limits.downloads else { return self.queue.next() }
        // Only the first one is examined, because this happens at each event.
        if isExtra, let head = self.queue.head, !self.isClosed(head, now: now) {
            return self.hasConnection(for: head, now: now) ? self.queue.next() : nil
        }
        let index = self.queue.first { index in
            !self.isClosed(index, now: now) && (!isExtra || self.hasConnection(for: index, now: now))
        }
        if let index { self.queue.take(index) }
        return index
    }

    /// The started downloads that have had a connection, or need none yet.
    var running: [Int] {
        self.active.filter { !self.entries[$0].machine.isProbing || self.entries[$0].held > 0 }
    }

    /// 1 MiB: shorter files take round trips rather than bandwidth, so that more of them at once are faster. It is also
    /// the length up to which a file is kept in memory.
    package static let shortLength: Int64 = 1 << 20

    /// Whether one more file may be fetched beside others.
    private func hasRoom(beside files: [Int]) -> Bool {
        guard files.count >= self.limits.downloads else { return true }
        guard files.count < self.limits.shortDownloads else { return false }
        return files.count { !self.entries[$0].isShort } < self.limits.downloads
    }

    /// Whether a file that is probing may make its request.
    ///
    /// A probe that was told to stop may still be connected. The next one would be a second connection. The first one
    /// of a file that did not count waits until there is room for it. A file that had a connection, or was started as a
    /// short one, is not held up if others turn out to be long.
    func mayProbe(_ index: Int, beside running: [Int]) -> Bool {
        guard self.entries[index].held == 0 else { return false }
        if self.entries[index].isAdmitted, running.count < self.limits.shortDownloads { return true }
        return self.hasRoom(beside: running)
    }

    /// Whether the host of a queued download allows a connection for it, besides one for each file that has been started.
    private func hasConnection(for index: Int, now: Duration) -> Bool {
        let host = self.entries[index].machine.settings.host
        let files = self.active.count {
            self.entries[$0].machine.phase != .ending && self.entries[$0].machine.settings.host == host
        }
        let held = self.holdings.count { $0.host == host }
        // A trial of one more connection than the host served before is made only while all are in use.
        return files < held + self.budget.free(host) || files <= held && self.budget.allows(host, now: now)
    }

    /// Records whether a file is short, once its first response has shown it.
    mutating func noteShort(_ index: Int) {
        guard let isShort = self.entries[index].machine.isShort else { return }
        self.entries[index].isShort = isShort
        self.expectsShort = isShort
    }

    /// Whether a download that has no part yet waits for closed hosts.
    private func waits(_ index: Int, now: Duration) -> Bool {
        self.entries[index].machine.isProbing && self.entries[index].held == 0 && self.isClosed(index, now: now)
    }

    private func isClosed(_ index: Int, now: Duration) -> Bool {
        self.entries[index].machine.settings.hosts.allSatisfy { now < self.budget.closedUntil($0) }
    }

    /// The hosts of downloads that will soon ask for their first connection, one entry for each reserved connection.
    private func keptConnections() -> [String] {
        let hasNext = !self.queue.isEmpty
        return self.active.compactMap { index in
            guard self.entries[index].held == 0 else { return nil }
            let isNext = hasNext && self.entries[index].isBrief && self.entries[index].machine.phase == .ending
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
    /// Whether it has at most ``GroupStateMachine/shortLength`` bytes; nil unless it is being fetched. A file of
    /// unknown length may be long.
    fileprivate var isShort: Bool? {
        guard case .fetching(let fetching) = self.state else { return nil }
        return fetching.plan.completeLength.map { $0 <= GroupStateMachine.shortLength } ?? false
    }

    /// Whether it is in a state in which it may make requests.
    var mayFetch: Bool {
        switch self.state {
        case .probing, .fetching: true
        case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting: false
        }
    }
}
