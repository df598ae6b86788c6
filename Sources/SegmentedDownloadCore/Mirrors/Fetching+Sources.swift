/// Selects sources, and handles sources that fail or have other bytes.
extension Fetching {
    /// The identity that the answers of a source must match: that of its earlier answers, or initially only the length,
    /// coding and digests of the resource.
    func identity(of source: SourceID) -> (resource: RemoteResource, comparesValidator: Bool) {
        if let resource = self.sources[source].resource { return (resource, true) }
        let resource = self.resource
        var known = RemoteResource(
            completeLength: resource.completeLength, contentEncoding: resource.contentEncoding,
            wholeLength: resource.wholeLength)
        known.digests = resource.digests
        return (known, false)
    }

    /// The fastest source that may be asked now. Sources not yet measured come first.
    func bestSource(now: Duration, isOpen: (String) -> Bool) -> SourceID? {
        guard self.sources.hasMirrors else { return .first }
        // A stream that replaces comparisons with the reference must be the reference's own.
        let reference = self.sources[self.sources.reference]
        if case .fallback = self.mode, reference.isUsable {
            return reference.retryAt <= now && isOpen(reference.host) ? self.sources.reference : nil
        }
        let usable = self.sources.ids.filter { id in
            let entry = self.sources[id]
            // A single stream is compared with all bytes before its first new one, which proves more than samples do.
            guard entry.isUsable || entry.trust == .unproven && (self.isSingleStream || self.isOrphaned) else {
                return false
            }
            // A source writes nothing until its contradiction is decided.
            guard !self.comparisons.disputes.contains(differingSource: id) else { return false }
            return entry.retryAt <= now && isOpen(entry.host)
        }
        return usable.max { left, right in
            let (one, other) = (self.rate(of: left), self.rate(of: right))
            // Among equally fast sources the first one wins.
            return one == other ? left > right : one < other
        }
    }

    /// Whether nothing is on disk and the reference is gone. Any source may then begin.
    private var isOrphaned: Bool {
        self.sources[self.sources.reference].isGone && self.plan.bytesDone == 0 && self.leases.isEmpty
    }

    private func rate(of source: SourceID) -> Double {
        let running = self.leases.filter { $0.order.source == source && $0.phase == .receiving }
        let rates = running.compactMap(\.meter.rate)
        if !rates.isEmpty { return rates.reduce(0, +) / Double(rates.count) }
        // While the first connection to a source is being measured, the next one goes to another source.
        guard let rate = self.sources[source].rate else { return running.isEmpty ? .infinity : 0 }
        return rate
    }

    // MARK: Failing

    /// Whether a response of the source is being received that can go on to the end of the file.
    func isServed(by source: SourceID, besides lease: LeaseID?) -> Bool {
        self.leases.contains {
            $0.id != lease && $0.order.source == source && $0.phase == .receiving && !$0.order.isSample
        }
    }

    /// Decides what follows a failure, and counts it against its segment or its source.
    ///
    /// - Parameter failures: The number of failures before this one, of the segment or the confirmation.
    mutating func decide(
        _ purpose: FailedRequest.Purpose, _ failure: DownloadError, failures: Int = 0, at source: SourceID,
        of lease: Lease? = nil, now: Duration
    ) -> RetryDecision {
        var request = FailedRequest(purpose, failure, failures: failures)
        request.failuresOfSource = self.sources[source].failures
        request.waited = self.traffic.waited(now: now)
        request.hasAlternative = self.sources.hasAlternative(to: source)
        request.isPaced = self.settings.isPaced
        let others = self.leases.filter { $0.id != lease?.id }
        if others.contains(where: { $0.phase == .receiving }) {
            request.others = request.waited < Traffic.serviceInterval ? .served : .silent
        }
        request.isServed = self.isServed(by: source, besides: lease?.id)
        request.hasServed = self.sources[source].resource != nil
        request.mayBeBanned = self.traffic.mayBeBanned(now: now)
        // If the other one has just ended, the request is made again, alone.
        request.isAdditional = others.contains { $0.order.source == source } || lease?.isAdditional ?? false
        return self.context.decision(on: request)
    }

