import HTTPTypes
import SegmentedDownloadCore
import Synchronization

/// Many downloads under one budget of connections.
public final class DownloadGroup: Sendable {
    private struct State {
        var jobs: [DownloadJob] = []
    }

    let engine: DownloadEngine
    private let transport: any HTTPTransport
    private let storage: any Storage
    private let policy: RedirectFollower.Policy
    private let state = Mutex(State())

    init(
        engine: DownloadEngine, transport: any HTTPTransport, storage: any Storage, policy: RedirectFollower.Policy
    ) {
        self.engine = engine
        self.transport = transport
        self.storage = storage
        self.policy = policy
    }

    /// Adds a download; it starts as soon as its turn comes.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if a field is malformed.
    public func add(_ request: DownloadRequest) throws(DownloadError) -> Download {
        let fields = try Self.fields(request.fields)
        let job = self.state.withLock { state in
            let job = DownloadJob(
                id: DownloadID(state.jobs.count), request: request,
                follower: RedirectFollower(
                    source: request.source, fields: fields, policy: self.policy, transport: self.transport),
                storage: self.storage)
            state.jobs.append(job)
            return job
        }
        self.engine.post(.add(job))
        return Download(job: job, engine: self.engine)
    }

    /// Fields whose value follows from the range asked for, or frames the message.
    private static let ownFields = [
        "range", "if-range", "if-none-match", "host", "content-length", "transfer-encoding", "accept-encoding",
        "connection",
    ]

    private static func fields(_ given: [(name: String, value: String)]) throws(DownloadError) -> HTTPFields {
        var fields = HTTPFields()
        for (text, value) in given {
            guard let name = HTTPField.Name(text) else {
                throw DownloadError(.usage, "\"\(text.printable)\" is no field name")
            }
            guard HTTPField.isValidValue(value) else {
                throw DownloadError(
                    .usage, "the value given for \(name.rawName) holds a line break or control character")
            }
            guard !Self.ownFields.contains(name.canonicalName) else {
                throw DownloadError(.usage, "\(name.rawName) is set by the downloader and cannot be given")
            }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }

    /// The downloads added so far, in order.
    public var downloads: [Download] {
        self.state.withLock { $0.jobs }.map { Download(job: $0, engine: self.engine) }
    }

    /// Pauses every download; returns when all that was fetched is durable.
    public func pauseAll() async {
        self.requestPauseAll()
        for download in self.downloads { _ = await download.rest() }
    }

    func requestPauseAll() {
        for download in self.downloads { download.requestPause() }
    }

    /// Goes on with every paused or failed download.
    public func resumeAll() {
        for download in self.downloads { download.resume() }
    }

    /// Cancels every download.
    public func cancelAll(keepingPartial: Bool = true) async {
        for download in self.downloads { await download.cancel(keepingPartial: keepingPartial) }
    }
}
