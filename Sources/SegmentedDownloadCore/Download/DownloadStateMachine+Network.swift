/// Network events: requests to make, response heads, ends of leases.
extension DownloadStateMachine {
    /// The next request for a free connection. Nil if there is none to make now.
    ///
    /// - Parameter isOpen: Whether a connection to a host may be opened.
    package mutating func nextFetch(now: Duration, isOpen: (String) -> Bool = { _ in true }) -> FetchOrder? {
        switch self.state {
        case .probing(var probing):
            guard isOpen(self.settings.hosts[probing.source.rawValue]) else { return nil }
            let order = probing.nextFetch(in: &self.context, now: now)
            self.state = .probing(probing)
            return order
        case .fetching:
            return self.withFetching { $0.nextFetch(now: now, isOpen: isOpen) } ?? nil
        case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting:
            return nil
        }
    }

    /// Whether one more connection may be of use. If not, ``nextFetch(now:isOpen:)``, ``steal(now:)`` and
    /// ``nextHedge(now:isOpen:)`` return nothing.
    var mayUseConnection: Bool {
        switch self.state {
        case .probing: true
        case .fetching(let fetching): fetching.leases.count < fetching.target
        case .queued, .surveying, .preparing, .settling, .placing, .discarding, .resting: false
        }
    }

    /// Records that the origin has answered another request of the group.
    mutating func noteContact() {
        guard case .probing(var probing) = self.state, !probing.attempts.hasContact else { return }
        probing.attempts.hasContact = true
        self.state = .probing(probing)
    }

    /// Records whether the host has other requests while it refuses the first one of this download.
    mutating func noteRefusal(servesOthers: Bool) {
        guard case .probing(var probing) = self.state else { return }
        probing.attempts.isCrowded = servesOthers
        self.state = .probing(probing)
    }

    /// Records who is at fault for a refusal that is handled next, see ``FileRefusals``.
    ///
    /// - Parameters:
    ///   - isPaced: Whether the host is, so that the group decides when it is asked again.
    ///   - isOfJob: Whether the patience of a job applies.
    mutating func noteRefusal(isPaced: Bool, isOfJob: Bool) {
        self.context.settings.isPaced = isPaced
        self.context.settings.isOfJob = isOfJob
    }

    /// Takes work from another connection for a free one, if no segment is waiting.
    package mutating func steal(now: Duration) -> [DownloadAction] {
        self.updateFetching { $0.steal(now: now) }
    }

    /// The request of a hedge for a free connection, if nothing can be fetched or taken and another connection is late.
    package mutating func nextHedge(now: Duration, isOpen: (String) -> Bool) -> FetchOrder? {
        self.withFetching { $0.nextHedge(now: now, isOpen: isOpen) } ?? nil
    }

    package mutating func observe(_ observations: [LeaseObservation], now: Duration) {
        guard !observations.isEmpty else { return }
        self.withFetching { $0.observe(observations, now: now) }
    }

    package mutating func narrowed(_ id: LeaseID, to limit: Int64, now: Duration) -> [DownloadAction] {
        self.updateFetching { $0.narrowed(id, to: limit, now: now) }
    }

    package mutating func limitReached(_ id: LeaseID, now: Duration) -> [DownloadAction] {
        guard case .fetching = self.state else { return [.answer(id, .stop)] }
        return self.updateFetching { $0.limitReached(id, now: now) }
    }

    /// Handles the head of a response, whose fetch waits for an answer.
    package mutating func responded(
        _ id: LeaseID, _ response: RangeResponse, suggestedName: String?, now: Duration
    ) -> [DownloadAction] {
        switch self.state {
        case .probing(var probing) where probing.lease?.id == id && probing.lease?.revocation == nil:
            let verdict = probing.responded(response, in: &self.context, now: now)
            return self.conclude(probing, verdict, suggestedName: suggestedName, now: now)
        case .fetching:
            return self.updateFetching { $0.responded(id, response, now: now) }
        case .queued, .surveying, .probing, .preparing, .settling, .placing, .discarding, .resting:
            return [.answer(id, .stop)]
        }
    }

