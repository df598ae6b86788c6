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

    /// What it is found by, see ``DownloadGroup/download(id:)``.
    public var id: ID { self.job.name }
    /// As the group took it: with its destination as the group resolved it, and without what was changed since by
    /// ``update(priority:)`` and the like.
    public var request: DownloadRequest { self.job.request }
    /// Where it stands.
    public var state: DownloadState { self.job.state }

    var number: Int { self.job.id.rawValue }

    /// How far it has come.
    public var snapshot: DownloadProgress { self.job.progress }

    /// Where its segments stand, to a tenth of a second: ordered and disjoint, they cover the file from the first byte to the last.
    ///
    /// Bytes kept from an earlier run are segments that are done. There are none while nothing is being fetched: before the origin
    /// has answered, while its answers are settled at the end of a run, and while the download rests; a whole file is one segment.
    /// Looking costs as much as there are segments, and not looking costs nothing.
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

    /// The destination's path, as far as it is known: a response may still name another.
    public var path: String { self.job.path }

    /// What it can be taken up from later, as it stands now; ``pause()`` returns one that is durable.
    public var resumeState: ResumeState { ResumeState(self) }

    /// The events from now on. Any number of observers may listen, each at its own pace; each sequence ends after a
    /// terminal event, which is also what a late observer of an ended download gets. One that falls more than 1024 events
    /// behind loses the oldest, whatever they are; ``DownloadGroup/events`` loses progress only.
    public var events: AsyncStream<DownloadEvent> { self.job.broadcaster.events() }

    // MARK: Control

    /// Stops for now. Returns when all that was fetched is on disk and recorded, so that it would survive a power cut, or the download
    /// has ended otherwise. Of a stream that cannot be gone on with, for the origin does no ranges or does not say its length, nothing is
    /// recorded. Idempotent.
    ///
    /// - Returns: What it can be taken up from, also by another process; absent if it is not paused, because it had ended
    ///   before or was resumed meanwhile.
    @discardableResult
    public func pause() async -> ResumeState? {
        await Self.wait(for: self.ask(.pause))
        return self.state == .paused ? self.resumeState : nil
    }

    /// Asks to be paused without waiting for it.
    func requestPause() {
        self.engine.post(.event(self.job.id, .pause))
    }

    /// Goes on after a pause or a failure. Idempotent: one that is under way or over is left alone. Whether there is something
    /// to go on with is looked at when its turn comes; ``DownloadRequest/continuation`` says what if there is not.
    public func resume() {
        self.job.broadcaster.reopen()
        self.engine.post(.event(self.job.id, .resume))
    }

    /// Pauses it if it is under way, resumes it if it rests.
    public func toggle() async {
        if self.job.broadcaster.isAtRest {
            self.resume()
        } else {
            await self.pause()
        }
    }

    /// Stops for good, and deletes what was fetched unless told to keep it. Returns when that is done. Idempotent.
    public func cancel(keepingPartial: Bool) async {
        await Self.wait(for: self.ask(.cancel(keepingPartial: keepingPartial)))
    }

    /// Has its turn come before that of all others that wait. One whose turn has come already is left alone.
    public func moveToFront() {
        self.engine.post(.move(self.job.id, before: nil))
    }

    /// Has its turn come just before another's. One whose turn has come already is left alone.
    public func move(before other: Download) {
        self.engine.post(.move(self.job.id, before: other.job.id))
    }

    /// Asks for something; the sequence ends once it is carried out.
    func ask(_ event: MachineEvent) -> AsyncStream<Void> {
        let isPause = if case .pause = event { true } else { false }
        let (ticket, answer) = self.job.broadcaster.wish(isPause: isPause)
        self.engine.post(.ask(self.job, event, ticket: ticket))
        return answer
    }

    static func wait(for answer: AsyncStream<Void>) async {
        for await _ in answer {}
    }

    // MARK: The end

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
        case .cancelled, .started, .progress, .segment, .retrying, .checkpoint, .note, .state:
            throw DownloadError(.cancelled, "the download was cancelled")
        }
    }
}
