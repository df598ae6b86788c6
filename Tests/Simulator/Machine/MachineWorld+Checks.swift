import SegmentedDownloadCore

/// The invariants of the state machine, and the ways in which downloads may end.
extension MachineWorld {
    /// How long it may take to come down to a lower limit: a late tick, the patience with a connection that is nearly
    /// done, the preparation of a part file, and a connection that is slow to close.
    static let yieldingTime: Duration = .seconds(5)

    mutating func check() {
        let allowed = min(self.limits.connections, self.limits.connectionsPerHost)
        if self.connections.count > allowed {
            // After a limit is lowered, no connection opens until enough have closed.
            if self.connections.count > self.connectionsBefore {
                self.violate("\(self.connections.count) connections of \(allowed), and one more than before")
            }
            // A stream that cannot be resumed runs to its end, however long that takes.
            if self.now > self.excessUntil, self.downloads.allSatisfy({ $0.origin.ranges == .always }) {
                self.violate("\(self.connections.count) connections of \(allowed)")
            }
        }
        self.connectionsBefore = self.connections.count
        for download in self.downloads {
            let mine = self.connections.filter { $0.download == download.id }
            let counted = mine.count { !$0.isDismissed && $0.phase != .over }
            if case .exactly(let count) = download.settings.segments, counted > count, self.now > self.excessUntil {
                self.violate("\(counted) connections for \(download.id), which wants \(count)")
            }
            let windows = mine.map(\.window).filter { !$0.isEmpty }.sorted { $0.lowerBound < $1.lowerBound }
            for (left, right) in zip(windows, windows.dropFirst()) where left.overlaps(right) {
                self.violate("two leases of \(download.id) may write to \(left) and \(right)")
            }
        }
    }

    mutating func checkEnds() {
        for download in self.downloads {
            let mayChange = download.origin.lengths.count > 1
            switch (download.conclusions.last, download.lastWord) {
            case (.completed, _): break
            case (.cancelled, .cancel), (.paused, .pause): break
            case (.failed(let failure), _) where failure.code == .changed && mayChange: break
            // If one answer lacks the validator, the download cannot exclude a change.
            case (.failed(let failure), _) where failure.code == .changed && self.faultiness > 0: break
            case (.failed, .pause), (.failed, .cancel): break
            case (.failed(let failure), _) where self.mayEnd(with: failure, download): break
            case (let conclusion, let word):
                self.violate("\(download.id) ends with \(String(describing: conclusion)), \(word)")
            }
        }
    }
}
