import SegmentedDownloadCore

extension DownloadGroup {
    // MARK: All at once

    /// Pauses every download listed now; returns, with the resume states of those that paused, when all that was fetched is
    /// durable.
    @discardableResult
    public func pauseAll() async -> [ResumeState] {
        let downloads = self.downloads
        // From the last on: else each one that stops lets the next begin, only to be stopped itself.
        let answers = downloads.reversed().map { $0.ask(.pause) }
        for answer in answers { await Download.wait(for: answer) }
        return downloads.filter { $0.state == .paused }.map(\.resumeState)
    }

    func requestPauseAll() {
        for download in self.downloads.reversed() { download.requestPause() }
    }

    /// Goes on with every paused or failed download.
    public func resumeAll() {
        for download in self.downloads { download.resume() }
    }

    /// Cancels every download listed now; returns when all have stopped, and what was to be deleted is.
    public func cancelAll(keepingPartial: Bool = true) async {
        let answers = self.downloads.reversed().map { $0.ask(.cancel(keepingPartial: keepingPartial)) }
        for answer in answers { await Download.wait(for: answer) }
    }

    // MARK: Watching

    /// What happens in the group from now on. Any number of observers may listen, each at its own pace; one that is slow misses
    /// progress, never a beginning or an end. The sequence ends with the group.
    public var events: AsyncStream<Event> { self.hub.events() }

    /// How the downloads stand that are not under way.
    public var summary: GroupSummary { self.hub.summary }

    /// Waits until no download is under way: every one has completed, failed, paused or been cancelled.
    @discardableResult
    public func waitForAll() async -> GroupSummary { await self.hub.waitForAll() }
}
