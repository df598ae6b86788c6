import HTTPTypes
import SegmentedDownloadCore
import Synchronization

/// Many downloads under one budget of connections.
///
/// Everything may be called from any number of tasks at any time. Asking twice for the same is asking once.
public final class DownloadGroup: Sendable {
    private struct State {
        var registry = DownloadRegistry()
        var isClosed = false
    }

    /// What the group is called, if ``DownloadClient/withGroup(named:in:limits:history:_:)`` made it.
    public let name: String?
    /// Where relative destinations lead.
    public let directory: String
    /// What becomes of downloads that are over.
    public let history: HistoryPolicy

    let engine: DownloadEngine
    private let transport: any HTTPTransport
    let storage: any Storage
    private let placed = PlacedFiles()
    private let access: Access
    private let servers: ServerRecords?
    let historyLog: HistoryLog?
    private let state = Mutex(State())
    let hub = GroupHub()

    init(
        engine: DownloadEngine, transport: any HTTPTransport, storage: any Storage, access: Access,
        name: String? = nil, directory: String = ".", history: HistoryPolicy = HistoryPolicy(),
        historyLog: HistoryLog? = nil, servers: ServerRecords? = nil
    ) {
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

    /// Adds a download; it starts as soon as its turn comes.
    ///
    /// A request with the ``DownloadRequest/id`` of a download that is there, or with its URL and destination, adds nothing: the
    /// one that is there is returned as it stands, running, paused or failed. One that is over, completed or cancelled, makes
    /// room for the new one.
    ///
    /// - Throws: ``DownloadError`` with code `usage` as ``DownloadRequest/validate()`` does, `cancelled` if the group has ended.
    @discardableResult
    public func add(_ request: DownloadRequest) throws(DownloadError) -> Download {
        try self.add(request, restingAt: nil)
    }

    /// Adds a download that rests until it is resumed.
    ///
    /// - Throws: As ``add(_:)``.
    @discardableResult
    public func add(paused request: DownloadRequest) throws(DownloadError) -> Download {
        try self.add(request, restingAt: DownloadProgress())
    }

    /// - Parameter isResolved: Whether a relative destination is the process's, and not the group's.
    func add(
        _ given: DownloadRequest, restingAt progress: DownloadProgress?, isResolved: Bool = false
    ) throws(DownloadError) -> Download {
        var request = given
        if !isResolved { request.destination = given.destination.resolved(in: self.directory) }
        request.startsPaused = progress != nil
        if request.segments == .automatic {
            request.connectionsKnown = self.servers?.connections(to: request.source.origin)
        }
        let fields = try request.validFields()
        do {
            for source in request.sources { try self.access.check(source) }
        } catch {
            throw DownloadError(error)
        }
        let job = self.state.withLock { state -> DownloadJob? in
            if state.isClosed { return nil }
            if let job = state.registry.job(request) { return job }
            let job = DownloadJob(
                id: state.registry.number(), request: request,
                followers: request.sources.map { source in
                    RedirectFollower(
                        source: source, fields: self.access.fields(fields, for: source, of: request),
                        access: self.access, transport: self.transport,
                        isNamed: self.access.isNamed(source, of: request))
                },
                storage: self.storage, placed: self.placed)
            if let progress { job.rest(as: progress) }
            job.broadcaster.relay { [weak self, weak job] signal in
                if let job { self?.handle(signal, of: job) }
            }
            // All under the lock: whoever finds the job may say something to it, which the engine must hear after this.
            for old in state.registry.add(job) { self.forget(old) }
            self.hub.added(self.download(job), isPaused: progress != nil)
            self.engine.post(.add(job))
            return job
        }
        guard let job else { throw DownloadError(.cancelled, "the group has ended") }
        return self.download(job)
    }

    // MARK: Finding

    /// The downloads listed, in the order they were added.
    public var downloads: [Download] {
        self.state.withLock { $0.registry.jobs }.map { self.download($0) }
    }

    /// Those that a test holds for, in order.
    public func downloads(where isIncluded: (Download) throws -> Bool) rethrows -> [Download] {
        try self.downloads.filter(isIncluded)
    }

    /// Those that stand so, in order.
    public func downloads(_ state: DownloadState) -> [Download] {
        self.downloads.filter { $0.state == state }
    }

    /// The one of that name. One step, however many there are.
    public func download(id: Download.ID) -> Download? {
        self.state.withLock { $0.registry.job(id) }.map { self.download($0) }
    }

    /// The latest one of that source, restored ones included. One step, however many there are.
    public func download(for source: SourceURL) -> Download? {
        self.state.withLock { $0.registry.jobs(source).last }.map { self.download($0) }
    }

    /// The one that goes on with a path's remains, if it is not over.
    func download(for source: SourceURL, at path: String) -> Download? {
        self.state.withLock { $0.registry.jobs(source) }.first { $0.path == path && !$0.state.isOver }
            .map { self.download($0) }
    }

    func download(_ job: DownloadJob) -> Download { Download(job: job, engine: self.engine) }

    // MARK: Forgetting

    /// Takes a download from the list, for good: it is stopped first if it is not over. Its files stay.
    public func remove(_ download: Download) async {
        // Not paused: somebody might resume what is in no list any more.
        await download.cancel(keepingPartial: true)
        let isListed = self.state.withLock { state in
            let isListed = state.registry.remove(download.job)
            if isListed { self.forget(download.job) }
            return isListed
        }
        if isListed { download.job.broadcaster.finish() }
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

    /// What the group does about an event before anybody else hears of it.
    private func handle(_ signal: EventBroadcaster.Signal, of job: DownloadJob) {
        let download = self.download(job)
        switch signal {
        case .reopened: self.hub.reopened(download)
        case .happened(let event):
            self.historyLog?.note(event, of: download)
            // Beside others a file has what they leave it.
            if case .completed = event, let connections = job.connectionsLearned, !self.isBusy(beside: job) {
                self.servers?.learn(connections, to: job.request.source.origin)
            }
            let isDelisted = event.isOver && !self.history.listsFinished
            if isDelisted {
                self.state.withLock { _ = $0.registry.remove(job) }
                self.engine.post(.remove(job.id))
            }
            self.hub.happened(event, to: download, isDelisted: isDelisted)
        }
    }

    /// The engine has ended: whatever was added since will never begin.
    func close() {
        let jobs = self.state.withLock { state in
            state.isClosed = true
            return state.registry.jobs
        }
        for job in jobs { job.broadcaster.finish() }
        self.hub.finish()
    }
}
