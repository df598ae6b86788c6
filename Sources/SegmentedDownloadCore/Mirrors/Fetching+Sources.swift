/// Which of several sources is asked, what is done when one fails, and what when one is found to have other bytes.
extension Fetching {
    /// What the answers of a source must agree with: its own earlier ones, or at first only the length and coding.
    func identity(of source: SourceID) -> (resource: RemoteResource, comparesValidator: Bool) {
        if let resource = self.sources[source].resource { return (resource, true) }
        let resource = self.resource
        return (
            RemoteResource(completeLength: resource.completeLength, contentEncoding: resource.contentEncoding), false
        )
    }

    /// The fastest source that may be asked now; one that was not measured yet goes before those that were.
    func bestSource(now: Duration, isOpen: (String) -> Bool) -> SourceID? {
        guard self.sources.hasMirrors else { return .first }
        let usable = self.sources.ids.filter { id in
            let entry = self.sources[id]
            // One stream is compared with everything before the first byte it writes: that proves more than samples.
            guard entry.isUsable || entry.standing == .unproven && (self.isSingleStream || self.isOrphaned) else {
                return false
            }
            guard !self.isAccuser(id) else { return false }
            return entry.retryAt <= now && isOpen(entry.host)
        }
        return usable.max { left, right in
            let (one, other) = (self.rate(of: left), self.rate(of: right))
            // Of equals the one that comes first.
            return one == other ? left > right : one < other
        }
    }

    /// Whether nothing is on disk and whoever answered first is gone: any source may begin then.
    private var isOrphaned: Bool {
        self.sources[self.sources.reference].isGone && self.plan.bytesDone == 0 && self.leases.isEmpty
    }

    private func rate(of source: SourceID) -> Double {
        let running = self.leases.filter { $0.order.source == source && $0.phase == .receiving }
        let rates = running.compactMap(\.meter.rate)
        if !rates.isEmpty { return rates.reduce(0, +) / Double(rates.count) }
        // While its first connection is being measured, the next goes elsewhere.
        guard let rate = self.sources[source].rate else { return running.isEmpty ? .infinity : 0 }
        return rate
    }

    // MARK: Failing

    /// How long ago bytes came.
    func waited(now: Duration) -> Duration { now - self.servedAt }

    /// Counts a failure against a source where there are others to go on with.
    mutating func failOver(_ failure: Failure, from source: SourceID, now: Duration) -> [DownloadAction] {
        let failures = self.sources[source].failures + 1
        let policy = self.settings.retry
        let delay = policy.delay(afterFailures: failures, retryAfter: failure.retryAfter, using: &self.generator)
        let waited = self.waited(now: now)
        guard policy.allows(failure, failures: failures, waited: waited) else {
            return self.loseSource(source, failure)
        }
        self.sources.fail(source, failure, policy: policy, now: now, delay: delay, waited: waited)
        return [.report(.retrying(failure, attempt: failures, delay: delay))]
    }

    /// A source is of no use any more; what it brought stays.
    mutating func loseSource(_ source: SourceID, _ failure: Failure) -> [DownloadAction] {
        self.sources[source].standing = .failed
        guard self.sources.ids.contains(where: { !self.sources[$0].isGone }) else {
            self.outcome = .failed(failure)
            return []
        }
        return [.report(.note("\(failure.message); going on with the other sources"))] + self.replaceReference()
    }

    /// One answer had another validator than the source's earlier ones. Other nodes of a server farm may still have the
    /// recorded version, and connections on which it comes prove that: it is asked for again, on fresh connections.
    mutating func disagrees(_ difference: String, _ lease: Lease, now: Duration) -> [DownloadAction] {
        let source = lease.order.source
        // Another length or coding than the reference's is no matter of nodes.
        guard lease.order.request.comparesValidator else { return self.changed(difference, at: source) }
        self.sources[source].disagreement.note(difference)
        let disagreement = self.sources[source].disagreement
        let isServed = self.leases.contains { other in
            other.id != lease.id && other.order.source == source && other.phase == .receiving && !other.order.isSample
        }
        guard !disagreement.isChange || isServed else { return self.changed(difference, at: source) }
        let next = now + disagreement.delay
        if lease.order.isSample {
            self.sources[source].retryAt = next
        } else {
            self.plan.postpone(lease.order.segment, until: next)
        }
        let host = self.sources[source].host
        return disagreement.isNew
            ? [.report(.note("\(host) answers with different validators (\(difference)); asking it again"))] : []
    }

    /// A source leads to another resource than before, whose validators prove nothing.
    mutating func moved(_ difference: String?, at source: SourceID) -> [DownloadAction] {
        let canCompare = self.window?.isStream != true && self.plan.completeLength != nil
        guard difference == nil, canCompare, !self.sources.hasAlternative(to: source) else {
            return self.changed(difference ?? "its URL leads to another place now", at: source)
        }
        self.outcome = .moved
        return []
    }

