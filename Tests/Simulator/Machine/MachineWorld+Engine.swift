import SegmentedDownloadCore

/// The engine's part: it delivers events to the state machine and carries out its actions.
extension MachineWorld {
    mutating func deliver(_ event: GroupEvent) {
        self.handled += 1
        switch event {
        case .added, .moved, .removed: break
        case .limits(let limits):
            self.limits = limits
            self.excessUntil = self.now + Self.yieldingTime
            for index in self.downloads.indices { self.observe(index) }
        case .segments(let id, let segments):
            self.downloads[id.rawValue].settings.segments = segments
            self.excessUntil = self.now + Self.yieldingTime
            for index in self.downloads.indices { self.observe(index) }
        case .tick, .priority, .rateChanged, .noticed:
            for index in self.downloads.indices { self.observe(index) }
        case .download(let id, let event):
            let index = id.rawValue
            self.observe(index)
            self.note(event, index)
        }
        self.handle(event)
        if case .download(let id, .ended(let lease, _)) = event {
            for index in self.connections.indices
            where self.connections[index].order.lease == lease && self.connections[index].download == id {
                self.connections[index].isDone = true
            }
            self.connections.removeAll { $0.isDone }
        }
        if case .download(let id, let event) = event { self.beginNextManifestStep(event, id.rawValue) }
        self.check()
    }

    private mutating func note(_ event: MachineEvent, _ index: Int) {
        switch event {
        case .resume:
            guard self.downloads[index].lastWord != .cancel else { return }
            self.downloads[index].lastWord = .goOn
            switch self.machine.machine(self.downloads[index].id)?.conclusion {
            case .paused, .failed: self.downloads[index].hasConcluded = false
            case .completed, .cancelled, nil: break
            }
        case .pause:
            if self.downloads[index].lastWord == .goOn { self.downloads[index].lastWord = .pause }
        case .cancel:
            self.downloads[index].lastWord = .cancel
            switch self.machine.machine(self.downloads[index].id)?.conclusion {
            case .paused, .failed: self.downloads[index].hasConcluded = false
            case .completed, .cancelled, nil: break
            }
        case .ended(let lease, .storageFailed):
            // A sample only reads: if that fails, no byte is missing.
            let isSample = self.connections.contains {
                $0.download == self.downloads[index].id && $0.order.lease == lease && $0.order.isSample
            }
            if !isSample { self.downloads[index].hasFailedWrite = true }
        default: break
        }
    }

    private mutating func observe(_ index: Int) {
        let id = self.downloads[index].id
        let observations = self.connections.filter { $0.download == id }.map(\.observation)
        self.machine.observe(id, observations, now: self.now)
        if let length = self.machine.machine(id)?.plan?.completeLength { self.downloads[index].length = length }
    }

    mutating func handle(_ event: GroupEvent) {
        if self.isTracing { self.trace.append("\(self.now) \(event)") }
        var actions = self.machine.handle(event, now: self.now)
        while !actions.isEmpty {
            let action = actions.removeFirst()
            if self.isTracing { self.trace.append("    → \(action)") }
            switch action {
            case .fetch(let id, let order): self.open(order, id.rawValue)
            case .download(let id, let action): actions += self.perform(action, id.rawValue)
            case .post: break
            }
        }
    }

    private func connection(_ lease: LeaseID, _ id: DownloadID) -> Int? {
        self.connections.firstIndex { $0.order.lease == lease && $0.download == id }
    }

    private mutating func open(_ order: FetchOrder, _ index: Int) {
        let id = self.downloads[index].id
        if !self.downloads[index].leases.insert(order.lease).inserted {
            self.violate("\(order.lease) of \(id) was issued twice")
        }
        if self.downloads[index].hasConcluded { self.violate("\(id) fetches after its conclusion") }
        if let offset = order.forgetsFrom { self.downloads[index].disk.forget(from: offset) }
        let delay = Duration.milliseconds(Int.random(in: 1...300, using: &self.generator))
        let headAt = self.chance(self.faultiness / 5) ? nil : self.now + delay
        self.connections.append(ModelConnection(download: id, order: order, headAt: headAt))
    }

