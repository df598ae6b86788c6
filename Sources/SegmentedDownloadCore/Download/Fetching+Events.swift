/// Events from leases: response heads, limits reached, ends.
extension Fetching {
    /// Handles the head of a lease's response.
    mutating func responded(_ id: LeaseID, _ response: RangeResponse, now: Duration) -> [DownloadAction] {
        guard let index = self.leases.firstIndex(where: { $0.id == id }), self.outcome == nil else {
            return [.answer(id, .stop)]
        }
        let lease = self.leases[index]
        if lease.order.isSample { return self.sampleResponded(index, response, now: now) }
        if lease.isWaitingHedge { return self.hedgeResponded(index, response, now: now) }
        guard lease.phase == .requested, let segment = self.plan[lease.order.segment] else {
            return [.answer(id, .stop)]
        }
        if let actions = self.meet(lease, response, now: now) { return actions + self.end(index) }
        self.noteDoubt(response, from: lease.order.source)
        switch response {
        case .partial where self.plan.completeLength == nil:
            // A body of unknown length ends where its stream ends. A partial body would end the file too early.
            return self.refuseRange(index, "it sent a partial response, although no range was requested", now: now)
        case .partial(let range, _) where range.upperBound <= segment.position:
            return self.refuseRange(
                index, "its answer ends before byte \(segment.position), which was asked for", now: now)
        case .partial(let range, _):
            return self.accept(index, segment, responseEnd: range.upperBound, now: now)
        case .whole(let found)
        where self.isSingleStream && self.plan.completeLength == nil && found.endsWithConnection
            && !self.resource.endsWithConnection:
            // The end of this body cannot be verified, although that of the earlier response could.
            let reason = "its response has no length or chunked coding any more, so its end cannot be verified"
            return self.refuse(
                index, DownloadError(.protocol, "\(self.host(index)): \(reason)", isTransient: true), now: now)
        case .whole where self.isSingleStream:
            let end = self.plan.completeLength ?? self.settings.streamLengthMaximum
            return self.accept(index, segment, responseEnd: end, now: now)
        case .whole:
            return self.refuseRange(index, "it sent the whole file instead of a range", now: now)
        case .ignoresRanges(let reason):
            return self.refuseRange(index, reason, now: now)
        case .changed(let difference):
            return self.disagrees(difference, lease, now: now) + self.end(index)
        case .moved(let difference):
            return self.moved(difference, lease, now: now) + self.end(index)
        case .notModified:
            return self.refuse(
                index, DownloadError(.protocol, "the origin answered 304 to an unconditional request"), now: now)
        case .unsatisfiable(let length?) where length != self.resource.completeLength:
            let was = self.resource.completeLength ?? 0
            let difference = "its length was \(was) bytes and is now \(length) bytes"
            return self.disagrees(difference, lease, now: now) + self.end(index)
        case .unsatisfiable:
            return self.refuseRange(index, "it answered 416 to a range that lies within the file", now: now)
        case .redirected, .refused, .unauthorized, .rejected, .malformed:
            return self.refuse(index, response.failure(host: self.host(index)), now: now)
        }
    }

    private mutating func noteDoubt(_ response: RangeResponse, from source: SourceID) {
        guard let resource = response.resource else { return }
        let (known, comparesValidator) = self.identity(of: source)
        guard comparesValidator, known.isProvable, known.verdict(on: resource) == .unproven else { return }
        self.sources[source].deviations.isDoubtful = true
    }

    private func host(_ index: Int) -> String { self.sources[self.leases[index].order.source].host }

