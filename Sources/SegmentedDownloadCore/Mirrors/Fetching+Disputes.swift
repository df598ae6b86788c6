/// Decides which of two contradicting sources is right. The contributor of the byte is looked up only then.
extension Fetching {
    /// Handles a compared byte that differs from the one on disk.
    mutating func differs(_ offset: Int64, _ byte: UInt8, at source: SourceID) -> [DownloadAction] {
        // A byte that is being withdrawn is not evidence.
        guard self.isBelieved(offset) else { return [] }
        let accused = self.contributor(of: offset)
        guard self.sources.hasMirrors || accused != .source(.first), accused != .source(source) else {
            self.outcome = .changed("its byte \(offset) differs from the one fetched before")
            return []
        }
        // Nothing useful has been written yet, so the part on disk is set aside.
        if self.awaitsProof, !self.sources.hasMirrors {
            self.outcome = .otherFile("byte \(offset) differs")
            return []
        }
        self.comparisons.disputes.add(Dispute(differingSource: source, offset: offset, byte: byte))
        return self.settleDisputes()
    }

    /// Whether a byte is on disk, is not being withdrawn, and is not from a quarantined source.
    private func isBelieved(_ offset: Int64) -> Bool {
        guard self.plan.segments.contains(where: { $0.lowerBound <= offset && offset < $0.position }),
            !self.withdrawals.contains(offset)
        else { return false }
        guard case .source(let id) = self.contributor(of: offset) else { return true }
        return self.sources[id].trust != .quarantined
    }

    /// Ends all comparisons while bytes are being withdrawn, because correct bytes would contradict the wrong ones on
    /// disk. They are made again afterwards.
    mutating func endSamples() -> [DownloadAction] {
        self.comparisons.disputes.cancel()
        let samples = self.leases.filter(\.order.isSample).map(\.id)
        let actions = samples.flatMap { self.revoke($0, .stopping) }
        // Includes samples that are ending for another reason, because they may have been answered.
        for index in self.leases.indices where self.leases[index].order.isSample {
            self.leases[index].revocation = .stopping
        }
        return actions
    }

    /// The contributor of a byte: the source of a lease that is still writing there, else the one in ``sources``.
    func contributor(of offset: Int64) -> SourceTable.Contributor {
        let writer = self.leases.first { lease in
            !lease.order.isSample && lease.writesFrom <= offset && offset < lease.position
        }
        return writer.map { .source($0.order.source) } ?? self.sources.contributor(of: offset)
    }

    // MARK: Arbitration

    /// The sources that may decide a dispute. Those that were compared themselves come first.
    private func arbiters(of dispute: Dispute) -> [SourceID] {
        let accused = self.contributor(of: dispute.offset)
        let reference = self.sources[self.sources.reference]
        let candidates = self.sources.ids.filter { id in
            guard id != dispute.differingSource, .source(id) != accused, !self.sources[id].isGone else { return false }
            // The contributor of an earlier run's bytes is unknown. Any source but the reference might be arbitrating
            // its own bytes. Without a reference that is better than to reject the differing source at once.
            if case .earlier = accused, !reference.isGone { return id == self.sources.reference }
            return true
        }
        return candidates.filter { self.sources[$0].isUsable } + candidates.filter { !self.sources[$0].isUsable }
    }

    /// The request that asks a third source, if a dispute is open and an arbiter may be asked now.
    mutating func nextArbitration(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        guard let dispute = self.comparisons.disputes.next, self.isBelieved(dispute.offset),
            let arbiter = self.arbiters(of: dispute).first(where: { id in
                self.sources[id].retryAt <= now && isOpen(self.sources[id].host)
            })
        else { return nil }
        let order = self.sample(dispute.offset..<(dispute.offset + 1), from: arbiter, now: now)
        self.comparisons.disputes.ask(order.lease)
        return order
    }

    /// An arbiter's answer: it has the byte on disk, or sent another one.
    enum Arbitration: Hashable { case agrees, differs(UInt8) }

    /// Handles the end of an arbiter's request.
    ///
    /// The byte that two of the three have is right. If the arbiter sent a third one, the reference is right.
    ///
    /// - Parameter answer: Absent if the arbiter did not answer.
    mutating func arbitrated(_ dispute: Dispute, by lease: Lease, _ answer: Arbitration?) -> [DownloadAction] {
        guard self.comparisons.disputes.asked(by: lease.id) != nil else { return [] }
        guard let answer else {
            self.comparisons.disputes.noteUnanswered(isAttempt: lease.bytesReceived > 0)
            return self.settleDisputes()
        }
        self.comparisons.disputes.removeFirst()
        switch answer {
        case .agrees: return self.deny(dispute)
        case .differs(dispute.byte): return self.discard(self.contributor(of: dispute.offset))
        case .differs(let byte):
            let actions = self.decide(dispute)
            return actions + self.differs(dispute.offset, byte, at: lease.order.source)
        }
    }

    // MARK: Deciding

    /// Drops disputes that no longer apply, and decides the first one if no arbiter is left.
    mutating func settleDisputes() -> [DownloadAction] {
        guard self.isUndisturbed else { return [] }
        self.comparisons.disputes = self.comparisons.disputes.filter { self.stands($0) }
        guard let dispute = self.comparisons.disputes.next,
            self.isSingleStream || dispute.attempts >= Disputes.arbitrationsMax || self.arbiters(of: dispute).isEmpty
        else { return [] }
        self.comparisons.disputes.removeFirst()
        return self.decide(dispute)
    }

    /// Whether a dispute still applies: its byte is still on disk and from another source.
    private func stands(_ dispute: Dispute) -> Bool {
        self.isBelieved(dispute.offset) && self.sources[dispute.differingSource].trust != .quarantined
            && self.contributor(of: dispute.offset) != .source(dispute.differingSource)
    }

    /// Decides without a majority: the reference is right or, if it is not involved, the source of the byte on disk.
    ///
    /// An earlier run's bytes are wrong if the reference was: only samples of it were compared with them.
    private mutating func decide(_ dispute: Dispute) -> [DownloadAction] {
        let accused = self.contributor(of: dispute.offset)
        let isUnfounded =
            if case .earlier = accused { self.sources[self.sources.reference].trust == .quarantined } else { false }
        guard dispute.differingSource != self.sources.reference, !isUnfounded else { return self.discard(accused) }
        return self.deny(dispute)
    }

    private mutating func deny(_ dispute: Dispute) -> [DownloadAction] {
        let actions = self.quarantine(dispute.differingSource)
        self.sources[dispute.differingSource].overruledAt = dispute.offset
        return actions
    }

    /// Compares sources again that were quarantined for contradicting a byte that is no longer trusted.
    mutating func readmit(overruledBy contributor: SourceTable.Contributor) -> [DownloadAction] {
        let denied = self.sources.ids.filter { id in
            guard let offset = self.sources[id].overruledAt, self.sources[id].trust == .quarantined else {
                return false
            }
            return self.contributor(of: offset) == contributor
        }
        return denied.map { id in
            self.sources[id].trust = .unproven
            self.sources[id].samples = []
            self.sources[id].overruledAt = nil
            return .report(
                .note(
                    "\(self.sources[id].host) is compared again; the bytes from which it differed are fetched again"))
        }
    }
}