    private mutating func perform(_ action: DownloadAction, _ index: Int) -> [GroupAction] {
        let id = self.downloads[index].id
        switch action {
        case .answer(let lease, let decision):
            if let index = self.connection(lease, id) { self.answer(decision, index) }
        case .narrow(let lease, let limit):
            let actual = self.connection(lease, id).map { self.narrow(to: limit, $0) } ?? .max
            let event = GroupEvent.download(id, .narrowed(lease, to: actual))
            self.observe(index)
            if self.isTracing { self.trace.append("    \(event)") }
            return self.machine.handle(event, now: self.now)
        case .revoke(let lease):
            if let index = self.connection(lease, id) {
                self.connections[index].isRevoked = true
                self.connections[index].isDismissed = true
            }
        case .survey:
            self.downloads[index].hasFailedWrite = false
            self.downloads[index].mustSetAside = false
            self.later(index, .surveyed(self.survey(index)))
        case .prepare(let preparation):
            guard !self.chance(self.faultiness / 4) else {
                self.later(index, .storageFailed(DownloadError(.space, "no space")))
                break
            }
            self.checkSettingAside(preparation, index)
            self.downloads[index].disk.perform(preparation, url: self.downloads[index].url)
            self.downloads[index].hasFailedWrite = false
            if preparation.mode == .fresh { self.downloads[index].length = preparation.resource.completeLength }
            self.later(index, .prepared())
        case .checkpoint: self.writeManifest(nil, index)
        case .revise(let revision):
            if !self.hasIdentity { self.violate("\(id) revises its only source") }
            self.writeManifest(revision, index)
        case .place(let length, _): self.place(index, length: length)
        case .replaceExisting:
            if self.downloads[index].disk.finished == nil { self.violate("\(id) replaces a file that does not exist") }
            self.downloads[index].disk.replacesFinished = true
        case .require: self.violate("\(id) compares a file with digests that no server states")
        case .interrupt:
            guard let step = self.steps.firstIndex(where: { $0.id == id && $0.event.isInterruptible }) else { break }
            guard Bool.random(using: &self.generator) else { break }
            let at = self.steps[step].at
            self.steps[step] = DiskStep(id: id, at: at, event: .storageFailed(DownloadError(.cancelled, "interrupted")))
        case .discard:
            self.downloads[index].disk.discard()
            self.later(index, .discarded)
        case .report(.started(_, let resumedFrom, _)): self.downloads[index].told = resumedFrom == 0 ? [] : nil
        case .report(.restarted): self.downloads[index].told = nil
        case .report(.segmentDone(_, let range, _)): self.downloads[index].told?.append(range)
        case .report(.setAside): self.downloads[index].mustSetAside = true
        case .report: break
        case .conclude(let conclusion): self.conclude(conclusion, index)
        }
        return []
    }

    private mutating func conclude(_ conclusion: DownloadConclusion, _ index: Int) {
        let download = self.downloads[index]
        if conclusion.file?.wasThere == true { self.checkAlreadyComplete(index) }
        if download.hasConcluded { self.violate("\(download.id) concluded twice: \(conclusion)") }
        if conclusion == .paused, download.lastWord == .goOn {
            self.violate("\(download.id) paused, but was resumed since")
        }
        if let step = self.steps.first(where: { $0.id == download.id }) {
            self.violate("\(download.id) concluded as \(conclusion) before its disk answered \(step.event)")
        }
        if self.connections.contains(where: { $0.download == download.id && !$0.isDismissed && $0.phase != .over }) {
            self.violate("\(download.id) concluded as \(conclusion) with a lease out")
        }
        self.downloads[index].hasConcluded = true
        self.downloads[index].hasFailedWrite = false
        self.downloads[index].conclusions.append(conclusion)
    }
}
