/// How a download leaves `fetching`, closes its connections, and carries out the stop that it left for.
extension DownloadStateMachine {
    mutating func updateFetching(_ body: (inout Fetching) -> [DownloadAction]) -> [DownloadAction] {
        guard let actions = self.withFetching(body) else { return [] }
        // A revision is awaited like a checkpoint.
        for case .revise in actions { self.checkpoints.request() }
        return actions + self.advanceFetching()
    }

    /// Leaves `fetching` if its outcome is known.
    mutating func advanceFetching() -> [DownloadAction] {
        guard case .fetching(var fetching) = self.state, let outcome = fetching.outcome else { return [] }
        switch outcome {
        case .complete:
            // All bytes are written. Connections that still deliver the rest of their responses are not needed.
            let actions = fetching.revokeUnfinished()
            self.state = .fetching(fetching)
            // Waits for the checkpoint in progress. If it fails, some bytes are lost.
            guard fetching.leases.isEmpty, self.checkpoints.areDone, let length = fetching.plan.completeLength
            else {
                return actions
            }
            // The length may still be unchecked: of a stream without a known length, or of a part that an earlier run
            // completed.
            if let mismatch = self.settings.mismatch(
                ofLength: length, from: fetching.sources[fetching.sources.reference].host)
            {
                return actions + self.leave(fetching, .fail(mismatch), hasPart: true)
            }
            self.state = .placing(after: fetching.sources.hasMirrors || fetching.isCompared ? fetching : nil)
            let limit = self.sources.hasMirrors ? nil : fetching.traffic.controller.limitObserved
            return actions + (limit.map { [.report(.connectionCountFound($0))] } ?? [])
                + [.place(length: length, evidence: fetching.evidence)]
        case .failed(let failure):
            return self.leave(fetching, .fail(failure), hasPart: true)
        case .changed(let difference):
            return self.leave(fetching, self.stop(forChange: difference), hasPart: true)
        case .moved:
            let stop =
                self.changes.noteRelocation(bytesDone: fetching.plan.bytesDone)
                ? Stop.relocate : self.stop(forChange: "its URL leads to another place again and again")
            return self.leave(fetching, stop, hasPart: true)
        case .otherFile(let difference):
            return self.leave(fetching, self.stop(forOtherFile: difference), hasPart: true)
        }
    }

    /// Closes all connections of a download that stops fetching, temporarily or finally.
    mutating func leave(_ fetching: Fetching, _ stop: Stop, hasPart: Bool) -> [DownloadAction] {
        var fetching = fetching
        let actions = fetching.revokeAll()
        return actions + self.settle(stop, leases: fetching.leases.map(\.id), hasPart: hasPart)
    }

    mutating func settle(_ stop: Stop, leases: [LeaseID], hasPart: Bool) -> [DownloadAction] {
        self.state = .settling(Settling(leases: leases, stop: stop, hasPart: hasPart))
        return self.checkSettled()
    }

    mutating func checkSettled() -> [DownloadAction] {
        guard case .settling(let settling) = self.state, settling.leases.isEmpty else { return [] }
        guard settling.hasPart, settling.stop != .cancel(keepingPartial: false) else {
            return self.checkpoints.areDone ? self.settled(settling.stop) : []
        }
        self.checkpoints.request()
        return [.checkpoint(isPause: true)]
    }

    /// Carries out a stop once no fetch and no checkpoint is in progress.
    mutating func settled(_ stop: Stop) -> [DownloadAction] {
        switch stop {
        case .cancel(keepingPartial: false):
            self.state = .discarding
            return [.discard]
        case .restart(let difference):
            self.resumption.mustBeginAnew = true
            self.sources.reinstate()
            self.state = .probing(Probing(.fresh, source: self.sources.firstAsked))
            return [.report(.restarted(difference))]
        case .beginWithOthers(let mismatch):
            self.resumption.mustBeginAnew = true
            var probing = Probing(.fresh, source: self.sources.firstAsked)
            probing.mismatch = mismatch
            self.state = .probing(probing)
            return []
        case .beginAnew(let difference):
            self.sources.reinstate()
            var probing = Probing(.fresh, source: self.sources.firstAsked)
            probing.setsAside = true
            self.state = .probing(probing)
            return [.report(.setAside(difference))]
        case .relocate:
            self.state = .surveying(isRepeated: true)
            return [.survey]
        case .pause where self.interruption.isResumed:
            self.interruption.isResumed = false
            self.startedAt = nil
            self.state = .queued
            return []
        case .pause, .cancel, .fail:
            return self.rest(Self.conclusion(of: stop))
        }
    }

    static func conclusion(of stop: Stop) -> DownloadConclusion {
        switch stop {
        case .pause, .restart, .beginAnew, .beginWithOthers, .relocate: .paused
        case .cancel: .cancelled
        case .fail(let failure): .failed(failure)
        }
    }

    mutating func rest(_ conclusion: DownloadConclusion) -> [DownloadAction] {
        // Pending commands of this run do not affect the next one.
        self.interruption = Interruption()
        self.trusted = []
        self.startedAt = nil
        self.state = .resting(conclusion)
        return [.conclude(conclusion)]
    }

    mutating func takePendingStop() -> Stop? {
        defer { self.interruption.stop = nil }
        return self.interruption.stop
    }
}
