import SegmentedDownloadCore

/// One download of a group: what it does, and control over it.
public struct Download: Sendable, Identifiable {
    /// The caller's name for a download, or its number in the group; unique within it.
    public struct ID: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { self.rawValue = value }
        public var description: String { self.rawValue }
    }

    let job: DownloadJob
    let engine: DownloadEngine

    init(job: DownloadJob, engine: DownloadEngine) {
        self.job = job
        self.engine = engine
    }

    public var id: ID { self.request.id ?? ID(rawValue: "\(self.job.id.rawValue)") }
    public var request: DownloadRequest { self.job.request }
    public var state: DownloadState { self.job.state }

    /// How far it has come.
    public var snapshot: DownloadProgress { self.job.progress }

    /// The destination's path, as far as it is known: a response may still name another.
    public var path: String { self.job.path }

    /// The events from now on. Any number of observers may listen, each at its own pace; each sequence ends after a
    /// terminal event, which is also what a late observer of an ended download gets.
    public var events: AsyncStream<DownloadEvent> { self.job.broadcaster.events() }

    /// Stops for now. Returns when all that was fetched is durable, or the download has ended otherwise. Idempotent.
    public func pause() async {
        self.requestPause()
        _ = await self.rest()
    }

    /// Asks to be paused without waiting for it.
    func requestPause() {
        self.engine.post(.event(self.job.id, .pause))
    }

    /// Goes on after a pause or a failure. Idempotent.
    public func resume() {
        self.job.broadcaster.reopen()
        self.engine.post(.event(self.job.id, .resume))
    }

    /// Stops for good, and deletes what was fetched unless told to keep it.
    public func cancel(keepingPartial: Bool) async {
        self.engine.post(.event(self.job.id, .cancel(keepingPartial: keepingPartial)))
        _ = await self.rest()
    }

    /// Waits for the next terminal event.
    @discardableResult
    public func rest() async -> DownloadEvent {
        for await event in self.events where event.isTerminal { return event }
        return .cancelled
    }

    /// Waits until the file is in place.
    ///
    /// - Throws: ``DownloadError``; a paused or cancelled download has the code `cancelled`.
    public func result() async throws(DownloadError) -> DownloadResult {
        switch await self.rest() {
        case .completed(let result): return result
        case .failed(let error, _): throw error
        case .paused: throw DownloadError(.cancelled, "the download was paused")
        case .cancelled, .started, .progress, .segment, .retrying, .checkpoint, .note:
            throw DownloadError(.cancelled, "the download was cancelled")
        }
    }
}