    /// Counts a failure against a source.
    mutating func failOver(
        _ failure: DownloadError, from source: SourceID, after delay: Duration, now: Duration
    ) -> [DownloadAction] {
        let failures = self.sources.fail(source, .elsewhere(after: delay), now: now)
        return [.report(.retrying(failure, attempt: failures, delay: delay))]
    }

    /// Stops using a source. Its bytes are kept.
    mutating func loseSource(_ source: SourceID, _ failure: DownloadError) -> [DownloadAction] {
        self.sources[source].trust = .failed
        guard self.sources.ids.contains(where: { !self.sources[$0].isGone }) else {
            self.outcome = .failed(failure)
            return []
        }
        return [.report(.note("\(failure.message); continuing with the other sources"))] + self.replaceReference()
    }

    /// Handles an answer with another validator than the source's earlier ones.
    ///
    /// Other nodes of a server farm may still serve the recorded version. The request is repeated on fresh connections,
    /// at least as long as a connection receives that version.
    mutating func disagrees(_ difference: String, _ lease: Lease, now: Duration) -> [DownloadAction] {
        let source = lease.order.source
        // A length or coding other than the reference's does not vary between nodes.
        guard lease.order.request.comparesValidator else { return self.changed(difference, at: source) }
        self.sources[source].deviations.disagreement.note(difference)
        let disagreement = self.sources[source].deviations.disagreement
        let isServed = self.leases.contains { other in
            other.id != lease.id && other.order.source == source && other.phase == .receiving && !other.order.isSample
        }
        guard !disagreement.isChange || isServed else { return self.changed(difference, at: source) }
        self.askAgain(lease, at: now + disagreement.delay(isServed: isServed))
        let host = self.sources[source].host
        return disagreement.isNew
            ? [.report(.note("\(host) answers with different validators (\(difference)); asking it again"))] : []
    }

    private mutating func askAgain(_ lease: Lease, at time: Duration) {
        if lease.order.isSample {
            self.sources[lease.order.source].retryAt = time
        } else {
            self.plan.postpone(lease.order.segment, until: time)
        }
    }

    /// Handles a source whose URL leads to another resource than before. Validators of that one prove nothing.
    ///
    /// A URL may lead to several places in turn, so it is asked again a few times before the bytes are compared with
    /// those of the other place.
    mutating func moved(_ difference: String?, _ lease: Lease, now: Duration) -> [DownloadAction] {
        let source = lease.order.source
        let canCompare = self.window?.isStream != true && self.plan.completeLength != nil
        guard difference == nil, canCompare, !self.sources.hasAlternative(to: source) else {
            return self.changed(
                difference ?? "its URL leads to another place now", at: source, isMoved: difference == nil)
        }
        self.sources[source].deviations.moves.note("its URL leads to another place")
        let moves = self.sources[source].deviations.moves
        guard moves.isMove else {
            self.askAgain(lease, at: now + moves.delay())
            return []
        }
        self.outcome = .moved
        return []
    }

    /// Handles a source whose answers are from another resource or version than before, or have another length than
    /// those of the other sources.
    ///
    /// - Parameter isMoved: Whether only the place is another one, which says nothing about the bytes from the first one.
    mutating func changed(_ difference: String, at source: SourceID, isMoved: Bool = false) -> [DownloadAction] {
        guard self.sources.hasAlternative(to: source),
            self.sources.ids.contains(where: { $0 != source && self.sources[$0].isUsable })
                || source != self.sources.reference
        else {
            self.outcome = .changed(difference)
            return []
        }
        let reason = "\(self.sources[source].host) has another file now: \(difference)"
        // The bytes since its last head may be from the new version.
        if !isMoved, self.isExposed(source) {
            return self.quarantine(source, "\(reason); its bytes are fetched again")
        }
        return self.loseSource(source, DownloadError(.changed, reason))
    }

