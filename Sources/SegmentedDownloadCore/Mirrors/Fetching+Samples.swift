/// Samples: bytes that are requested only to compare them with those on disk, which shows whether a source has the same
/// file.
extension Fetching {
    /// 3: one near a beginning, one near an end, one between them.
    static let samplesMin = 3

    /// How long one connection is kept free for samples. After that, a mirror that does not answer must not slow the
    /// download.
    static let samplingPatience: Duration = .seconds(3)

    /// The number of connections kept free while a mirror is not compared yet.
    func roomForSamples(now: Duration) -> Int {
        guard self.target > 1, now - self.traffic.beganAt < Self.samplingPatience,
            self.plan.bytesMissing > SampleSpots.length * Int64(Self.samplesMin * 4),
            !self.leases.contains(where: \.order.isSample)
        else { return 0 }
        return self.sources.ids.contains { self.sources[$0].trust == .unproven } ? 1 : 0
    }

    /// The next comparison: a dispute, an audit, or a sample of an unproven source. Nil if none can be requested now.
    ///
    /// Not to be called while bytes are being withdrawn.
    mutating func nextSample(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        if let order = self.nextArbitration(now: now, isOpen: isOpen) { return order }
        let reference = self.sources[self.sources.reference]
        // While a contradiction is undecided, further audits would only find it again.
        if self.comparisons.disputes.isEmpty, let audit = self.comparisons.audits.next, reference.isUsable,
            !self.mode.hasLostRanges
        {
            guard reference.retryAt <= now, isOpen(reference.host) else { return nil }
            let order = self.sample(audit.spot, from: self.sources.reference, now: now)
            self.comparisons.audits.ask(order.lease)
            return order
        }
        if let order = self.nextConfirmation(now: now, isOpen: isOpen) { return order }
        guard !self.plan.isComplete || !reference.isUsable, !self.mode.hasLostRanges else { return nil }
        for id in self.sources.ids where self.sources[id].trust == .unproven {
            // Fewer samples may be enough now, because another source is gone.
            if self.isSampledEnough(id) { self.sources[id].trust = .sampled }
            guard self.sources[id].trust == .unproven, !self.comparisons.disputes.contains(differingSource: id),
                self.sources[id].retryAt <= now,
                isOpen(self.sources[id].host),
                !self.leases.contains(where: { $0.order.source == id }), let spot = self.spot(for: id)
            else { continue }
            return self.sample(spot, from: id, now: now)
        }
        return nil
    }

    /// - Parameter confirms: Whether the answer shows that a complete file has not changed.
    mutating func sample(
        _ spot: Range<Int64>, from source: SourceID, confirms: Bool = false, now: Duration
    ) -> FetchOrder {
        let identity = self.identity(of: source)
        var request = RangeRequest(
            lowerBound: spot.lowerBound, upperBound: spot.upperBound, identity: identity.resource,
            comparesValidator: identity.comparesValidator)
        request = request.avoidingNode(
            of: self.sources[source].deviations.disagreement, self.comparisons.confirmation.disagreement(of: source))
        request.confirms = confirms
        request.isAdditional = self.leases.contains { $0.order.source == source }
        request.mayGetWhole = confirms || self.isLast(source)
        let order = FetchOrder(
            lease: self.context.makeLease(), source: source, segment: .none, request: request,
            writesFrom: spot.upperBound, limit: spot.upperBound)
        self.open(order, now: now)
        return order
    }

    /// The place on disk that is farthest from the earlier samples of a source. Nil if there is none far enough.
    private func spot(for source: SourceID) -> Range<Int64>? {
        let runs = self.plan.segments.map { $0.lowerBound..<$0.position }
        var length = SampleSpots.length
        if !self.hasUsable {
            // Without a usable source no more bytes will come, so shorter runs must suffice.
            length = min(length, runs.map { $0.upperBound - $0.lowerBound }.max() ?? 0)
        }
        return SampleSpots.farthest(from: self.sources[source].samples, in: runs, length: length)
    }

    var hasUsable: Bool { self.sources.ids.contains { self.sources[$0].isUsable } }