    /// A source's answers are not of the resource they were of before, or have another length than the others'.
    mutating func changed(_ difference: String, at source: SourceID) -> [DownloadAction] {
        guard self.sources.hasAlternative(to: source),
            self.sources.ids.contains(where: { $0 != source && self.sources[$0].isUsable })
                || source != self.sources.reference
        else {
            self.outcome = .changed(difference)
            return []
        }
        return self.loseSource(
            source, Failure(.changed, "\(self.sources[source].host) has another file now: \(difference)"))
    }

    /// Where the reference is gone another source takes its place, once one is known to have the same bytes.
    mutating func replaceReference() -> [DownloadAction] {
        guard self.sources[self.sources.reference].isGone, self.mismatchingSources.isEmpty, self.withdrawals.isEmpty,
            self.revision == nil,
            let next = self.successor
        else { return [] }
        guard !self.hasUnmarked else { return self.endUnmarked() }
        self.sources.replaceReference(by: next)
        self.audits = []
        self.hasAudited = false
        self.owesRecord = false
        return self.revise(withdrawing: [], remarks: true)
    }

    /// Who would take the reference's place: rather one that has been asked for bytes, and nobody who would decide his own case.
    private var successor: SourceID? {
        let usable = self.sources.ids.filter { self.sources[$0].canBeReference }
        let impartial = usable.filter { !self.isAccuser($0) }
        let candidates = impartial.isEmpty ? usable : impartial
        return candidates.first { self.sources[$0].standing == .proven } ?? candidates.first
    }

    /// Whether somebody writes bytes that are claimed as the reference's.
    private var hasUnmarked: Bool { self.leases.contains { !$0.order.isSample && $0.order.mark == 0 } }

    /// Whether another source is about to take the reference's place.
    var isReplacing: Bool {
        self.sources.hasMirrors && !self.isSingleStream && self.sources[self.sources.reference].isGone
            && self.sources.ids.contains { self.sources[$0].canBeReference }
    }

    private mutating func endUnmarked() -> [DownloadAction] {
        self.leases.filter { !$0.order.isSample && $0.order.mark == 0 }.flatMap { self.revoke($0.id, .stopping) }
    }

    /// The mark for what a source writes: until the manifest names it, it is a stranger there.
    func mark(of source: SourceID) -> UInt8 {
        self.owesRecord && source == self.sources.reference ? source.mark : self.sources.mark(of: source)
    }

    // MARK: Other bytes

    /// A source that has not answered before has: notes what its further answers must agree with.
    ///
    /// - Returns: what to do before anything is taken from it, if there is: it has another file, or it must be recorded
    ///   first that it defines the file now.
    mutating func meet(_ lease: Lease, _ response: RangeResponse, now: Duration) -> [DownloadAction]? {
        guard self.sources.hasMirrors else { return nil }
        let source = lease.order.source
        let resource: RemoteResource
        switch response {
        case .partial(_, let found): resource = found
        case .whole(let found) where self.isSingleStream: resource = found
        case .whole, .notModified, .unsatisfiable, .changed, .moved, .ignoresRanges, .redirected, .refused,
            .unauthorized, .rejected, .malformed:
            return nil
        }
        if let known = self.sources[source].resource {
            switch known.verdict(on: resource) {
            case .same, .unproven: break
            case .changed(let difference): return self.disagrees(difference, lease, now: now)
            case .elsewhere(let difference): return self.moved(difference, at: source)
            }
        }
        self.sources[source].resource = resource
        // One that is not known is asked for bytes only where nothing is on disk: it begins anew. An equal tag says nothing
        // of it, however strong: tags are of one resource (RFC 9110 §8.8.3), and nginx's are the length and the second of
        // the last change.
        if !lease.order.isSample, !self.isSingleStream, self.sources[source].standing == .unproven {
            // While it was asked another may have begun: then it is held against that one's bytes before it brings any.
            guard !self.hasUsable else { return [] }
            self.sources[source].standing = .proven
        }
        let actions = self.replaceReference()
        return actions.isEmpty ? nil : actions
    }

    mutating func discard(_ contributor: SourceTable.Contributor, _ reason: String? = nil) -> [DownloadAction] {
        switch contributor {
        case .source(let id): return self.quarantine(id, reason)
        case .earlier(let index):
            let readmitted = self.readmit(deniedBy: contributor)
            self.withdrawals += self.sources.earlier[index]
            self.sources.earlier[index] = []
            self.audits.removeAll { $0.contributor == contributor }
            return [.report(.note(reason ?? "what another source brought before differs; it is fetched anew"))]
                + readmitted + self.endSamples() + self.reviseIfSettled()
        }
    }