    private mutating func accept(
        _ index: Int, _ segment: Segment, responseEnd: Int64, now: Duration
    ) -> [DownloadAction] {
        self.noteHead(of: self.leases[index], now: now)
        self.sources[self.leases[index].order.source].noteAccepted(now: now, after: self.leases[index].bytesBefore)
        self.mode.noteServed()
        self.leases[index].beginBody(now: now)
        self.leases[index].wasAccepted = true
        self.leases[index].headAt = now
        self.leases[index].responseEnd = responseEnd
        self.traffic.controller.joined(self.observation, now: now)
        let limit = min(segment.upperBound, responseEnd)
        return [
            .report(.segmentOpened(segment.id, segment.position..<limit, self.leases[index].order.source)),
            .answer(self.leases[index].id, .proceed(limit: limit)),
        ]
    }

    private mutating func refuseRange(_ index: Int, _ reason: String, now: Duration) -> [DownloadAction] {
        guard !self.isSingleStream else {
            self.outcome = .failed(DownloadError(.protocol, "\(self.host(index)): \(reason)"))
            return self.end(index)
        }
        if self.sources.hasAlternative(to: self.leases[index].order.source) {
            return self.loseSource(
                self.leases[index].order.source, DownloadError(.protocol, "\(self.host(index)): \(reason)"))
                + self.end(index)
        }
        let note: [DownloadAction] =
            self.mode.noteRefusal()
            ? [.report(.note("\(self.host(index)) does not support ranges: \(reason)"))] : []
        self.plan.postpone(self.leases[index].order.segment, until: now + self.settings.retry.delayBase)
        return note + self.end(index)
    }

    /// Handles a response that yields no bytes.
    private mutating func refuse(_ index: Int, _ failure: DownloadError, now: Duration) -> [DownloadAction] {
        var failure = failure
        if failure.code == .protocol, self.traffic.noteMalformed() {
            failure = DownloadError(.protocol, failure.message, isTransient: true)
        }
        return self.count(failure, of: self.leases[index], now: now) + self.end(index)
    }

    mutating func end(_ index: Int) -> [DownloadAction] {
        self.leases[index].phase = .ending
        return [.answer(self.leases[index].id, .stop)]
    }

    /// Handles a lease that has written up to its limit while its response continues.
    mutating func limitReached(_ id: LeaseID, now: Duration) -> [DownloadAction] {
        guard let index = self.leases.firstIndex(where: { $0.id == id }), self.outcome == nil,
            self.leases[index].phase == .receiving, !self.leases[index].order.isSample
        else { return [.answer(id, .stop)] }
        let lease = self.leases[index]
        let segment = lease.order.segment
        if self.plan.completeLength == nil {
            self.outcome = .failed(self.overlong(at: index))
            return self.end(index)
        }
        if self.isSingleStream, let length = self.plan.completeLength, lease.position >= length {
            return self.overrun(index, length: length)
        }
        // Extending the segment into unleased bytes saves a request.
        if let current = self.plan[segment], current.position >= current.upperBound,
            lease.responseEnd > current.upperBound, lease.yieldsBy == nil
        {
            let overtaken = self.overtake(behind: segment, by: lease, now: now)
            if let upperBound = self.absorbPiece(behind: segment) {
                return overtaken + [.answer(id, .proceed(limit: min(upperBound, lease.responseEnd)))]
            }
            return overtaken + self.end(index)
        }
        return self.end(index)
    }

    /// Gives up an unanswered request for the bytes behind a segment, if the response before it brings them sooner.
    ///
    /// That response can go on to the end of the file. It is all that is certain while the source has not answered another request
    /// with bytes, or not lately: the request may be refused, or answered with another validator, or never.
    private mutating func overtake(behind id: Segment.ID, by lease: Lease, now: Duration) -> [DownloadAction] {
        guard let index = self.plan.index(of: id), index + 1 < self.plan.segments.count else { return [] }
        let next = self.plan.segments[index + 1]
        // Of a segment that was begun, bytes would be written twice.
        guard next.position == next.lowerBound, let holder = next.lease, let request = self.lease(holder),
            !request.wasAccepted
        else { return [] }
        let isDoubtful = request.phase == .ending || self.sources[request.order.source].answeredRequest == nil
        let time = lease.meter.rate.map { Double(next.remaining) / max($0, 1) } ?? .infinity
        guard isDoubtful || time < self.traffic.path.timeToHead(of: request, now: now) else { return [] }
        self.plan.assign(next.id, to: nil)
        return self.revoke(holder, .outrun)
    }