    mutating func conclude(
        _ probing: Probing, _ verdict: Probing.Verdict, suggestedName: String?, now: Duration
    ) -> [DownloadAction] {
        var probing = probing
        let lease = probing.lease
        let stop = lease.map { [DownloadAction.answer($0.id, .stop)] } ?? []
        switch verdict {
        case .accepted(var resource, let isSegmented, let responseEnd):
            let comparesFirst = isSegmented && probing.comparesFirst
            if comparesFirst { probing.lease = nil }
            var plan = SegmentPlan(completeLength: resource.completeLength)
            var mode = Preparation.Mode.fresh
            if case .resume(let saved) = probing.purpose {
                plan = SegmentPlan(completeLength: saved.completeLength, missing: saved.missing)
                mode = saved.trustedEnd.map { .adoptedUp(to: $0) } ?? .adopted
                if !isSegmented {
                    plan.truncate(to: plan.frontier)
                    mode = .adoptedUp(to: plan.frontier)
                }
                // If no bytes are kept, nothing can be compared. The manifest's resource and length must not be applied
                // to bytes that may belong to another file.
                if plan.bytesDone == 0, probing.overlapLength > 0 {
                    plan = SegmentPlan(completeLength: resource.completeLength)
                    mode = .fresh
                    resource = probing.stated ?? resource
                }
            }
            return (comparesFirst ? stop : [])
                + self.prepare(
                    probing, resource, plan, isSegmented: isSegmented, responseEnd: responseEnd, mode: mode,
                    suggestedName: suggestedName)
        case .empty(let resource):
            probing.lease = nil
            return stop
                + self.prepare(
                    probing, resource, SegmentPlan(completeLength: 0), isSegmented: false, responseEnd: 0, mode: .fresh,
                    suggestedName: suggestedName)
        case .again(let actions):
            probing.lease = nil
            self.state = .probing(probing)
            return stop + actions
        case .notNewer(let why):
            guard case .compareDates(let file, _) = probing.purpose else {
                return stop + self.rest(.failed(DownloadError(.internal, "dates were compared without a file")))
            }
            return stop + [.report(.note("\(why); it stays as it is, and its content was not compared"))]
                + self.completed(file, by: .kept)
        case .current(let stated):
            switch probing.purpose {
            case .confirm(let saved):
                probing.lease = nil
                var resource = saved.resource
                resource.state(stated)
                let plan = SegmentPlan(completeLength: saved.completeLength, missing: [])
                return stop
                    + self.prepare(probing, resource, plan, isSegmented: true, responseEnd: 0, mode: .adopted)
            case .compare(let file, let record) where stated.isEmpty:
                return stop + self.completed(file, by: .confirmed(record))
            case .compare:
                return stop + self.compare(with: stated)
            case .fresh, .resume, .compareDates:
                return stop + self.rest(.failed(DownloadError(.internal, "nothing on disk was asked about")))
            }
        case .changed(let difference):
            switch probing.purpose {
            case .compare: return stop + self.outdated(" and is not the remote file: \(difference)")
            case .compareDates: return stop + self.outdated(" and \(difference)")
            case .fresh, .resume, .confirm: break
            }
            return stop + self.settled(self.stop(forChange: difference))
        case .elsewhere(let difference):
            probing.lease = nil
            return stop + self.elsewhere(probing, difference)
        case .failed(let failure):
            return stop + self.probeElsewhere(probing, failure, now: now)
        }
    }

    /// Handles a response from another resource than the one that the bytes on disk are from.
    private mutating func elsewhere(_ probing: Probing, _ difference: String?) -> [DownloadAction] {
        switch probing.purpose {
        case .fresh, .compareDates:
            return self.rest(.failed(DownloadError(.internal, "a first answer was compared with another")))
        case .compare:
            guard difference == nil else {
                return self.outdated(", came from another URL and has another length or coding")
            }
            return self.replacing("the destination came from another URL")
        case .resume(let saved), .confirm(let saved):
            guard let difference else { return self.compare(saved, with: probing.source) }
            return self.settled(self.stop(forOtherFile: difference))
        }
    }

    /// Resumes a partial file from another resource. Only a comparison of bytes can prove that the file is the same.
    private mutating func compare(_ saved: SavedPartial, with source: SourceID) -> [DownloadAction] {
        let purpose = saved.missing.isEmpty ? self.lastBlock(of: saved) : .resume(saved)
        var probing = Probing(purpose, source: source)
        probing.hasMoved = true
        self.state = .probing(probing)
        let why =
            probing.source == saved.reference
            ? "nothing proves that the partial file is the one that the URL leads to now"
            : "the partial file came from another URL"
        return [.report(.note("\(why); its bytes are compared before it is resumed"))]
    }

