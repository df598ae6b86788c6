import HTTPTypes
import SegmentedDownloadCore
import Synchronization
public import SystemPackage

/// A set of downloads that share one budget of connections and bandwidth.
///
/// All methods may be called from any task at any time.
public final class DownloadGroup: Sendable {
    private struct State {
        var registry = DownloadRegistry()
        var isClosed = false
    }

    /// The group's name, if ``DownloadClient/withGroup(named:in:limits:history:_:)`` made it.
    public let name: String?
    /// The directory that relative destinations are resolved against.
    public let directory: FilePath
    /// What happens to downloads that are completed, failed or cancelled.
    public let history: HistoryPolicy

    let engine: DownloadEngine
    private let transport: any HTTPTransport
    let storage: any Storage
    private let placed = PlacedFiles()
    private let access: Access
    private let servers: ServerRecords?
    private let memory: PartMemory?
    let historyLog: HistoryLog?
    private let state = Mutex(State())
    let hub: GroupHub

    init(
        engine: DownloadEngine, hub: GroupHub, transport: any HTTPTransport, storage: any Storage, access: Access,
        name: String? = nil, directory: FilePath = ".", history: HistoryPolicy = HistoryPolicy(),
        historyLog: HistoryLog? = nil, servers: ServerRecords? = nil, memory: PartMemory? = nil
    ) {
        self.memory = memory
        self.hub = hub
        self.servers = servers
        self.historyLog = historyLog
        self.engine = engine
        self.transport = transport
        self.storage = storage
        self.access = access
        self.name = name
        self.directory = directory
        self.history = history
    }

    // MARK: Adding

    /// Adds a download, which starts when the group's limits allow it.
    ///
    /// If the group has a download that is not over and has the same ``DownloadRequest/id``, or the same URL and
    /// destination, nothing is added and that download is returned. A paused or failed one is returned at rest: call
    /// ``Download/resume()``. A completed or cancelled download is replaced by the new one.
    ///
    /// A request for the same URL and destination that states more, such as a digest, or that has other fields, is another
    /// download: what the first one fetches is not verified for it. One of the two fails with code `exists`, unless it has the
    /// digests of the file.
    ///
    /// The destinations are compared as given. A download that was restored, or added from a ``ResumeState`` that names
    /// its file, has the destination ``DownloadRequest/Destination/file(_:)``, so a request for the same URL with
    /// ``DownloadRequest/Destination/directory(_:name:)`` is another download. Compare by ``DownloadRequest/id``, or look
    /// with ``download(for:)`` first.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the request is invalid (see ``DownloadRequest/validate()``),
    ///   `policy` if a source's scheme is not allowed, `cancelled` if the group has ended.
    @discardableResult
    public func add(_ request: DownloadRequest) throws(DownloadError) -> Download {
        try self.add(request, restingAt: nil)
    }

    /// Adds a download in state `paused`.
    ///
    /// - Throws: The same errors as ``add(_:)``.
    @discardableResult
    public func add(paused request: DownloadRequest) throws(DownloadError) -> Download {
        try self.add(request, restingAt: DownloadProgress())
    }

    /// - Parameters:
    ///   - progress: The progress of a download that is added in state `paused`; `nil` to queue it.
    ///   - isResolved: Whether a relative destination is relative to the process's working directory, not to the
    ///     group's directory.
    ///   - stream: The consumer that gets the bytes instead of the destination; `nil` for none.
    func add(
        _ given: DownloadRequest, restingAt progress: DownloadProgress?, isResolved: Bool = false,
        stream: ByteStream? = nil
    ) throws(DownloadError) -> Download {
        var request = given
        if !isResolved { request.destination = given.destination.resolved(in: self.directory) }
        let connections =
            request.segments == .automatic ? self.servers?.connections(to: request.source.origin) : nil
        try request.validate(isStreamed: stream != nil)
        for source in request.sources { try self.access.check(source) }
        let output = DownloadJob.output(of: request, stream, clock: self.engine.clock)
        let selection = self.access.selection(of: request)
        let job = self.state.withLock { state -> DownloadJob? in
            if state.isClosed { return nil }
            if let job = state.registry.job(request, selection, stream: stream) { return job }
            let job = DownloadJob(
                id: state.registry.number(), request: request,
                followers: request.sources.map {
                    self.access.follower(to: $0, of: request, over: self.transport)
                },
                storage: self.storage, placed: self.placed, selection: selection, connectionsKnown: connections,
                startsPaused: progress != nil, stream: stream, output: output,
                // A limit on memory leaves none for parts.
                memory: self.engine.currentLimits.memory == nil ? self.memory : nil)
            if let progress { job.rest(as: progress) }
            job.broadcaster.relay { [weak self, weak job] signal in
                if let job { self?.handle(signal, of: job) }
            }
            // In the same critical section: another task that finds the job may post events, which must reach the
            // engine after `.add`.
            for old in state.registry.add(job) { self.forget(old) }
            if self.hub.isIdle { self.placed.beginRun() }
            self.hub.added(self.download(job), isPaused: progress != nil)
            self.engine.post(.add(job))
            return job
        }
        guard let job else { throw DownloadError(.cancelled, "the group has ended") }
        guard job.stream === stream else {
            throw DownloadError(
                .usage, "the group already has a download with the id \(job.name.rawValue.printable)")
        }
        return self.download(job)
    }