    /// The failure for a stream of unknown length that is longer than allowed or expected.
    private func overlong(at index: Int) -> DownloadError {
        if let expected = self.settings.lengthExpected, expected <= self.settings.lengthMaximum {
            return DownloadError(
                .integrity, "\(self.host(index)) has a file of more than the \(expected) bytes that it should have")
        }
        return DownloadError(.space, "the file is longer than the \(self.settings.lengthMaximum) bytes allowed")
    }

    /// Handles a stream without a length that continues after the end of the file. It is from another file, and so are
    /// the bytes it delivered.
    private mutating func overrun(_ index: Int, length: Int64) -> [DownloadAction] {
        let source = self.leases[index].order.source
        let difference = "it continues after byte \(length), where it should end"
        guard self.sources.hasAlternative(to: source) else {
            self.outcome = .changed(difference)
            return self.end(index)
        }
        let reason = "\(self.host(index)) has another file: \(difference); its bytes are fetched again"
        return self.quarantine(source, reason) + self.end(index)
    }

    /// Handles the end of a lease's fetch. Its connection is closed or back in the pool.
    mutating func ended(_ id: LeaseID, _ end: LeaseEnd, now: Duration) -> [DownloadAction] {
        guard let index = self.leases.firstIndex(where: { $0.id == id }) else { return [] }
        let lease = self.leases.remove(at: index)
        if lease.order.isSample { return self.sampleEnded(lease, end, now: now) }
        let segmentID = lease.order.segment
        // Another lease may have taken it over.
        if self.plan[segmentID]?.lease == id { self.plan.assign(segmentID, to: nil) }
        if lease.wasRefused { self.sources[lease.order.source].answeredRequest = nil }
        self.sources.contribute(
            lease.writesFrom..<max(lease.position, lease.writesFrom), by: lease.order.source)
        // The last byte was observed before its claim was recorded.
        if self.outcome == .complete, case .storageFailed(let failure) = end { self.outcome = .failed(failure) }
        if self.outcome == .complete, case .corrupt = end { self.outcome = nil }
        // A tick may observe the last byte before the lease that wrote it has ended.
        if self.outcome == .complete { return self.done(lease) }
        guard self.outcome == nil else { return [] }
        guard let segment = self.plan[segmentID] else { return self.ended(withoutSegment: lease, end, now: now) }
        var actions: [DownloadAction] = []
        self.noteRate(of: lease, end, now: now)
        switch end {
        case .finished:
            if self.plan.completeLength == nil, lease.phase == .receiving {
                guard lease.order.request.lowerBound + lease.bytesReceived >= lease.position else {
                    self.outcome = .changed("it ends before byte \(lease.position), which was fetched before")
                    return []
                }
                self.plan.close(at: lease.position)
            } else if !segment.isComplete, lease.phase == .receiving, lease.hasProgressed {
                self.pace(lease, now: now)
            } else if !segment.isComplete, lease.phase == .receiving {
                let failure = DownloadError(
                    .network, "\(self.sources[lease.order.source].host): the body ended without a byte",
                    isTransient: true)
                actions += self.count(failure, of: lease, now: now)
                self.concludeShort(lease)
            }
        case .failed(let failure) where failure.code == .changed:
            actions += self.changed(failure.message, at: lease.order.source)
        // Another lease fetches the rest.
        case .failed where lease.revocation == .outrun: break
        case .failed(let failure):
            if lease.wasAccepted, failure.code == .network { self.traffic.noteCut(now: now) }
            if lease.hasProgressed, failure.isTransient {
                self.pace(lease, now: now)
                actions.append(
                    .report(
                        .segmentRetry(segmentID, segment.position..<segment.upperBound, lease.order.source)))
            } else {
                actions += self.count(failure, of: lease, now: now)
            }
        case .stopped:
            break
        case .revoked:
            actions += self.ended(revoked: lease, segment: segment, now: now)
        case .storageFailed(let failure):
            self.outcome = .failed(failure)
        case .corrupt(let failure):
            actions += self.corrupt(failure, of: lease, now: now)
        case .differs(let offset, let byte):
            actions += self.differs(offset, byte, at: lease.order.source)
        }
        // Corrupt bytes are withdrawn, so the segment is not done.
        let isCorrupt = if case .corrupt = end { true } else { false }
        if self.outcome == nil, !isCorrupt { actions += self.done(lease) }
        return actions + self.settleAfterEnd()
    }

