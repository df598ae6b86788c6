import SegmentedDownloadCore

extension DownloadGroup {
    // MARK: All at once

    /// Pauses every download of the group and waits until everything fetched is durable.
    ///
    /// In a cancelled task the pauses are requested, but not waited for, and states may be missing.
    ///
    /// - Returns: The resume states of the downloads that are paused, including those that waited in the queue and have
    ///   nothing on disk. Store them if these must not be lost: ``restore(from:_:_:)`` finds only what is on disk.
    @discardableResult
    public func pauseAll() async -> [ResumeState] {
        let downloads = self.downloads
        // From the last one on: otherwise each download that stops would let the next one start, only to be stopped
        // too.
        let answers = downloads.reversed().map { $0.ask(.pause) }
        for answer in answers { await Download.wait(for: answer) }
        return downloads.filter(\.isResumable).map(\.resumeState)
    }

    func requestPauseAll() {
        for download in self.downloads.reversed() { download.requestPause() }
    }

    /// Resumes every paused or failed download.
    public func resumeAll() {
        for download in self.downloads { download.resume() }
    }

    /// Cancels every download of the group and waits until all have stopped. In a cancelled task it is requested, but
    /// not waited for.
    ///
    /// - Parameter keepingPartial: Whether parts and manifests stay on disk. If `false`, they are deleted.
    public func cancelAll(keepingPartial: Bool = true) async {
        let answers = self.downloads.reversed().map { $0.ask(.cancel(keepingPartial: keepingPartial)) }
        for answer in answers { await Download.wait(for: answer) }
    }

    // MARK: Watching

    /// The group's events from now on, as a sequence that ends with the group.
    ///
    /// Any number of observers may iterate, each at its own pace. An observer that is 8192 events behind misses new
    /// progress, segment and checkpoint events until it has caught up, and no others.
    public var events: AsyncStream<Event> { self.hub.events { _ in true } }

    /// Only those events of downloads that the observer wants, and none of the group. Others would wake it in vain.
    package func events(where isWanted: @escaping @Sendable (DownloadEvent) -> Bool) -> AsyncStream<Event> {
        self.hub.events { event in
            if case .download(_, let event) = event { isWanted(event) } else { false }
        }
    }

    /// The number of downloads that are completed, failed, paused and cancelled, and their bytes.
    public var summary: GroupSummary { self.hub.summary }

    /// Waits until no download is active: every one has completed, failed, paused or been cancelled.
    @discardableResult
    public func waitForAll() async -> GroupSummary { await self.hub.waitForAll() }
}
