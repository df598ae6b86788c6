/// Decisions that depend on time: progress, stalls, late heads.
extension Fetching {
    /// Records the progress of leases.
    mutating func observe(_ observations: [LeaseObservation], now: Duration) {
        for seen in observations {
            guard let index = self.leases.firstIndex(where: { $0.id == seen.lease }) else { continue }
            let lease = self.leases[index]
            let received = self.leases[index].observe(seen, now: now)
            self.traffic.noteReceived(received, isHeld: seen.isHeld, now: now)
            if seen.isHeld || seen.isWriting { self.traffic.restartSpeed(now: now) }
            if seen.position > lease.writesFrom, lease.order.request.lowerBound < lease.order.writesFrom {
                self.proving.proof.end()
            }
            // Compared bytes do not reset the failures. They are received again with each attempt, so failures would
            // never add up.
            if seen.position > lease.position {
                self.sources[lease.order.source].failures = 0
                self.sources[lease.order.source].noteWritten(seen.position - lease.position, now: now)
            }
            self.plan.advance(lease.order.segment, to: seen.position)
        }
    }

    /// The measurements for ``ConcurrencyController``.
    var observation: ConcurrencyController.Observation {
        ConcurrencyController.Observation(
            bytes: self.traffic.bytesReceived, receiving: self.receiving, bytesMissing: self.plan.bytesMissing,
            requestCost: self.traffic.path.pathCost, headTime: self.traffic.path.requestCost, newcomer: self.newcomer)
    }

    /// The average number of bytes that the connections on trial had received at the age at which the first one was
    /// joined by others; nil while a quarter of them is younger.
    private var newcomer: Double? {
        guard let age = self.traffic.controller.aloneTime else { return nil }
        let new = self.leases.filter {
            $0.phase == .receiving && !$0.order.isSample && $0.startedAt >= self.traffic.controller.grewAt
        }
        let received: [Double] = new.compactMap { lease in
            guard let headAt = lease.headAt else { return nil }
            return lease.meter.count(at: headAt + age).map { $0 - Double(lease.writesFrom) }
        }
        guard !received.isEmpty, 4 * received.count >= 3 * new.count else { return nil }
        return received.reduce(0, +) / Double(received.count)
    }

    /// Handles a tick: replaces stalled and slow connections, ends hedges and advances comparisons.
    mutating func tick(now: Duration) -> [DownloadAction] {
        guard self.outcome == nil else { return self.outcome == .complete ? self.endWithoutEnds(now: now) : [] }
        self.traffic.controller.observe(self.observation, now: now)
        var actions = self.endLateHeads(now: now)
        for lease in self.leases where lease.phase == .receiving {
            if now - lease.progressAt > self.settings.stallTimeout { actions += self.revoke(lease.id, .stalled) }
        }
        actions += self.enforceSpeed(now: now)
        guard self.outcome == nil else { return actions }
        actions += self.endPatience(now: now) + self.replaceLaggard(now: now)
        actions += self.replaceSilent(now: now) + self.endHedges()
        actions += self.endConfirmation(now: now)
        actions += self.reviseIfSettled() + self.replaceReference() + self.settleDisputes()
        if self.proving.owesRecord, !self.awaitsProof, self.revision == nil {
            self.proving.owesRecord = false
            actions += self.revise(withdrawing: [], remarks: true)
        }
        self.finishIfComplete()
        return actions
    }

    /// Closes connections whose response heads take too long.
    private mutating func endLateHeads(now: Duration) -> [DownloadAction] {
        guard self.leases.contains(where: { $0.phase == .requested }) else { return [] }
        // A hedge asks for the bytes of another request.
        let open = self.leases.count { $0.phase != .ending && !$0.isWaitingHedge }
        let slowest = Duration.seconds(self.traffic.path.slowestHead)
        var actions: [DownloadAction] = []
        for lease in self.leases where lease.phase == .requested {
            let isOnly = open <= 1 && !self.sources.hasUnfailed(besides: lease.order.source)
            let patience = self.settings.options.headPatience(isOnly: isOnly, slowest: slowest)
            if now - lease.startedAt > patience { actions += self.revoke(lease.id, .headTooSlow(patience)) }
        }
        return actions
    }

    /// Replaces connections that are slower than the user allows, and fails if all together are.
    private mutating func enforceSpeed(now: Duration) -> [DownloadAction] {
        // Comparisons after the last byte transfer little.
        guard let minimum = self.settings.speedMinimum, !self.plan.isComplete else { return [] }
        let time = self.settings.speedTime
        // Between two attempts nothing can arrive.
        if self.leases.isEmpty { self.traffic.restartSpeed(now: now) }
        if self.traffic.isTooSlow(minimum: minimum, time: time, now: now) {
            let what = "fewer than \(minimum) bytes per second arrived for \(time.inSeconds) s"
            let host = self.sources[self.sources.reference].host
            self.outcome = .failed(DownloadError(.network, "\(host): \(what)", isTransient: true))
            return []
        }
        let slow = self.leases.indices.filter { index in
            // A connection without a byte is replaced as a stalled one, which counts a failure.
            self.leases[index].phase == .receiving && self.leases[index].hasProgressed
                && self.leases[index].speedWindow.isTooSlow(
                    bytes: self.leases[index].bytesReceived, minimum: minimum, time: time, now: now)
        }
        return slow.flatMap { self.revoke(self.leases[$0].id, .tooSlow) }
    }

    /// Replaces connections without a response, if a request made no earlier was answered long ago.
    private mutating func replaceSilent(now: Duration) -> [DownloadAction] {
        guard self.mode.servesRanges else { return [] }
        let patience = self.traffic.silencePatience
        let silent = self.leases.filter { lease in
            lease.phase == .requested && !lease.order.isSample && lease.order.hedged == nil
                && now - lease.startedAt > patience
                && self.sources[lease.order.source].answeredRequest.map { $0 >= lease.startedAt } ?? false
        }
        guard !silent.isEmpty else { return [] }
        self.traffic.noteSilence()
        return silent.flatMap { self.revoke($0.id, .silent) }
    }

    mutating func revoke(_ id: LeaseID, _ reason: Lease.Revocation) -> [DownloadAction] {
        guard let index = self.leases.firstIndex(where: { $0.id == id }), self.leases[index].phase != .ending else {
            return []
        }
        self.leases[index].phase = .ending
        self.leases[index].revocation = reason
        return [.revoke(id)]
    }

    /// 1 s: how long a complete file waits for the ends of responses whose last bytes have arrived. Trailers may follow them.
    static let endPatience: Duration = .seconds(1)

    /// Closes the connections of a complete file whose responses have further bytes.
    mutating func revokeUnfinished() -> [DownloadAction] {
        self.leases.filter { !$0.hasLastByte }.flatMap { self.revoke($0.id, .stopping) }
    }

    /// Closes the connections of a complete file whose responses do not end.
    private mutating func endWithoutEnds(now: Duration) -> [DownloadAction] {
        self.leases.filter { now - $0.progressAt >= Self.endPatience }.flatMap { self.revoke($0.id, .stopping) }
    }

    /// Closes all connections, because the download stops temporarily or finally.
    mutating func revokeAll() -> [DownloadAction] {
        self.leases.map(\.id).flatMap { self.revoke($0, .stopping) }
    }

    func lease(_ id: LeaseID) -> Lease? {
        self.leases.first { $0.id == id }
    }
}
