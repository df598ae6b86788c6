/// A comparison of bytes on disk with those of the reference.
struct Audit: Hashable, Sendable {
    let spot: Range<Int64>
    let contributor: SourceTable.Contributor
    var lease: LeaseID?
}

/// Samples: bytes that are requested only to compare them with those on disk, which shows whether a source has the same
/// file.
extension Fetching {
    /// 16 KiB: different files hardly agree over this length by chance, and it costs almost nothing.
    static let sampleLength: Int64 = 16 << 10

    /// 3: one near a beginning, one near an end, one between them.
    static let samplesMin = 3

    /// 32: each audit costs a request at the end of the download.
    static let auditsMax = 32

    /// How long one connection is kept free for samples. After that, a mirror that does not answer must not slow the
    /// download.
    static let samplingPatience: Duration = .seconds(3)

    /// The number of connections kept free while a mirror is not compared yet.
    func roomForSamples(now: Duration) -> Int {
        guard self.target > 1, now - self.beganAt < Self.samplingPatience,
            self.plan.bytesMissing > Self.sampleLength * Int64(Self.samplesMin * 4),
            !self.leases.contains(where: \.order.isSample)
        else { return 0 }
        return self.sources.ids.contains { self.sources[$0].standing == .unproven } ? 1 : 0
    }

    /// The next comparison: a dispute, an audit, or a sample of an unproven source. Nil if none can be requested now.
    ///
    /// Not to be called while bytes are being withdrawn.
    mutating func nextSample(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        if let order = self.nextArbitration(now: now, isOpen: isOpen) { return order }
        let reference = self.sources[self.sources.reference]
        if let index = self.audits.firstIndex(where: { $0.lease == nil }), reference.isUsable {
            guard reference.retryAt <= now, isOpen(reference.host) else { return nil }
            let order = self.sample(self.audits[index].spot, from: self.sources.reference, now: now)
            self.audits[index].lease = order.lease
            return order
        }
        guard !self.plan.isComplete || !reference.isUsable else { return nil }
        for id in self.sources.ids where self.sources[id].standing == .unproven {
            // Fewer samples may be enough now, because another source is gone.
            if self.isSampledEnough(id) { self.sources[id].standing = .sampled }
            guard self.sources[id].standing == .unproven, !self.disputes.contains(accuser: id),
                self.sources[id].retryAt <= now,
                isOpen(self.sources[id].host),
                !self.leases.contains(where: { $0.order.source == id }), let spot = self.spot(for: id)
            else { continue }
            return self.sample(spot, from: id, now: now)
        }
        return nil
    }

    mutating func sample(_ spot: Range<Int64>, from source: SourceID, now: Duration) -> FetchOrder {
        let identity = self.identity(of: source)
        var request = RangeRequest(
            lowerBound: spot.lowerBound, upperBound: spot.upperBound, identity: identity.resource,
            comparesValidator: identity.comparesValidator)
        request.closesConnection = self.sources[source].disagreement.isOpen
        let order = FetchOrder(
            lease: LeaseID(self.leaseNext), source: source, segment: .none, request: request,
            writesFrom: spot.upperBound, limit: spot.upperBound)
        self.leaseNext += 1
        self.leases.append(Lease(order: order, now: now))
        return order
    }

    /// The place on disk that is farthest from the earlier samples of a source. Nil if there is none far enough.
    private func spot(for source: SourceID) -> Range<Int64>? {
        var length = Self.sampleLength
        if !self.hasUsable {
            // Without a usable source no more bytes will come, so shorter runs must suffice.
            let longest = self.plan.segments.map { $0.position - $0.lowerBound }.max() ?? 0
            length = min(length, longest)
        }
        guard length > 0 else { return nil }
        var places: [Int64] = []
        for segment in self.plan.segments where segment.position - segment.lowerBound >= length {
            let last = segment.position - length
            places += [segment.lowerBound, (segment.lowerBound + last) / 2, last]
        }
        let before = self.sources[source].samples
        let far = places.map { place in (place, before.map { abs($0 - place) }.min() ?? .max) }
        guard let (place, distance) = far.max(by: { ($0.1, $1.0) < ($1.1, $0.0) }), distance >= length else {
            return nil
        }
        return place..<(place + length)
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
        switch response {
        case .partial(let range, _):
            self.sources[lease.order.source].noteAccepted()
            self.leases[index].phase = .receiving
            self.leases[index].wasAccepted = true
            self.leases[index].progressAt = now
            self.leases[index].responseEnd = range.upperBound
            return [.answer(lease.id, .proceed(limit: min(lease.order.limit, range.upperBound)))]
        case .changed(let difference):
            return self.disagrees(difference, lease, now: now) + self.end(index)
        case .moved(let difference):
            return self.moved(difference, lease, now: now) + self.end(index)
        case .whole, .ignoresRanges:
            guard self.audits.contains(where: { $0.lease == lease.id }) else { fallthrough }
            // A reference without ranges cannot be compared. One stream fetches the bytes of other sources again, and
            // everything before them is compared.
            self.mode.loseRanges()
            let contributors = self.audits.reduce(into: [SourceTable.Contributor]()) { all, audit in
                let isOwn = audit.contributor == .source(self.sources.reference)
                if !isOwn, !all.contains(audit.contributor) { all.append(audit.contributor) }
            }
            self.audits = []
            let host = self.sources[lease.order.source].host
            let reason = "\(host) does not support ranges to compare with; bytes of other sources are fetched again"
            return contributors.flatMap { self.discard($0, reason) } + self.end(index)
        case .unsatisfiable, .notModified:
            let host = self.sources[lease.order.source].host
            let failure = Failure(.protocol, "\(host) does not support ranges")
            return self.loseSource(lease.order.source, failure) + self.end(index)
        case .redirected, .refused, .unauthorized, .rejected, .malformed:
            let failure = response.failure(host: self.sources[lease.order.source].host)
            return self.sampleFailed(failure, lease, now: now) + self.end(index)
        }
    }

