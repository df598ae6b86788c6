/// Counts a group's downloads by state.
struct GroupTally {
    private enum Phase {
        case active, paused, failed
    }

    /// The state of downloads that can still change. The others are only counted, so that memory does not grow with
    /// their number.
    private var phases: [Int: Phase] = [:]
    private var activeCount = 0
    private(set) var summary = GroupSummary()

    var isIdle: Bool { self.activeCount == 0 }

    mutating func added(_ number: Int) {
        self.phases[number] = .active
        self.activeCount += 1
    }

    mutating func addedPaused(_ number: Int) {
        self.phases[number] = .paused
        self.summary.paused += 1
    }

    /// Counts a paused or failed download as active again. Has no effect on one that is over.
    mutating func reopened(_ number: Int) {
        guard let phase = self.phases[number], phase != .active else { return }
        self.leave(number)
        self.phases[number] = .active
        self.activeCount += 1
    }

    /// Counts a terminal event.
    ///
    /// - Returns: Whether this ended the last active download.
    mutating func ended(_ number: Int, _ event: DownloadEvent) -> Bool {
        guard let before = self.phases[number] else { return false }
        self.leave(number)
        switch event {
        case .paused:
            self.phases[number] = .paused
            self.summary.paused += 1
        case .failed:
            self.phases[number] = .failed
            self.summary.failed += 1
        case .completed(let result):
            self.summary.completed += 1
            self.summary.bytes += result.bytes
            self.summary.bytesFetched += result.bytesFetched
        case .cancelled:
            self.summary.cancelled += 1
        case .started, .progress, .segment, .retrying, .checkpoint, .note, .state:
            self.phases[number] = before
            if before == .active { self.activeCount += 1 }
            return false
        }
        return before == .active && self.activeCount == 0
    }

    /// Stops tracking a download. If it is paused or failed, it is no longer counted as such.
    mutating func removed(_ number: Int) {
        self.leave(number)
    }

    /// Stops tracking a download that leaves the list as it ends. Its failure stays counted.
    mutating func delisted(_ number: Int) {
        guard self.phases[number] == .failed else { return self.leave(number) }
        self.phases[number] = nil
    }

    private mutating func leave(_ number: Int) {
        switch self.phases.removeValue(forKey: number) {
        case .active: self.activeCount -= 1
        case .paused: self.summary.paused -= 1
        case .failed: self.summary.failed -= 1
        case nil: break
        }
    }
}
