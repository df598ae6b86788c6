/// Asks sources whether their file changed while its last bytes were being sent.
extension Fetching {
    /// Whether bytes of a source whose file has changed may be from the new version.
    func isExposed(_ source: SourceID) -> Bool {
        self.sources[source].exposure.isLong(since: self.traffic.beganAt)
    }

    /// A source that must be asked for its validator before the file counts as complete. Nil if there is none.
    ///
    /// A digest verifies all bytes. A server without ranges is not asked: many make each answer anew, with another
    /// validator.
    var sourceToConfirm: SourceID? {
        guard self.plan.isComplete, !self.proving.hasDigest, !self.isSingleStream, !self.mode.hasLostRanges else {
            return nil
        }
        return self.sources.ids.first { source in
            self.isExposed(source) && self.sources[source].isUsable
                && !self.comparisons.confirmation.unconfirmed.contains(source)
                && self.identity(of: source).resource.validator.showsChange
        }
    }

    /// What shows that the complete file is one version.
    var evidence: Evidence {
        self.comparisons.confirmation.unconfirmed.isEmpty ? self.isCompared ? .comparison : .validator : .none
    }

    /// Asks a source for the last byte again. Nil if that is not needed, or not possible now.
    ///
    /// If the answer has another validator, every other request is one from the first byte, as that of the first response was: some
    /// servers make the validator from the range. The head of its answer is enough.
    mutating func nextConfirmation(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        guard self.comparisons.confirmation.lease == nil, let source = self.sourceToConfirm,
            let length = self.plan.completeLength,
            self.sources[source].retryAt <= now, isOpen(self.sources[source].host)
        else { return nil }
        let isFromStart = self.comparisons.confirmation.disagreement(of: source).isEveryOther
        let order = self.sample(
            isFromStart ? 0..<length : length - 1..<length, from: source, confirms: true, now: now)
        self.comparisons.confirmation.ask(order.lease)
        return order
    }

    mutating func confirmationResponded(_ index: Int, _ response: RangeResponse, now: Duration) -> [DownloadAction] {
        let lease = self.leases[index]
        let source = lease.order.source
        let host = self.sources[source].host
        switch response {
        case .partial(let range, _):
            let doubts = self.confirmed(by: lease, now: now)
            self.acceptSample(index, responseEnd: range.upperBound, now: now)
            // The consumer of a stream has the byte already, and the head is enough.
            guard self.window?.isStream != true, range.upperBound - range.lowerBound == 1 else {
                return doubts + self.end(index)
            }
            return doubts + [.answer(lease.id, .proceed(limit: range.upperBound))]
        case .whole:
            return self.confirmed(by: lease, now: now) + self.end(index)
        case .changed(let difference):
            return self.differs(difference, at: source, now: now) + self.end(index)
        case .unsatisfiable(let length?) where length != self.plan.completeLength:
            let difference = "its length was \(self.plan.completeLength ?? 0) bytes and is now \(length) bytes"
            return self.differs(difference, at: source, now: now) + self.end(index)
        case .moved:
            let failure = DownloadError(.network, "\(host): its URL leads to another place now", isTransient: false)
            return self.unanswered(failure, by: source, now: now) + self.end(index)
        case .unsatisfiable, .notModified:
            let failure = DownloadError(.protocol, "\(host) did not send the last byte again")
            return self.unanswered(failure, by: source, now: now) + self.end(index)
        case .ignoresRanges(let reason):
            return self.unanswered(DownloadError(.protocol, "\(host): \(reason)"), by: source, now: now)
                + self.end(index)
        case .redirected, .refused, .unauthorized, .rejected, .malformed:
            return self.unanswered(response.failure(host: host), by: source, now: now) + self.end(index)
        }
    }

    mutating func confirmationEnded(_ lease: Lease, _ end: LeaseEnd, now: Duration) -> [DownloadAction] {
        self.comparisons.confirmation.end()
        guard self.outcome == nil else { return [] }
        let source = lease.order.source
        var actions: [DownloadAction] = []
        switch end {
        case .differs(let offset, let byte):
            actions = self.differs(offset, byte, at: source)
        case .storageFailed(let failure):
            self.outcome = .failed(failure)
        case .failed(let failure) where failure.code == .changed:
            actions = self.changed(failure.message, at: source)
        case .failed(let failure), .corrupt(let failure):
            if !lease.wasAccepted { actions = self.unanswered(failure, by: source, now: now) }
        case .revoked where lease.headPatience != nil && !lease.wasAccepted:
            let waited = (lease.headPatience ?? Confirmation.patience).inSeconds
            let failure = DownloadError(
                .network, "\(self.sources[source].host): no answer within \(waited) s", isTransient: false)
            actions = self.unanswered(failure, by: source, now: now)
        case .finished, .stopped, .revoked:
            break
        }
        actions += self.reviseIfSettled()
        self.finishIfComplete()
        return actions
    }

    /// Closes the connection of a request that takes too long.
    mutating func endConfirmation(now: Duration) -> [DownloadAction] {
        guard let lease = self.comparisons.confirmation.lease.flatMap({ self.lease($0) }),
            now - lease.startedAt > Confirmation.patience
        else { return [] }
        return self.revoke(lease.id, .headTooSlow(Confirmation.patience))
    }

    /// Handles an answer with the recorded validator. After one with another validator it may be from another node than
    /// the bytes, so it proves nothing.
    private mutating func confirmed(by lease: Lease, now: Duration) -> [DownloadAction] {
        let source = lease.order.source
        self.sources[source].noteAccepted(now: now, after: lease.bytesBefore)
        guard self.comparisons.confirmation.disagreement(of: source).isOpen else { return [] }
        self.comparisons.confirmation.giveUp(source)
        return [self.doubt("\(self.sources[source].host) answers with different validators", of: source)]
    }

    private mutating func differs(_ difference: String, at source: SourceID, now: Duration) -> [DownloadAction] {
        // Answers to the last requests for bytes count, too.
        self.comparisons.confirmation.note(difference, of: source, after: self.sources[source].deviations.disagreement)
        let disagreement = self.comparisons.confirmation.disagreement(of: source)
        guard !disagreement.isAmongMany else {
            self.comparisons.confirmation.giveUp(source)
            return [self.doubt("each answer of \(self.sources[source].host) has another validator", of: source)]
        }
        guard !disagreement.isChangeAtEnd else { return self.changed(difference, at: source) }
        self.sources[source].retryAt = now + disagreement.delay()
        return []
    }

    /// Handles an origin that does not say which version it has now. The file is complete, but what is known of its
    /// version is less.
    private mutating func unanswered(_ failure: DownloadError, by source: SourceID, now: Duration) -> [DownloadAction] {
        let failures = self.comparisons.confirmation.failures(of: source)
        if case .again(let delay, _) = self.decide(.confirmation, failure, failures: failures, at: source, now: now) {
            self.comparisons.confirmation.countFailure(of: source)
            self.sources[source].retryAt = now + delay
            return []
        }
        self.comparisons.confirmation.giveUp(source)
        // It has stated another version before, so the bytes may be of both.
        if let difference = self.comparisons.confirmation.disagreement(of: source).latest {
            return self.changed(difference, at: source)
        }
        return [self.doubt(failure.message, of: source)]
    }

    private func doubt(_ reason: String, of source: SourceID) -> DownloadAction {
        let seconds = Int(self.sources[source].exposure.time(since: self.traffic.beganAt).inSeconds.rounded(.up))
        let time = seconds > 0 ? "its last \(seconds) s" : "its last bytes"
        return .report(.note("\(reason); a change of the file during \(time) would not be noticed"))
    }
}
