/// The request that shows whether the file changed while its last bytes were being sent.
///
/// A server identifies the version in the head of a response. If the file is then overwritten in place, the rest of the
/// body is from the new version, under the validator of the old one. A head that arrives later proves the bytes that
/// arrived before it; the last bytes of a file need a request of their own.
struct Confirmation: Hashable, Sendable {
    /// 1 s: bytes that arrived at most so long after a head count as read by the server when it sent that head.
    /// Short files then take no second request.
    static let exposureMax: Duration = .seconds(1)

    /// 2: all bytes are there, so an origin that does not answer is not waited for long.
    static let attemptsMax = 2

    /// 5 s: the longest delay that an origin may ask for.
    static let delayMax: Duration = .seconds(5)

    /// The request in progress, absent if there is none.
    private(set) var lease: LeaseID?
    private var failures = 0

    /// Whether the origin did not answer, and is not asked again.
    var isGivenUp: Bool { self.failures >= Self.attemptsMax }

    mutating func ask(_ lease: LeaseID) { self.lease = lease }

    mutating func end() { self.lease = nil }

    /// Counts an attempt without an answer. One that another attempt would not change is the last one.
    mutating func fail(isTransient: Bool) { self.failures = isTransient ? self.failures + 1 : Self.attemptsMax }
}

extension Fetching {
    /// How long after its last accepted head a source sent bytes of the file.
    private func exposure(of source: SourceID) -> Duration {
        guard let writtenAt = self.sources[source].writtenAt else { return .zero }
        return writtenAt - (self.sources[source].acceptedAt ?? self.beganAt)
    }

    /// Whether bytes of a source whose file has changed may be from the new version.
    func isExposed(_ source: SourceID) -> Bool { self.exposure(of: source) > Confirmation.exposureMax }

    /// Whether the reference must be asked for its validator before the file counts as complete.
    ///
    /// A digest verifies all bytes. A server without ranges is not asked: many make each answer anew, with another
    /// validator.
    var needsConfirmation: Bool {
        guard self.isExposed(self.sources.reference), !self.confirmation.isGivenUp, !self.hasDigest,
            self.plan.isComplete, !self.isSingleStream, !self.mode.hasLostRanges
        else { return false }
        // Without a proof the byte itself is compared, and the consumer of a stream has it already.
        return self.sources[self.sources.reference].isUsable && self.resource.validator != .none
            && (self.resource.isProvable || self.window?.isStream != true)
    }

    var evidence: Evidence { self.confirmation.isGivenUp ? .none : self.isCompared ? .comparison : .validator }

    /// Asks the reference for the last byte again. Nil if that is not needed, or not possible now.
    mutating func nextConfirmation(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        let reference = self.sources[self.sources.reference]
        guard self.needsConfirmation, self.confirmation.lease == nil, let length = self.plan.completeLength,
            reference.retryAt <= now, isOpen(reference.host)
        else { return nil }
        let order = self.sample(length - 1..<length, from: self.sources.reference, now: now)
        self.confirmation.ask(order.lease)
        return order
    }

    mutating func confirmationResponded(_ index: Int, _ response: RangeResponse, now: Duration) -> [DownloadAction] {
        let lease = self.leases[index]
        let source = lease.order.source
        switch response {
        case .partial(let range, _):
            self.sources[source].noteAccepted(now: now)
            self.leases[index].beginBody(now: now)
            self.leases[index].wasAccepted = true
            self.leases[index].responseEnd = range.upperBound
            return [.answer(lease.id, .proceed(limit: range.upperBound))]
        case .whole:
            // The head is enough.
            self.sources[source].noteAccepted(now: now)
            return self.end(index)
        case .changed(let difference):
            return self.disagrees(difference, lease, now: now) + self.end(index)
        case .moved(let difference):
            return self.moved(difference, lease, now: now) + self.end(index)
        case .unsatisfiable(let length?) where length != self.plan.completeLength:
            let difference = "its length was \(self.plan.completeLength ?? 0) bytes and is now \(length) bytes"
            return self.disagrees(difference, lease, now: now) + self.end(index)
        case .unsatisfiable, .notModified, .ignoresRanges:
            let failure = Failure(.protocol, "\(self.sources[source].host) does not support ranges")
            return self.unanswered(failure, now: now) + self.end(index)
        case .redirected, .refused, .unauthorized, .rejected, .malformed:
            return self.unanswered(response.failure(host: self.sources[source].host), now: now) + self.end(index)
        }
    }

    mutating func confirmationEnded(_ lease: Lease, _ end: LeaseEnd, now: Duration) -> [DownloadAction] {
        self.confirmation.end()
        guard self.outcome == nil else { return [] }
        var actions: [DownloadAction] = []
        switch end {
        case .differs(let offset, let byte):
            actions = self.differs(offset, byte, at: lease.order.source)
        case .storageFailed(let failure):
            self.outcome = .failed(failure)
        case .failed(let failure) where failure.code == .changed:
            actions = self.changed(failure.message, at: lease.order.source)
        case .failed(let failure), .corrupt(let failure):
            if !lease.wasAccepted { actions = self.unanswered(failure, now: now) }
        case .revoked where lease.revocation == .headTooSlow:
            let failure = Failure(.network, "\(self.sources[lease.order.source].host): no response in time")
            actions = self.unanswered(failure, now: now)
        case .finished, .stopped, .revoked:
            break
        }
        actions += self.reviseIfSettled()
        self.finishIfComplete()
        return actions
    }

    /// Handles an origin that does not say which version it has now. The file is complete, but what is known of its
    /// version is less.
    private mutating func unanswered(_ failure: Failure, now: Duration) -> [DownloadAction] {
        let delay = max(failure.retryAfter ?? .zero, self.settings.retry.delayBase)
        self.confirmation.fail(isTransient: failure.isTransient && delay <= Confirmation.delayMax)
        guard self.confirmation.isGivenUp else {
            self.sources[self.sources.reference].retryAt = now + delay
            return []
        }
        return [
            .report(
                .note(
                    "\(failure.message); a change of the file during its last "
                        + "\(Int(self.exposure(of: self.sources.reference).inSeconds)) s "
                        + "would not be noticed"))
        ]
    }
}
