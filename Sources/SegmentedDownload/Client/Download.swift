import SegmentedDownloadCore
public import SystemPackage

/// A handle to one download of a group: its state, its progress and its controls.
public struct Download: Sendable, Identifiable {
    /// The caller's name for a download, or its number in the group. Unique within the group.
    public struct ID: RawRepresentable, Codable, Hashable, Sendable, ExpressibleByStringLiteral,
        LosslessStringConvertible
    {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }
        public init(stringLiteral value: String) { self.rawValue = value }
        public init(_ description: String) { self.rawValue = description }
        public var description: String { self.rawValue }
    }

    let job: DownloadJob
    let engine: DownloadEngine

    init(job: DownloadJob, engine: DownloadEngine) {
        self.job = job
        self.engine = engine
    }

    /// The download's identifier, accepted by ``DownloadGroup/download(id:)``.
    public var id: ID { self.job.name }
    /// The request as it was added, with its destination resolved against the group's directory.
    ///
    /// Later changes, such as ``update(priority:)``, are not reflected.
    public var request: DownloadRequest { self.job.request }
    /// The current state.
    public var state: DownloadState { self.job.state }
    /// How the download came to rest, its last terminal event; `nil` while it is not at rest.
    ///
    /// The error of a failed download, for example, without waiting:
    ///
    /// ```swift
    /// if case .failed(let error, _) = download.outcome { print(error.message) }
    /// ```
    ///
    /// ``state`` changes just before.
    public var outcome: DownloadEvent? { self.job.broadcaster.terminal }
    /// Whether the bytes go to a ``DownloadBytes`` or a descriptor, and no file is made.
    ///
    /// A stream cannot be paused and resumed, and its ``resumeState`` is of no use.
    public var isStream: Bool { self.job.output != nil }

    var number: Int { self.job.id.rawValue }

    /// The current progress.
    public var snapshot: DownloadProgress { self.job.progress }

    /// A snapshot of the segments: ordered, disjoint, and covering the file from its first byte to its last.
    ///
    /// The snapshot is at most a tenth of a second old. Bytes kept from an earlier run appear as segments in state `done`.
    /// A download that is being verified or is complete has one segment. The array is empty before the origin has
    /// answered, while connections are being closed for a pause or a failure, and while the download is queued, paused,
    /// failed or cancelled. Each call takes time proportional to the number of segments.
    public var segments: [SegmentStatus] {
        get async {
            switch self.state {
            case .probing, .running, .retrying: return await self.engine.segments(of: self.job)
            case .verifying, .completed:
                guard let length = self.snapshot.bytesTotal, length > 0 else { return [] }
                return [SegmentStatus(segment: 0, start: 0, position: length, end: length, state: .done)]
            case .queued, .paused, .failed, .cancelled: return []
            }
        }
    }

    /// The destination's path as known so far. A response may still suggest another file name.
    public var path: FilePath { FilePath(self.job.path) }

    /// The current resume state. Use ``pause()`` to get one whose bytes are durable. That of a stream (``isStream``)
    /// names no file, and cannot be resumed: do not store it.
    public var resumeState: ResumeState { ResumeState(self) }

    /// The events from now on, as a sequence that ends after a terminal event.
    ///
    /// Any number of observers may iterate, each at its own pace. The sequence of a download that is at rest delivers
    /// its last terminal event and ends. After ``DownloadEvent/paused(_:)`` and ``DownloadEvent/failed(_:_:)``, get a new
    /// sequence to observe the download once it is resumed.
    ///
    /// An observer that falls more than 1024 events behind loses the oldest events of any kind, but never the terminal
    /// event. ``DownloadGroup/events`` drops only progress, segment and checkpoint events.
    public var events: AsyncStream<DownloadEvent> { self.job.broadcaster.events() }

    // MARK: Control

    /// Pauses the download and waits until everything fetched is durable and recorded, or the download has ended
    /// otherwise.
    ///
    /// Nothing is recorded for a stream that cannot be resumed: the origin does not support ranges, or does not state
    /// the length. Pausing a download that is at rest has no effect. In a cancelled task the pause is requested, but not
    /// waited for.
    ///
    /// - Returns: The state to resume from, in this process or another; `nil` if the download is not paused, because it
    ///   had already ended or was resumed meanwhile, or if it is read as ``DownloadBytes``, which cannot be resumed.
    @discardableResult
    public func pause() async -> ResumeState? {
        await Self.wait(for: self.ask(.pause))
        return self.isResumable ? self.resumeState : nil
    }

    /// Whether the download is paused, and its bytes are not read as a stream.
    var isResumable: Bool { self.state == .paused && self.job.stream == nil }

    /// Requests a pause without waiting for it.
    func requestPause() {
        self.engine.post(.event(self.job.id, .pause))
    }

    /// Resumes a paused or failed download, or withdraws a pause in progress. Otherwise it has no effect.
    ///
    /// The part on disk is examined when the download's turn comes. ``DownloadOptions/continuation`` decides what
    /// happens if there is none.
    ///
    /// - Returns: Whether the download was paused or failed, and is now resumed. Of two calls at once, one returns
    ///   `true`. `false` also if a pause in progress was withdrawn.
    @discardableResult
    public func resume() -> Bool {
        let wasAtRest = self.job.broadcaster.reopen()
        self.engine.post(.event(self.job.id, .resume))
        return wasAtRest
    }

    /// Cancels the download for good and waits until that is done. Has no effect if it has already ended. In a cancelled
    /// task it is requested, but not waited for.
    ///
    /// - Parameter keepingPartial: Whether the part and its manifest stay on disk. If `false`, they are deleted.
    public func cancel(keepingPartial: Bool = true) async {
        await Self.wait(for: self.ask(.cancel(keepingPartial: keepingPartial)))
    }

    /// Moves a queued download to the front of the queue. Has no effect on a download that has started.
    public func moveToFront() {
        self.engine.post(.move(self.job.id, before: nil))
    }

    /// Moves a queued download in front of another. Has no effect on a download that has started.
    public func move(before other: Download) {
        self.engine.post(.move(self.job.id, before: other.job.id))
    }

    /// Posts an event to the engine.
    ///
    /// - Returns: A sequence without elements that ends when the event has been carried out.
    func ask(_ event: MachineEvent) -> AsyncStream<Void> {
        let isPause = if case .pause = event { true } else { false }
        let (ticket, answer) = self.job.broadcaster.addPendingControl(isPause: isPause)
        self.engine.post(.ask(self.job, event, ticket: ticket))
        return answer
    }

    static func wait(for answer: AsyncStream<Void>) async {
        for await _ in answer {}
    }

    // MARK: The end

    /// Says that the download has run before, so that a part without a manifest at its destination is its own. A kill leaves one
    /// before the first manifest is written, and between the deletion of the manifest and that of the part.
    package func claimUnrecordedPart() { self.job.claimUnrecordedPart() }

    /// Waits until the download is at rest and returns its last terminal event, which is ``outcome``.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the task is cancelled while it waits. That does not stop the
    ///   download.
    @discardableResult
    public func rest() async throws(DownloadError) -> DownloadEvent {
        for await event in self.events where event.isTerminal { return event }
        // The sequence of a download that has not come to rest ends only in a cancelled task.
        throw DownloadError(
            .cancelled, "the task that waits was cancelled; the download continues as long as its group runs")
    }

    /// Waits until the download ends or pauses, and returns the result if the file is in place.
    ///
    /// - Throws: ``DownloadError``. The code is `cancelled` if the download was paused or cancelled, or if the task is
    ///   cancelled while it waits, which does not stop the download: see its ``state``.
    public func result() async throws(DownloadError) -> DownloadResult {
        try await self.rest().result.get()
    }
}

extension DownloadEvent {
    /// The result of a download whose last event this is.
    var result: Result<DownloadResult, DownloadError> {
        switch self {
        case .completed(let result): .success(result)
        case .failed(let error, _): .failure(error)
        case .paused: .failure(DownloadError(.cancelled, "the download was paused"))
        case .cancelled, .started, .progress, .segment, .retrying, .checkpoint, .note, .state:
            .failure(DownloadError(.cancelled, "the download was cancelled"))
        }
    }
}
