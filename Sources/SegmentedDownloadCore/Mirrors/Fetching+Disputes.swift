/// A source has another byte than the one on disk.
struct Dispute: Hashable, Sendable {
    let accuser: SourceID
    let offset: Int64
    /// The request by which another source is asked who is right.
    var lease: LeaseID?
    /// How often an answer was begun that never said it.
    var attempts = 0
}

/// Who is right where two sources contradict each other.
///
/// Each contradiction is kept until it is decided or its byte is withdrawn, and they are decided one after another: what the
/// first one brings to light settles many of those behind it. Whose byte it is, is looked up when it is decided.
extension Fetching {
    /// 10: one who sends something each time has no failures in a row that would end it.
    static let arbitrationsMax = 10

    /// A compared byte is not the one on disk.
    mutating func differs(_ offset: Int64, at source: SourceID) -> [DownloadAction] {
        // Of what is to be withdrawn it is known already, and nobody is judged by it.
        guard self.isBelieved(offset) else { return [] }
        let accused = self.contributor(of: offset)
        guard self.sources.hasMirrors || accused != .source(.first), accused != .source(source) else {
            self.outcome = .changed("its byte \(offset) is not the one fetched before")
            return []
        }
        // Nothing was written yet that would be of use: what is on disk is set aside.
        if self.awaitsProof, !self.sources.hasMirrors {
            self.outcome = .otherFile("byte \(offset) differs")
            return []
        }
        self.disputes.append(Dispute(accuser: source, offset: offset))
        return self.settleDisputes()
    }

    /// Whether a byte is on disk, and nothing is known against whoever brought it.
    private func isBelieved(_ offset: Int64) -> Bool {
        let isHere = { (range: Range<Int64>) in range.contains(offset) }
        guard self.plan.segments.contains(where: { $0.lowerBound <= offset && offset < $0.position }),
            !self.withdrawals.contains(where: isHere), self.revision?.withdrawn.contains(where: isHere) != true
        else { return false }
        guard case .source(let id) = self.contributor(of: offset) else { return true }
        return self.sources[id].standing != .quarantined
    }

    /// Nothing is compared with bytes that are to be withdrawn: whoever has others would be blamed for it. It is begun anew
    /// afterwards.
    mutating func endSamples() -> [DownloadAction] {
        if !self.disputes.isEmpty { self.disputes[0].lease = nil }
        let samples = self.leases.filter(\.order.isSample).map(\.id)
        let actions = samples.flatMap { self.revoke($0, .stopping) }
        // Also of one that is ending for another reason: it may have been answered.
        for index in self.leases.indices where self.leases[index].order.isSample {
            self.leases[index].revocation = .stopping
        }
        return actions
    }

    /// Whose byte it is: that of a connection which is still writing there, else as the book says.
    func contributor(of offset: Int64) -> SourceTable.Contributor {
        let writer = self.leases.first { lease in
            !lease.order.isSample && lease.writesFrom <= offset && offset < lease.position
        }
        return writer.map { .source($0.order.source) } ?? self.sources.contributor(of: offset)
    }

    /// Whether somebody has contradicted what is on disk and it is not known yet who is right: he brings nothing meanwhile.
    func isAccuser(_ source: SourceID) -> Bool { self.disputes.contains { $0.accuser == source } }

    // MARK: Asking a third

    /// Who may say who is right, those first that were compared themselves.
    private func arbiters(of dispute: Dispute) -> [SourceID] {
        let accused = self.contributor(of: dispute.offset)
        let candidates = self.sources.ids.filter { id in
            guard id != dispute.accuser, .source(id) != accused, !self.sources[id].isGone else { return false }
            // Of what an earlier run left nobody knows who brought it: any other source might speak for itself.
            if case .earlier = accused { return id == self.sources.reference }
            return true
        }
        return candidates.filter { self.sources[$0].isUsable } + candidates.filter { !self.sources[$0].isUsable }
    }

    /// The request that has a third source say who is right, if there is a contradiction and one may be asked now.
    mutating func nextArbitration(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        guard let dispute = self.disputes.first, dispute.lease == nil, self.isBelieved(dispute.offset),
            let arbiter = self.arbiters(of: dispute).first(where: { id in
                self.sources[id].retryAt <= now && isOpen(self.sources[id].host)
            })
        else { return nil }
        let order = self.sample(dispute.offset..<(dispute.offset + 1), from: arbiter, now: now)
        self.disputes[0].lease = order.lease
        return order
    }

    /// An arbiter's request has ended.
    ///
    /// - Parameter agrees: whether he has the byte on disk; absent if he did not say.
    mutating func arbitrated(_ dispute: Dispute, by lease: Lease, agrees: Bool?) -> [DownloadAction] {
        guard let index = self.disputes.firstIndex(where: { $0.lease == dispute.lease }) else { return [] }
        guard let agrees else {
            self.disputes[index].lease = nil
            if lease.bytesReceived > 0 { self.disputes[index].attempts += 1 }
            return self.settleDisputes()
        }
        self.disputes.remove(at: index)
        return agrees ? self.deny(dispute) : self.discard(self.contributor(of: dispute.offset))
    }

    // MARK: Deciding

    /// Drops contradictions that are none any more, and decides the first one where nobody can be asked.
    mutating func settleDisputes() -> [DownloadAction] {
        guard self.outcome == nil, self.revision == nil, self.mismatchingSources.isEmpty, self.withdrawals.isEmpty,
            !self.isReplacing
        else { return [] }
        self.disputes = self.disputes.filter { $0.lease != nil || self.stands($0) }
        guard let dispute = self.disputes.first, dispute.lease == nil,
            self.isSingleStream || dispute.attempts >= Self.arbitrationsMax || self.arbiters(of: dispute).isEmpty
        else { return [] }
        self.disputes.removeFirst()
        return self.decide(dispute)
    }

    /// Whether its byte is still there, and still another's.
    private func stands(_ dispute: Dispute) -> Bool {
        self.isBelieved(dispute.offset) && self.sources[dispute.accuser].standing != .quarantined
            && self.contributor(of: dispute.offset) != .source(dispute.accuser)
    }

    /// Of two that contradict each other, and nobody else to ask, the one that is not the reference is not believed.
    private mutating func decide(_ dispute: Dispute) -> [DownloadAction] {
        guard dispute.accuser != self.sources.reference else {
            return self.discard(self.contributor(of: dispute.offset))
        }
        return self.deny(dispute)
    }

    private mutating func deny(_ dispute: Dispute) -> [DownloadAction] {
        let actions = self.quarantine(dispute.accuser)
        self.sources[dispute.accuser].deniedAt = dispute.offset
        return actions
    }

    /// Who was not believed because of a byte that is believed no more is compared anew.
    mutating func readmit(deniedBy contributor: SourceTable.Contributor) -> [DownloadAction] {
        let denied = self.sources.ids.filter { id in
            guard let offset = self.sources[id].deniedAt, self.sources[id].standing == .quarantined else {
                return false
            }
            return self.contributor(of: offset) == contributor
        }
        return denied.map { id in
            self.sources[id].standing = .unproven
            self.sources[id].samples = []
            self.sources[id].deniedAt = nil
            return .report(.note("\(self.sources[id].host) is compared again: what it contradicted is fetched anew"))
        }
    }
}