    /// Replaces a reference that is gone with a source known to have the same bytes.
    mutating func replaceReference() -> [DownloadAction] {
        guard self.sources[self.sources.reference].isGone, self.withdrawals.isEmpty, let next = self.successor else {
            return []
        }
        guard !self.hasUnmarked else { return self.endUnmarked() }
        self.sources.replaceReference(by: next)
        self.comparisons.audits.restart()
        self.proving.owesRecord = false
        return self.revise(withdrawing: [], remarks: true)
    }

    /// The source that would become the reference: preferably a proven one, and not one that would decide its own
    /// dispute.
    private var successor: SourceID? {
        let usable = self.sources.ids.filter { self.sources[$0].canBeReference }
        let impartial = usable.filter { !self.comparisons.disputes.contains(differingSource: $0) }
        let candidates = impartial.isEmpty ? usable : impartial
        return candidates.first { self.sources[$0].trust == .proven } ?? candidates.first
    }

    /// Whether a lease writes bytes that are claimed as the reference's.
    private var hasUnmarked: Bool { self.leases.contains { !$0.order.isSample && $0.order.mark == 0 } }

    private mutating func endUnmarked() -> [DownloadAction] {
        self.leases.filter { !$0.order.isSample && $0.order.mark == 0 }.flatMap { self.revoke($0.id, .stopping) }
    }

    /// The mark for bytes of a source. The reference's bytes are marked too until the manifest names it.
    func mark(of source: SourceID) -> UInt8 {
        self.proving.owesRecord && source == self.sources.reference ? source.mark : self.sources.mark(of: source)
    }

    // MARK: Mismatching sources