    // MARK: Finding

    /// The listed downloads, in the order they were added.
    public var downloads: [Download] {
        self.state.withLock { $0.registry.jobs }.map { self.download($0) }
    }

    /// The listed downloads that satisfy a predicate, in the order they were added.
    ///
    /// - Throws: Only errors that the predicate throws.
    public func downloads<PredicateError: Error>(
        where isIncluded: (Download) throws(PredicateError) -> Bool
    ) throws(PredicateError) -> [Download] {
        var included: [Download] = []
        for download in self.downloads where try isIncluded(download) { included.append(download) }
        return included
    }

    /// The listed downloads in a given state, in the order they were added.
    public func downloads(_ state: DownloadState) -> [Download] {
        self.downloads.filter { $0.state == state }
    }

    /// The download with an identifier. Takes constant time.
    public func download(id: Download.ID) -> Download? {
        self.state.withLock { $0.registry.job(id) }.map { self.download($0) }
    }

    /// The latest download of a source, restored ones included. Takes constant time.
    public func download(for source: SourceURL) -> Download? {
        self.state.withLock { $0.registry.jobs(source).last }.map { self.download($0) }
    }

    /// The download of a source and destination path that is not over.
    func download(for source: SourceURL, at path: String) -> Download? {
        self.state.withLock { $0.registry.jobs(source) }.first { $0.path == path && !$0.state.isOver }
            .map { self.download($0) }
    }

    func download(_ job: DownloadJob) -> Download { Download(job: job, engine: self.engine) }

    // MARK: Forgetting

    /// Removes a download from the list, cancelling it first if it is not over. Its files stay on disk.
    public func remove(_ download: Download) async {
        // Not paused: a caller that holds the download could resume it after it has left the list.
        await download.cancel(keepingPartial: true)
        self.unlist(download.job)
    }

    /// Removes a job that is at rest from the list.
    private func unlist(_ job: DownloadJob) {
        let isListed = self.state.withLock { state in
            let isListed = state.registry.remove(job)
            if isListed { self.forget(job) }
            return isListed
        }
        if isListed { job.broadcaster.finish() }
    }

    private func forget(_ job: DownloadJob) {
        self.engine.post(.remove(job.id))
        self.hub.removed(self.download(job))
    }

    private func isBusy(beside job: DownloadJob) -> Bool {
        self.state.withLock { state in
            state.registry.jobs.contains { $0 !== job && [.queued, .probing, .running, .retrying].contains($0.state) }
        }
    }

    /// Updates the group for a job's event, before any observer receives the event.
    private func handle(_ signal: EventBroadcaster.Signal, of job: DownloadJob) {
        let download = self.download(job)
        switch signal {
        case .reopened: self.hub.reopened(download)
        case .happened(let event):
            self.historyLog?.note(event, of: download)
            // A count found while other downloads were active says nothing: they shared the bandwidth.
            if case .completed = event, let connections = job.connectionCountFound, !self.isBusy(beside: job) {
                self.servers?.record(connections, for: job.request.source.origin)
            }
            // A stream cannot be resumed.
            let isDelisted =
                job.stream != nil && event.isTerminal || event.isOver && !(self.history.listsFinished ?? true)
            if isDelisted {
                self.state.withLock { _ = $0.registry.remove(job) }
                self.engine.post(.remove(job.id))
            }
            if event.isTerminal { job.output?.end() }
            self.hub.happened(event, to: download, isDelisted: isDelisted)
            if let stream = job.stream, event.isTerminal { self.end(stream, of: job, with: event) }
        }
    }

    /// Ends a stream after a terminal event of its download.
    private func end(_ stream: ByteStream, of job: DownloadJob, with event: DownloadEvent) {
        job.broadcaster.finish()
        // Again, because a download that failed may have been cancelled just then, and have come to rest only now.
        self.engine.post(.remove(job.id))
        // Last, because the consumer may go on at once.
        stream.end(with: event)
    }

    /// Ends adding and resuming, so that a pause of all downloads is final.
    func stopStarting() {
        self.state.withLock { $0.isClosed = true }
        self.engine.post(.stopResuming)
    }

    /// Ends the group after the engine has ended. Downloads added since are cancelled.
    func close() {
        let jobs = self.state.withLock { state in
            state.isClosed = true
            return state.registry.jobs
        }
        for job in jobs { job.broadcaster.finish() }
        self.hub.finish()
    }
}