    /// The stop for a part that belongs to another file than the URL leads to now.
    mutating func stop(forOtherFile difference: String) -> Stop {
        // It is a change if it happens within a run, or if only this part may be resumed.
        guard !self.changes.hasRelocated, self.settings.continuation != .must, !self.resumption.isPinned else {
            return self.stop(forChange: difference)
        }
        return .beginAnew(difference)
    }

    /// Continues the probe with another source. Fails if none is left.
    private mutating func probeElsewhere(_ probing: Probing, _ failure: DownloadError, now: Duration)
        -> [DownloadAction]
    {
        let source = probing.source
        guard self.sources.hasMirrors, probing.canMove, failure.mayDifferAtOtherSource else {
            return self.rest(.failed(probing.mismatch ?? failure))
        }
        var request = probing.attempts.request(after: failure, now: now)
        (request.hasAlternative, request.failuresOfSource) = (true, self.sources[source].failures)
        let decision = self.context.decision(on: request)
        let failures = self.sources.fail(source, decision, now: now)
        guard let next = self.sources.leastFailed else {
            let others = self.settings.hosts.count - 1
            return self.rest(
                .failed(
                    probing.mismatch
                        ?? DownloadError(
                            failure.code,
                            "\(failure.message); \(others) other \(others == 1 ? "source" : "sources") failed too",
                            hint: failure.hint, remedy: failure.remedy, isTransient: failure.isTransient,
                            status: failure.status, errno: failure.errno)))
        }
        let retryAt = max(self.sources[next].retryAt, .zero)
        self.state = .probing(probing.moved(to: next, retryAt: retryAt))
        return [.report(.retrying(failure, attempt: failures, delay: max(retryAt - now, .zero)))]
    }

    mutating func prepare(
        _ probing: Probing, _ resource: RemoteResource, _ plan: SegmentPlan, isSegmented: Bool, responseEnd: Int64,
        mode: Preparation.Mode, suggestedName: String? = nil
    ) -> [DownloadAction] {
        self.state = .preparing(
            Preparing(
                probing: probing, resource: resource, plan: plan, isSegmented: isSegmented, responseEnd: responseEnd))
        return [
            .prepare(
                Preparation(
                    resource: resource, mode: mode, suggestedName: suggestedName,
                    source: probing.source, keepsRecord: probing.isElsewhere, setsAside: probing.setsAside,
                    keepsStatements: probing.mismatch != nil))
        ]
    }

    mutating func stop(forChange difference: String) -> Stop {
        guard self.changes.noteChange(), self.settings.onChange == .restart else {
            return .fail(
                DownloadError(
                    .changed, "the remote file changed while it was being fetched: \(difference)",
                    remedy: self.settings.requiredResource == nil ? .startOverOnChange : .startTasksOver))
        }
        return .restart(difference)
    }

    /// Handles the end of a fetch. Every fetch order is followed by exactly one end.
    package mutating func ended(_ id: LeaseID, _ end: LeaseEnd, now: Duration) -> [DownloadAction] {
        switch self.state {
        case .probing(var probing) where probing.lease?.id == id:
            switch end {
            case .failed(let failure), .storageFailed(let failure), .corrupt(let failure):
                let verdict = probing.failed(failure, in: &self.context, now: now)
                return self.conclude(probing, verdict, suggestedName: nil, now: now)
            case .revoked where probing.lease?.revocation == .yielding:
                probing.lease = nil
                self.state = .probing(probing)
                return []
            case .revoked:
                let waited = (probing.lease?.headPatience ?? HeadPatience.ofOnly).inSeconds
                let failure = DownloadError(
                    .network,
                    "\(self.settings.hosts[probing.source.rawValue]): no complete response head within \(waited) s",
                    isTransient: true)
                let verdict = probing.failed(failure, in: &self.context, now: now)
                return self.conclude(probing, verdict, suggestedName: nil, now: now)
            case .finished, .stopped, .differs:
                probing.lease = nil
                self.state = .probing(probing)
                return []
            }
        case .fetching:
            return self.updateFetching { $0.ended(id, end, now: now) }
        case .settling(var settling):
            settling.leases.removeAll { $0 == id }
            self.state = .settling(settling)
            return self.checkSettled()
        case .preparing(var preparing) where preparing.probing.lease?.id == id:
            // The connection failed before a byte was written. The first segment is requested again.
            preparing.probing.lease = nil
            self.state = .preparing(preparing)
            return []
        case .queued, .surveying, .probing, .preparing, .placing, .discarding, .resting:
            return []
        }
    }
}