    /// Handles a body that does not match the digest that its own response states.
    private mutating func corrupt(_ failure: DownloadError, of lease: Lease, now: Duration) -> [DownloadAction] {
        if self.sources.hasAlternative(to: lease.order.source) {
            return self.quarantine(lease.order.source, "\(failure.message); its bytes are fetched again")
        }
        // The consumer of a stream has the bytes already.
        guard self.settings.digests.contains(where: \.isCollisionResistant), self.window?.isStream != true else {
            self.outcome = .failed(failure)
            return []
        }
        let isFirst = !self.proving.ignoresContentDigests
        self.proving.ignoresContentDigests = true
        self.withdrawals.add([lease.writesFrom..<max(lease.position, lease.writesFrom)].filter { !$0.isEmpty })
        self.plan.postpone(lease.order.segment, until: now + self.settings.retry.delayBase)
        let note = "\(failure.message); only the digest that was given counts from now on"
        return isFirst ? [.report(.note(note))] : []
    }

    /// Reports a change if the download fails because the whole file ends every time where the fetched bytes end. More
    /// attempts would end there, too.
    private mutating func concludeShort(_ lease: Lease) {
        guard self.isSingleStream, let length = self.plan.completeLength, case .failed = self.outcome,
            lease.order.request.lowerBound + lease.bytesReceived == lease.position
        else { return }
        self.outcome = .changed("it ends at byte \(lease.position) every time and had \(length) bytes before")
    }

    /// Reports the segment of an ended lease, if it is complete.
    private func done(_ lease: Lease) -> [DownloadAction] {
        guard let segment = self.plan[lease.order.segment], segment.isComplete else { return [] }
        return [.report(.segmentDone(segment.id, segment.lowerBound..<segment.position, lease.order.source))]
    }

    private mutating func settleAfterEnd() -> [DownloadAction] {
        var actions = self.reviseIfSettled()
        if self.isReplacing, self.outcome == nil { actions += self.replaceReference() }
        self.finishIfComplete()
        return actions
    }

    /// Handles the end of a lease without a segment: a hedge that did not take over, or a lease whose whole segment was
    /// taken over or reopened.
    private mutating func ended(withoutSegment lease: Lease, _ end: LeaseEnd, now: Duration) -> [DownloadAction] {
        var actions: [DownloadAction] = []
        switch end {
        case .storageFailed(let failure): self.outcome = .failed(failure)
        case .differs(let offset, let byte): actions += self.differs(offset, byte, at: lease.order.source)
        // A failure that only a hedge has seen is not counted. The next request for unleased bytes shows whether it
        // persists.
        case .failed where lease.isWaitingHedge: self.rebalancing.hedging.postpone(now: now)
        case .failed(let failure) where failure.code == .changed:
            actions += self.changed(failure.message, at: lease.order.source)
        // None of its bytes are used.
        case .failed: break
        case .corrupt, .finished, .stopped, .revoked: break
        }
        return actions + self.settleAfterEnd()
    }