    /// Whether a source was compared enough: at ``samplesMin`` places, or everywhere possible if no source is usable.
    private func isSampledEnough(_ source: SourceID) -> Bool {
        let count = self.sources[source].samples.count
        return count >= Self.samplesMin || count > 0 && !self.hasUsable && self.spot(for: source) == nil
    }

    // MARK: Results

    mutating func sampleResponded(_ index: Int, _ response: RangeResponse, now: Duration) -> [DownloadAction] {
        let lease = self.leases[index]
        guard lease.phase == .requested else { return [.answer(lease.id, .stop)] }
        if let actions = self.meet(lease, response, now: now) { return actions + self.end(index) }
        if lease.id == self.comparisons.confirmation.lease {
            return self.confirmationResponded(index, response, now: now)
        }
        switch response {
        case .partial(let range, _):
            self.sources[lease.order.source].noteAccepted(now: now, after: lease.bytesBefore)
            if self.comparisons.audits.contains(lease.id) { self.mode.noteServed() }
            self.acceptSample(index, responseEnd: range.upperBound, now: now)
            return [.answer(lease.id, .proceed(limit: min(lease.order.limit, range.upperBound)))]
        case .changed(let difference):
            return self.disagrees(difference, lease, now: now) + self.end(index)
        case .moved(let difference):
            return self.moved(difference, lease, now: now) + self.end(index)
        case .whole, .ignoresRanges:
            if self.comparisons.audits.contains(lease.id) { return self.refuseAudit(lease, now: now) + self.end(index) }
            guard self.isLast(lease.order.source) else { fallthrough }
            return self.refuseSample(lease, now: now) + self.end(index)
        case .unsatisfiable, .notModified:
            let host = self.sources[lease.order.source].host
            let failure = DownloadError(.protocol, "\(host) does not support ranges")
            return self.loseSource(lease.order.source, failure) + self.end(index)
        case .redirected, .refused, .unauthorized, .rejected, .malformed:
            let failure = response.failure(host: self.sources[lease.order.source].host)
            return self.sampleFailed(failure, lease, now: now) + self.end(index)
        }
    }

    mutating func acceptSample(_ index: Int, responseEnd: Int64, now: Duration) {
        self.leases[index].phase = .receiving
        self.leases[index].wasAccepted = true
        self.leases[index].progressAt = now
        self.leases[index].responseEnd = responseEnd
    }

    /// Handles a reference that did not answer a comparison with a range. It is asked again. After several such answers
    /// another source becomes the reference. If there is none, one stream is compared with everything before its first new
    /// byte.
    private mutating func refuseAudit(_ lease: Lease, now: Duration) -> [DownloadAction] {
        let source = lease.order.source
        _ = self.mode.noteRefusal()
        guard self.mode.hasLostRanges else {
            self.sources[source].retryAt = now + self.settings.retry.delayBase
            return []
        }
        let host = self.sources[source].host
        if self.sources.ids.contains(where: { $0 != source && self.sources[$0].canBeReference }) {
            // The refusals were this source's own.
            self.mode.noteServed()
            return self.loseSource(source, DownloadError(.protocol, "\(host) does not support ranges"))
                + self.endSamples()
        }
        // The consumer of a stream has the bytes already, so they cannot be fetched again.
        guard self.window?.isStream != true else {
            self.comparisons.audits.removeAll()
            return []
        }
        // The stream might contradict bytes of other sources, which would look like a change of the file.
        let own = SourceTable.Contributor.source(self.sources.reference)
        let reason = "\(host) does not support ranges to compare with; bytes of other sources are fetched again"
        return self.comparisons.audits.contributors.filter { $0 != own }.flatMap { self.discard($0, reason) }
            + self.endSamples()
            + self.reviseIfSettled()
    }

    /// Whether a source is all that is left, although it is not proven to have the same file.
    private func isLast(_ source: SourceID) -> Bool { !self.hasUsable && !self.sources.hasAlternative(to: source) }

    /// Handles the last source, which did not answer a sample with a range. After several such answers one stream is compared with
    /// everything before its first new byte.
    private mutating func refuseSample(_ lease: Lease, now: Duration) -> [DownloadAction] {
        let source = lease.order.source
        self.sources[source].retryAt = now + self.settings.retry.delayBase
        return self.mode.noteRefusal()
            ? [.report(.note("\(self.sources[source].host) does not support ranges"))] : []
    }

