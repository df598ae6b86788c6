import SegmentedDownloadCore

/// Files mistaken for others: which origin answers a request, what the next run finds, and the checks on both.
extension MachineWorld {
    // MARK: Faults

    /// Starts a new run at times: with a part or a finished file of an earlier run, under the same URL or another.
    mutating func beginNextRuns() {
        for index in self.downloads.indices {
            switch Int.random(in: 0..<60, using: &self.identityGenerator) {
            case 0..<10 where self.isAtRest(index): self.beginNextRun(index)
            // Most runs would leave a finished file, and few a part.
            case 10: self.user(.pause, self.downloads[index].id)
            default: break
            }
        }
    }

    /// Whether nothing of the download's run is under way, so that a user may start another.
    private func isAtRest(_ index: Int) -> Bool {
        let download = self.downloads[index]
        return download.hasConcluded && download.lastWord != .cancel && !download.isWritingManifest
            && !self.steps.contains { $0.id == download.id }
            && !self.connections.contains { $0.download == download.id }
            && !self.inbox.contains { if case .download(download.id, _) = $0 { true } else { false } }
    }

    private mutating func beginNextRun(_ index: Int) {
        let before = self.downloads[index]
        var next = Download(id: before.id, settings: before.settings, origin: before.origin)
        next.disk = before.disk
        next.disk.replacesFinished = false
        next.length = before.length
        next.conclusions = before.conclusions
        next.identity = before.identity
        next.identity?.redraw(using: &self.identityGenerator)
        if Int.random(in: 0..<4, using: &self.identityGenerator) == 0 { next.disk.forgetNames() }
        self.downloads[index] = next
        self.handle(.removed(before.id))
        self.handle(.added(before.id, before.settings, seed: self.identityGenerator.next()))
        self.check()
    }

    /// Surveys the destination. Answers before the survey prove nothing about what it finds.
    mutating func survey(_ index: Int) -> Survey {
        self.downloads[index].answered = []
        let download = self.downloads[index]
        let salt = self.hasIdentity ? self.identityGenerator.next() : 0
        return download.disk.survey(length: download.length, url: download.url, salt: salt)
    }

    /// Directs a request to one of the places and nodes; the file there may change first.
    mutating func lead(_ origin: inout ModelOrigin, _ connection: ModelConnection) -> ResourceLocator? {
        let index = connection.download.rawValue
        guard var identity = self.downloads[index].identity else { return nil }
        if !self.isCalm, origin.tellsVersions, origin.lengths.count < 4,
            Int.random(in: 0..<100, using: &self.identityGenerator) < identity.changesPercent
        {
            origin.lengths.append(origin.length)
            self.downloads[index].origin = origin
        }
        let locator = identity.lead(&origin, isCalm: self.isCalm, using: &self.identityGenerator)
        self.downloads[index].identity = identity
        return locator
    }

    mutating func noteAnswer(_ answer: ModelOrigin.Answer, of origin: ModelOrigin, _ connection: ModelConnection) {
        guard !connection.isDismissed, [200, 206, 304].contains(answer.head.status) else { return }
        self.downloads[connection.download.rawValue].answered.insert(origin.content)
    }

    // MARK: Checks

    /// Checks that bytes of two files never meet, not even in a part that is never completed.
    mutating func checkMeeting(of content: ModelContent, _ index: Int) {
        guard self.hasIdentity else { return }
        if let other = self.downloads[index].disk.runs.first(where: { $0.content != content })?.content {
            self.violate("\(self.downloads[index].id) writes bytes of \(content) next to those of \(other)")
        }
    }

    /// Checks that a file is placed only after an answer with the same content.
    mutating func checkPlaced(_ index: Int) {
        let download = self.downloads[index]
        guard self.hasIdentity, let content = download.disk.runs.first?.content else { return }
        if !download.answered.contains(content) {
            self.violate("\(download.id) is placed as \(content), but the answers were of \(download.answered)")
        }
        if download.disk.finished != nil, !download.disk.replacesFinished {
            self.violate("\(download.id) is placed over a finished file that it did not report")
        }
    }

    mutating func checkAlreadyComplete(_ index: Int) {
        let download = self.downloads[index]
        guard let finished = download.disk.finished else {
            self.violate("\(download.id) is already complete, but there is no file")
            return
        }
        if let content = finished.content, !download.answered.contains(content) {
            self.violate(
                "\(download.id) accepts \(content) as the requested file, but the answers were of \(download.answered)")
        }
    }

    /// Checks that a part reported as set aside is not discarded instead.
    mutating func checkSettingAside(_ preparation: Preparation, _ index: Int) {
        if preparation.mode == .fresh, self.downloads[index].mustSetAside, !preparation.setsAside {
            self.violate("\(self.downloads[index].id) discards a part that it reported as set aside")
        }
        self.downloads[index].mustSetAside = false
    }

    /// Whether a download may end because its file changed, or because it found another file in its place.
    func mayEnd(with failure: DownloadError, _ download: Download) -> Bool {
        guard let identity = download.identity else { return false }
        switch failure.code {
        case .changed: return identity.mayLookChanged
        case .exists: return download.disk.finished != nil
        default: return false
        }
    }
}

extension MachineWorld.Download {
    /// Which of two URLs the run requests.
    var url: Int { self.identity?.url ?? 0 }
}