    /// Records the speed of a connection that has done its work.
    private mutating func noteRate(of lease: Lease, _ end: LeaseEnd, now: Duration) {
        guard end == .finished || end == .stopped, lease.hasProgressed, now > lease.startedAt else { return }
        // A connection that finished before its rate could be measured was at least this fast.
        let average = Double(lease.position - lease.writesFrom) / (now - lease.startedAt).inSeconds
        let rate = lease.meter.rate ?? average
        self.traffic.path.noteRate(rate)
        self.sources[lease.order.source].rate = rate
    }

    private mutating func ended(revoked lease: Lease, segment: Segment, now: Duration) -> [DownloadAction] {
        switch lease.revocation {
        case .stalled where !lease.hasProgressed, .headTooSlow:
            let what = lease.headPatience == nil ? "no byte" : "no complete response head"
            let waited = lease.headPatience ?? self.settings.stallTimeout
            let failure = DownloadError(
                .network, "\(self.sources[lease.order.source].host): \(what) within \(waited.inSeconds) s",
                isTransient: true)
            return self.count(failure, of: lease, now: now)
        case .stalled, .tooSlow, .silent:
            return [
                .report(.segmentRetry(segment.id, segment.position..<segment.upperBound, lease.order.source))
            ]
        case .stopping, .yielding, .outrun, .none:
            return []
        }
    }

    /// 64 KiB: after this much progress the next request follows at once.
    static let progressWorthAsking: Int64 = 64 << 10

    /// Delays the next request if the last one delivered almost nothing within a second.
    private mutating func pace(_ lease: Lease, now: Duration) {
        guard lease.position - lease.writesFrom < Self.progressWorthAsking, now - lease.startedAt < .seconds(1)
        else {
            return
        }
        self.plan.postpone(lease.order.segment, until: now + self.settings.retry.delayBase)
    }

    /// Handles a failed request for bytes: postpones the segment, or leaves the source, or fails the download.
    mutating func count(_ failure: DownloadError, of lease: Lease, now: Duration) -> [DownloadAction] {
        let (segment, source) = (lease.order.segment, lease.order.source)
        // A refusal is one of the origin, whatever was asked for. Requests that are refused together are one refusal.
        let isOfOrigin = failure.isRefusal && !self.sources.hasMirrors
        if isOfOrigin, now < self.sources[source].retryAt, self.receiving == 0 {
            self.plan.postpone(segment, until: self.sources[source].retryAt)
            return []
        }
        var failures = isOfOrigin ? self.sources[source].failures : self.plan[segment]?.failures ?? 0
        switch self.decide(.bytes, failure, failures: failures, at: source, of: lease, now: now) {
        case .again(let delay, isCounted: true) where isOfOrigin:
            failures = self.sources.fail(source, .elsewhere(after: delay), now: now)
            self.plan.postponeWaiting(until: now + delay)
            self.plan.postpone(segment, until: now + delay)
            return [.report(.retrying(failure, attempt: failures, delay: delay))]
        case .again(let delay, let isCounted):
            if isCounted { failures = self.plan.countFailure(segment) }
            self.plan.postpone(segment, until: now + delay)
            return [.report(.retrying(failure, attempt: failures, delay: delay))]
        case .fewerConnections(let delay):
            if !self.sources.hasMirrors {
                let open = self.leases.count { $0.id != lease.id && $0.phase != .ending }
                self.traffic.controller.refused(open: open, now: now)
            }
            // The budget decides when one more is tried after a refusal. A lasting failure of an additional request says nothing
            // about the segment while the source serves another one.
            if !failure.isRefusal, failure.isTransient || !self.isServed(by: source, besides: lease.id) {
                failures = self.plan.countFailure(segment)
            }
            self.plan.postpone(segment, until: failure.isRefusal ? now : now + delay)
            return [.report(.retrying(failure, attempt: failures, delay: delay))]
        case .elsewhere(let delay): return self.failOver(failure, from: source, after: delay, now: now)
        case .leaveSource: return self.loseSource(source, failure)
        case .giveUp:
            self.outcome = .failed(failure)
            return []
        }
    }
}