    private mutating func sampleFailed(_ failure: DownloadError, _ lease: Lease, now: Duration) -> [DownloadAction] {
        let source = lease.order.source
        let purpose: FailedRequest.Purpose = self.comparisons.audits.contains(lease.id) ? .audit : .sample
        switch self.decide(purpose, failure, at: source, of: lease, now: now) {
        case .again(let delay, let isCounted):
            if isCounted { self.sources[source].failures += 1 }
            self.sources[source].retryAt = now + delay
            return []
        case .elsewhere(let delay): return self.failOver(failure, from: source, after: delay, now: now)
        case .leaveSource: return self.loseSource(source, failure)
        case .fewerConnections, .giveUp:
            self.outcome = .failed(failure)
            return []
        }
    }

    mutating func sampleEnded(_ lease: Lease, _ end: LeaseEnd, now: Duration) -> [DownloadAction] {
        if lease.id == self.comparisons.confirmation.lease { return self.confirmationEnded(lease, end, now: now) }
        let source = lease.order.source
        var actions: [DownloadAction] = []
        // A cancelled sample may have been answered before it ended.
        let isAnswered = end.isDecided && lease.bytesReceived > 0 && lease.revocation != .stopping
        let isAudit = self.comparisons.audits.contains(lease.id)
        if isAnswered { self.comparisons.audits.finish(lease, agrees: end == .finished) }
        if isAudit, end == .finished, isAnswered, self.comparisons.audits.isEmpty { self.proving.proof.end() }
        self.comparisons.audits.release(lease.id)
        let dispute = self.comparisons.disputes.asked(by: lease.id)
        guard self.outcome == nil else { return [] }
        // The compared bytes may have been withdrawn, or the source's trust may have changed.
        guard lease.revocation != .stopping, isAudit || dispute != nil || self.sources[source].trust == .unproven
        else {
            return self.reviseIfSettled()
        }
        switch end {
        case .finished where isAnswered:
            actions += dispute.map { self.arbitrated($0, by: lease, .agrees) } ?? self.agreed(lease)
        case .finished, .stopped:
            // A refusal was counted with its response.
            if lease.wasAccepted, !self.sources[source].isGone {
                let failure = DownloadError(
                    .network, "\(self.sources[source].host): no byte was received", isTransient: true)
                actions += self.sampleFailed(failure, lease, now: now)
            }
        case .differs(let offset, let byte):
            actions +=
                dispute.map { self.arbitrated($0, by: lease, .differs(byte)) } ?? self.differs(offset, byte, at: source)
        case .failed(let failure) where failure.code == .changed:
            actions += self.changed(failure.message, at: source)
        case .failed(let failure), .corrupt(let failure):
            actions += self.sampleFailed(failure, lease, now: now)
        case .revoked where lease.revocation == .stalled || lease.headPatience != nil:
            let failure = DownloadError(
                .network, "\(self.sources[source].host): no response in time", isTransient: true)
            actions += self.sampleFailed(failure, lease, now: now)
        case .revoked:
            break
        case .storageFailed(let failure):
            self.outcome = .failed(failure)
        }
        if let dispute, !isAnswered { actions += self.arbitrated(dispute, by: lease, nil) }
        actions += self.reviseIfSettled()
        self.finishIfComplete()
        return actions
    }

    private mutating func agreed(_ lease: Lease) -> [DownloadAction] {
        let source = lease.order.source
        self.sources[source].failures = 0
        guard self.sources[source].trust == .unproven else { return [] }
        self.sources[source].samples.append(lease.order.request.lowerBound)
        guard self.isSampledEnough(source) else { return [] }
        self.sources[source].trust = .sampled
        return self.replaceReference()
    }

    // MARK: At the end