    /// Nothing that this source brought is kept.
    ///
    /// - Parameter reason: what is said of it; without one, that its bytes are others.
    mutating func quarantine(_ source: SourceID, _ reason: String? = nil) -> [DownloadAction] {
        guard !self.mismatchingSources.contains(source), self.sources[source].standing != .quarantined else {
            return []
        }
        let readmitted = self.readmit(deniedBy: .source(source))
        self.sources[source].standing = .quarantined
        self.mismatchingSources.append(source)
        self.audits.removeAll { $0.contributor == .source(source) }
        if source == self.sources.reference { self.withdrawals += self.sources.takeKept() }
        var actions: [DownloadAction] = [
            .report(
                .note(
                    reason
                        ?? "\(self.sources[source].host) has other bytes than the other sources; what it brought is fetched anew"
                ))
        ]
        actions += readmitted
        for lease in self.leases where lease.order.source == source { actions += self.revoke(lease.id, .stopping) }
        actions += self.endSamples()
        guard self.sources.ids.contains(where: { !self.sources[$0].isGone }) else {
            self.outcome = .failed(
                Failure(
                    .integrity, "the sources have different files, and none that could go on is left",
                    hint: "Name the right one alone, or give its digest with --checksum"))
            return actions
        }
        return actions + self.reviseIfSettled()
    }

    /// Withdraws what the mismatchingSources brought, once none of their leases writes any more.
    mutating func reviseIfSettled() -> [DownloadAction] {
        guard self.outcome == nil, self.revision == nil, !self.mismatchingSources.isEmpty || !self.withdrawals.isEmpty,
            !self.leases.contains(where: { self.mismatchingSources.contains($0.order.source) && !$0.order.isSample })
        else { return [] }
        let successor = self.successor
        let isReplaced = self.sources[self.sources.reference].isGone && successor != nil
        guard !isReplaced || !self.hasUnmarked else { return self.endUnmarked() }
        let withdrawn = (self.withdrawals + self.mismatchingSources.flatMap { self.sources[$0].contributed }).merged()
        for source in self.mismatchingSources { self.sources[source].contributed = [] }
        self.sources.withdraw(withdrawn)
        self.mismatchingSources = []
        self.withdrawals = []
        guard isReplaced || !withdrawn.isEmpty else { return [] }
        if isReplaced, let successor {
            self.sources.replaceReference(by: successor)
            self.audits = []
            self.hasAudited = false
            self.owesRecord = false
        }
        return self.revise(withdrawing: withdrawn, remarks: isReplaced)
    }

    mutating func revise(withdrawing ranges: [Range<Int64>], remarks: Bool) -> [DownloadAction] {
        let revision = Revision(
            withdrawn: ranges, reference: self.sources.reference, resource: self.resource, remarks: remarks,
            keepsRecord: self.owesRecord)
        self.revision = revision
        return [.revise(revision)]
    }

    /// What was withdrawn is claimed no more, also after a crash: it may be fetched anew.
    mutating func revised() -> [DownloadAction] {
        for range in self.revision?.withdrawn ?? [] {
            self.plan.reopen(range)
            // What comes there now is nobody's contradiction.
            self.disputes.removeAll { range.contains($0.offset) }
        }
        self.revision = nil
        if self.plan.bytesMissing > 0 { self.hasAudited = false }
        var actions = self.reviseIfSettled() + self.replaceReference()
        if self.awaitsProof, self.revision == nil, self.outcome == nil, !self.canProve {
            // What is left has nothing behind it that could be fetched together with it, and be compared.
            self.awaitsProof = false
            if self.plan.bytesDone > 0, let length = self.plan.completeLength {
                actions += self.revise(withdrawing: [0..<length], remarks: false)
            }
        }
        self.finishIfComplete()
        return actions
    }

    /// The file's digest is wrong although all sources agreed: everything is fetched from this one alone that it has not
    /// brought itself. Nothing is done if it brought all of it.
    mutating func trustOnly(_ source: SourceID) -> [DownloadAction]? {
        guard let length = self.plan.completeLength, self.sources[source].resource != nil else { return nil }
        let others = self.sources.contributions(besides: source, of: length)
        guard !others.isEmpty else { return nil }
        for id in self.sources.ids where id != source {
            self.sources[id].standing = .quarantined
            self.sources[id].contributed = []
        }
        self.sources[source].standing = .proven
        self.sources.reference = source
        self.sources.earlier = []
        self.outcome = nil
        return [
            .report(
                .note(
                    "the digest does not match; what other sources brought is fetched again from "
                        + self.sources[source].host))
        ] + self.revise(withdrawing: others, remarks: false)
    }
}