    private mutating func sampleFailed(_ failure: Failure, _ lease: Lease, now: Duration) -> [DownloadAction] {
        let source = lease.order.source
        if !self.sources.hasAlternative(to: source) {
            if let asked = failure.retryAfter, asked > self.settings.retry.retryAfterMax {
                self.outcome = .failed(failure)
                return []
            }
            // While other connections are served, the failure concerns their number.
            let others = self.leases.contains { $0.id != lease.id && $0.phase == .receiving }
            if failure.isTransient, others, now - self.servedAt < Self.serviceInterval {
                self.sources[source].retryAt = now + self.settings.retry.delayBase
                return []
            }
        }
        // A sample has no segment against which the failure could be counted.
        return self.failOver(failure, from: source, now: now)
    }

    mutating func sampleEnded(_ lease: Lease, _ end: LeaseEnd, now: Duration) -> [DownloadAction] {
        let source = lease.order.source
        var actions: [DownloadAction] = []
        // A cancelled sample may have been answered before it ended.
        let isAnswered = end.isDecided && lease.bytesReceived > 0 && lease.revocation != .stopping
        let isAudit = self.audits.contains { $0.lease == lease.id }
        if isAnswered { self.finishAudit(lease, agrees: end == .finished) }
        if isAudit, end == .finished, isAnswered, self.audits.isEmpty { self.proof.end() }
        // An unanswered audit is requested again.
        for index in self.audits.indices where self.audits[index].lease == lease.id { self.audits[index].lease = nil }
        let dispute = self.disputes.asked(by: lease.id)
        guard self.outcome == nil else { return [] }
        // The compared bytes may have been withdrawn, or the source's standing may have changed.
        guard lease.revocation != .stopping, isAudit || dispute != nil || self.sources[source].standing == .unproven
        else {
            return self.reviseIfSettled()
        }
        switch end {
        case .finished where isAnswered:
            actions += dispute.map { self.arbitrated($0, by: lease, .agrees) } ?? self.agreed(lease)
        case .finished, .stopped:
            // A refusal was counted with its response.
            if lease.wasAccepted, !self.sources[source].isGone {
                let failure = Failure(.network, "\(self.sources[source].host): no byte was received", isTransient: true)
                actions += self.sampleFailed(failure, lease, now: now)
            }
        case .differs(let offset, let byte):
            actions +=
                dispute.map { self.arbitrated($0, by: lease, .differs(byte)) } ?? self.differs(offset, byte, at: source)
        case .failed(let failure) where failure.code == .changed:
            actions += self.changed(failure.message, at: source)
        case .failed(let failure), .corrupt(let failure):
            actions += self.sampleFailed(failure, lease, now: now)
        case .revoked where lease.revocation == .stalled || lease.revocation == .headTooSlow:
            let failure = Failure(.network, "\(self.sources[source].host): no answer in time", isTransient: true)
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

    /// Records the answer to an audit. If the server sent less than requested, the rest is audited separately.
    private mutating func finishAudit(_ lease: Lease, agrees: Bool) {
        guard let index = self.audits.firstIndex(where: { $0.lease == lease.id }) else { return }
        let audit = self.audits.remove(at: index)
        let reached = lease.order.request.lowerBound + lease.bytesReceived
        guard agrees, lease.responseEnd < audit.spot.upperBound, reached < audit.spot.upperBound else { return }
        self.audits.append(Audit(spot: reached..<audit.spot.upperBound, contributor: audit.contributor))
    }

    private mutating func agreed(_ lease: Lease) -> [DownloadAction] {
        let source = lease.order.source
        self.sources[source].failures = 0
        guard self.sources[source].standing == .unproven else { return [] }
        self.sources[source].samples.append(lease.order.request.lowerBound)
        guard self.isSampledEnough(source) else { return [] }
        self.sources[source].standing = .sampled
        return self.replaceReference()
    }

    // MARK: At the end

    /// Sets the outcome if all bytes are on disk and bytes of sampled sources have been audited.
    mutating func finishIfComplete() {
        guard self.isUndisturbed, self.plan.isComplete, self.disputes.isEmpty else { return }
        // The bytes of a lease are attributed to its source when it ends. A waiting hedge has written none.
        guard !self.sources.hasMirrors || self.leases.allSatisfy({ $0.order.isSample || $0.isWaitingHedge })
        else { return }
        if !self.hasAudited {
            self.hasAudited = true
            // A single stream was compared with all bytes before it. A digest verifies all bytes.
            let isNeeded = self.settings.digests.isEmpty && !self.isSingleStream
            self.audits += isNeeded ? self.endAudits() : []
        }
        // If one answer had another validator, bytes that other connections have just written may be affected too.
        if self.audits.isEmpty, let audit = self.auditOfDisagreement { self.audits = [audit] }
        if self.audits.isEmpty {
            self.outcome = .complete
        } else if !self.hasUsable {
            self.outcome = .failed(
                Failure(
                    .network, "no source is left to compare the bytes of other sources with",
                    hint: "Run the same command again: nothing is fetched twice", isTransient: true))
        }
    }

    /// Audits at both ends of every run of bytes from sampled sources. Files that differ from some offset on differ at
    /// an end.
    private func endAudits() -> [Audit] {
        let sampled = self.sources.ids.filter { id in
            id != self.sources.reference && !self.sources[id].contributed.isEmpty
        }
        let groups =
            sampled.map { SourceTable.Contributor.source($0) }
            + self.sources.earlier.indices.dropFirst(self.provenGroups).map { .earlier($0) }
        return groups.flatMap { group in
            Self.audits(at: self.sources.contributed(by: group).flatMap { Self.ends(of: $0) }, of: group)
        }
    }

    /// The last bytes of a run, and its first bytes if it is long.
    private static func ends(of run: Range<Int64>) -> [Range<Int64>] {
        let last = max(run.lowerBound, run.upperBound - Self.sampleLength)..<run.upperBound
        guard run.upperBound - run.lowerBound > 2 * Self.sampleLength else { return [last] }
        return [last, run.lowerBound..<(run.lowerBound + Self.sampleLength)]
    }

    /// Audits at the given places. If there are more than `count`, every n-th is chosen.
    private static func audits(
        at spots: [Range<Int64>], of contributor: SourceTable.Contributor, max count: Int = Self.auditsMax
    ) -> [Audit] {
        let step = max((spots.count + count - 1) / count, 1)
        return stride(from: 0, to: spots.count, by: step).map { Audit(spot: spots[$0], contributor: contributor) }
    }

    // MARK: At the beginning

    /// 128: both ends of 64 runs, more than a resumed download usually has.
    private static let endsMax = 128

    /// At most this many random places are compared, one for each MiB of long runs.
    private static let randomPlacesMax = 32

    /// The comparisons that prove the bytes of an earlier run without a validator: at both sides of every gap and at
    /// random places.
    mutating func proofs() -> [Audit] {
        var groups: [(SourceTable.Contributor, [Range<Int64>])] = [(.source(self.sources.reference), self.sources.kept)]
        groups += self.sources.earlier.indices.map { (.earlier($0), self.sources.earlier[$0]) }
        return groups.flatMap { contributor, runs in
            let ends = Self.audits(at: runs.flatMap { Self.ends(of: $0) }, of: contributor, max: Self.endsMax)
            return ends + self.randomPlaces(in: runs).map { Audit(spot: $0, contributor: contributor) }
        }
    }

    /// Random places in long runs. Each byte is equally likely.
    private mutating func randomPlaces(in runs: [Range<Int64>]) -> [Range<Int64>] {
        let long = runs.filter { $0.upperBound - $0.lowerBound > 2 * Self.sampleLength }
        let length = long.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
        let count = min(Int(clamping: length >> 20), Self.randomPlacesMax)
        return (0..<count).compactMap { _ in
            var offset = Int64(self.generator.next() % UInt64(length))
            for run in long {
                guard offset >= run.upperBound - run.lowerBound else {
                    let start = min(run.lowerBound + offset, run.upperBound - Self.sampleLength)
                    return start..<(start + Self.sampleLength)
                }
                offset -= run.upperBound - run.lowerBound
            }
            return nil
        }
    }

    /// Whether some bytes of the file were proven by a comparison instead of a validator.
    var isCompared: Bool {
        self.proof != .unneeded || self.sources.earlier.contains { !$0.isEmpty }
            || self.sources.ids.contains { $0 != self.sources.reference && !self.sources[$0].contributed.isEmpty }
    }

    /// One more comparison with the reference, if its last answer had another validator.
    private var auditOfDisagreement: Audit? {
        let reference = self.sources[self.sources.reference]
        guard reference.isUsable, reference.disagreement.isOpen, !self.isSingleStream,
            let length = self.plan.completeLength, length > 0
        else { return nil }
        let spot = max(0, length - Self.sampleLength)..<length
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