    /// Records the identity of a source with its first answer, which later answers must match.
    ///
    /// - Returns: Actions to perform instead of using the response, nil if it may be used. The source may have another
    ///   file, or may have to be recorded as the reference first.
    mutating func meet(_ lease: Lease, _ response: RangeResponse, now: Duration) -> [DownloadAction]? {
        guard self.sources.hasMirrors else { return nil }
        let source = lease.order.source
        var resource: RemoteResource
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
            case .elsewhere(let difference): return self.moved(difference, lease, now: now)
            }
            resource = resource.adding(known, isSamePlace: true)
        }
        self.sources[source].resource = resource
        // An unproven source is asked for bytes only if none are on disk, and then begins the file. An equal tag does
        // not prove it: tags identify versions of one resource (RFC 9110 §8.8.3), and nginx makes them from length and
        // modification time.
        if !lease.order.isSample, !self.isSingleStream, self.sources[source].trust == .unproven {
            // If another source has begun meanwhile, this one must be compared with it first.
            guard !self.hasUsable else { return [] }
            self.sources[source].trust = .proven
        }
        let actions = self.replaceReference()
        return actions.isEmpty ? nil : actions
    }

    mutating func discard(_ contributor: SourceTable.Contributor, _ reason: String? = nil) -> [DownloadAction] {
        switch contributor {
        case .source(let id): return self.quarantine(id, reason)
        case .earlier(let index):
            let readmitted = self.readmit(overruledBy: contributor)
            self.withdrawals.add(self.sources.earlier[index])
            self.sources.earlier[index] = []
            self.comparisons.audits.remove(of: contributor)
            return [.report(.note(reason ?? "bytes from another source differ; they are fetched again"))]
                + readmitted + self.endSamples() + self.reviseIfSettled()
        }
    }

    /// Stops using a source and withdraws all of its bytes.
    ///
    /// - Parameter reason: The message to report, by default that its bytes differ.
    mutating func quarantine(_ source: SourceID, _ reason: String? = nil) -> [DownloadAction] {
        guard !self.withdrawals.sources.contains(source), self.sources[source].trust != .quarantined else {
            return []
        }
        let readmitted = self.readmit(overruledBy: .source(source))
        self.sources[source].trust = .quarantined
        self.withdrawals.add(source)
        self.comparisons.audits.remove(of: .source(source))
        if source == self.sources.reference { self.withdrawals.add(self.sources.takeKept()) }
        var actions: [DownloadAction] = [
            .report(
                .note(
                    reason
                        ?? "\(self.sources[source].host) has other bytes than the other sources; its bytes are fetched again"
                ))
        ]
        actions += readmitted
        for lease in self.leases where lease.order.source == source { actions += self.revoke(lease.id, .stopping) }
        actions += self.endSamples()
        guard self.sources.ids.contains(where: { !self.sources[$0].isGone }) else {
            self.outcome = .failed(
                DownloadError(
                    .integrity, "the sources have different files, and none of the accepted sources is left",
                    remedy: .giveCorrectSourceOrDigest))
            return actions
        }
        return actions + self.reviseIfSettled()
    }

    /// Withdraws the bytes of mismatching sources once none of their leases is writing.
    mutating func reviseIfSettled() -> [DownloadAction] {
        guard self.outcome == nil, self.withdrawals.isDue,
            !self.leases.contains(where: { self.withdrawals.sources.contains($0.order.source) && !$0.order.isSample })
        else { return [] }
        let successor = self.successor
        let isReplaced = self.sources[self.sources.reference].isGone && successor != nil
        guard !isReplaced || !self.hasUnmarked else { return self.endUnmarked() }
        let (sources, ranges) = self.withdrawals.take()
        let withdrawn = (ranges + sources.flatMap { self.sources[$0].contributed }).merged()
        for source in sources { self.sources[source].contributed = [] }
        self.sources.withdraw(withdrawn)
        guard isReplaced || !withdrawn.isEmpty else { return [] }
        if isReplaced, let successor {
            self.sources.replaceReference(by: successor)
            self.comparisons.audits.restart()
            self.proving.owesRecord = false
        }
        return self.revise(withdrawing: withdrawn, remarks: isReplaced)
    }

    mutating func revise(withdrawing ranges: [Range<Int64>], remarks: Bool) -> [DownloadAction] {
        let revision = Revision(
            withdrawn: ranges, reference: self.sources.reference, resource: self.resource, remarks: remarks,
            keepsRecord: self.proving.owesRecord)
        self.withdrawals.begin(revision)
        return [.revise(revision)]
    }

    /// Handles a completed withdrawal: the bytes are no longer claimed, even after a crash, and may be fetched anew.
    mutating func revised() -> [DownloadAction] {
        for range in self.withdrawals.end() {
            self.plan.reopen(range)
            // Bytes that arrive there now have not been contradicted.
            self.comparisons.disputes.remove(in: range)
        }
        if self.plan.bytesMissing > 0 {
            self.comparisons.audits.reopen()
            // The bytes that arrive now must be confirmed too.
            self.comparisons.confirmation = Confirmation()
        }
        var actions = self.reviseIfSettled() + self.replaceReference()
        if self.awaitsProof, self.revision == nil, self.outcome == nil, !self.canProve {
            // No remaining bytes can be compared together with a missing segment.
            self.proving.proof.end()
            if self.plan.bytesDone > 0, let length = self.plan.completeLength {
                actions += self.revise(withdrawing: [0..<length], remarks: false)
            }
        }
        self.finishIfComplete()
        return actions
    }

    /// Fetches all bytes again that this source did not deliver, because the digest does not match although the samples
    /// agreed.
    ///
    /// Returns nil if the source delivered everything or never answered.
    mutating func trustOnly(_ source: SourceID) -> [DownloadAction]? {
        guard let length = self.plan.completeLength, self.sources[source].resource != nil else { return nil }
        let others = self.sources.contributions(besides: source, of: length)
        guard !others.isEmpty else { return nil }
        for id in self.sources.ids where id != source {
            self.sources[id].trust = .quarantined
            self.sources[id].contributed = []
        }
        self.sources[source].trust = .proven
        self.sources.reference = source
        self.sources.forgetEarlier()
        // Its reader has ended with the file, and frees no room any more. What is fetched again is read at the end.
        self.window = nil
        self.outcome = nil
        return [
            .report(
                .note(
                    "the digest does not match; the bytes of other sources are fetched again from "
                        + self.sources[source].host))
        ] + self.revise(withdrawing: others, remarks: false)
    }
}