    /// Sets the outcome if all bytes are on disk and bytes of sampled sources have been audited.
    mutating func finishIfComplete() {
        // An answer would come too late.
        while let source = self.sourceToConfirm, self.traffic.path.requestCost > Confirmation.patience.inSeconds {
            self.comparisons.confirmation.giveUp(source)
        }
        guard self.isUndisturbed, self.plan.isComplete, self.comparisons.disputes.isEmpty else { return }
        // The bytes of a lease are attributed to its source when it ends. A waiting hedge has written none.
        guard !self.sources.hasMirrors || self.leases.allSatisfy({ $0.order.isSample || $0.isWaitingHedge })
        else { return }
        if !self.comparisons.audits.areChosen {
            // A single stream was compared with all bytes before it. A digest verifies all bytes.
            let isNeeded = !self.proving.hasDigest && !self.isSingleStream
            self.comparisons.audits.choose(isNeeded ? self.endAudits() : [])
        }
        // If one answer had another validator, bytes that other connections have just written may be affected too.
        if self.comparisons.audits.isEmpty, let audit = self.auditOfDisagreement {
            self.comparisons.audits.add([audit])
        }
        if self.comparisons.audits.isEmpty {
            guard self.sourceToConfirm == nil, self.comparisons.confirmation.lease == nil else { return }
            self.outcome = .complete
        } else if !self.hasUsable {
            self.outcome = .failed(
                DownloadError(
                    .network, "all sources failed before the bytes of mirrors were compared",
                    hint: "All bytes are kept; the same request repeats the comparison", isTransient: true))
        }
    }

    /// The comparisons of bytes from sampled sources, and from those whose answers may be of different versions.
    private mutating func endAudits() -> [Audit] {
        let sampled = self.sources.ids.filter { id in
            id != self.sources.reference && !self.sources[id].contributed.isEmpty
        }
        let groups =
            sampled.map { SourceTable.Contributor.source($0) }
            + self.sources.earlier.indices.dropFirst(self.proving.provenGroups).filter { $0 != self.sources.adopted }
            .map { .earlier($0) }
        let doubtful = self.sources.ids.filter {
            self.sources[$0].deviations.isDoubtful && self.sources[$0].trust == .proven
        }
        let runs = self.plan.segments.map { $0.lowerBound..<$0.position }.filter { !$0.isEmpty }
        return Audits.comparing(
            groups.map { ($0, self.sources.contributed(by: $0)) }
                + doubtful.map { id in
                    (.source(id), self.sources.hasMirrors ? self.sources.contributed(by: .source(id)) : runs)
                },
            using: &self.context.generator)
    }

    // MARK: At the beginning

    /// The comparisons that prove the bytes of an earlier run without a validator.
    mutating func proofs() -> [Audit] {
        let own = Audits.Group(.source(self.sources.reference), self.sources.kept)
        let groups = self.sources.earlier.indices.map { Audits.Group(.earlier($0), self.sources.earlier[$0]) }
        return Audits.comparing([own] + groups, using: &self.context.generator)
    }

    /// Whether some bytes of the file were proven by a comparison instead of a validator.
    var isCompared: Bool {
        self.proving.proof != .unneeded || self.sources.earlier.contains { !$0.isEmpty }
            || self.sources.ids.contains { id in
                self.sources[id].deviations.isDoubtful
                    || id != self.sources.reference && !self.sources[id].contributed.isEmpty
            }
    }

    /// One more comparison with the reference, if its last answer had another validator. A server that makes each answer anew would
    /// not be compared either.
    private var auditOfDisagreement: Audit? {
        let reference = self.sources[self.sources.reference]
        // A single response is of one version.
        let isOneResponse =
            reference.exposure.answers == 1 && self.sources.kept.isEmpty && self.sources.earlier.isEmpty
        guard reference.isUsable, reference.deviations.disagreement.isOpen, !isOneResponse,
            !reference.deviations.disagreement.isAmongMany, !self.isSingleStream,
            let length = self.plan.completeLength, length > 0
        else { return nil }
        let spot = max(0, length - SampleSpots.length)..<length
        return Audit(spot: spot, contributor: self.contributor(of: spot.lowerBound))
    }
}

extension LeaseEnd {
    /// Whether the comparison had a result.
    fileprivate var isDecided: Bool {
        switch self {
        case .finished, .differs: true
        case .stopped, .failed, .revoked, .storageFailed, .corrupt: false
        }
    }
}
