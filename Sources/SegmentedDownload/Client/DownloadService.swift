import Synchronization
public import SystemPackage

/// A client with one group of downloads that runs until it is shut down, for servers.
///
/// ```swift
/// let service = DownloadService(directory: "/srv/files")
/// async let running: Void = service.run()
/// let download = try await service.downloads().add(DownloadRequest(SourceURL("https://example.org/file.iso")))
/// print(try await download.result().path)
/// service.shutdown()
/// try await running
/// ```
///
/// Completed and cancelled downloads leave the list, so that it does not grow for as long as the server runs: see
/// ``HistoryPolicy/listsFinished``. The product `SegmentedDownloadService` runs it in a service group of
/// swift-service-lifecycle.
public final class DownloadService: Sendable {
    private enum Phase {
        /// Not run yet. Becomes `starting` or `unused`.
        case created
        /// Shut down before it was run. Becomes `over`.
        case unused
        /// Run, and the group does not exist yet. Becomes `running` or `over`.
        case starting
        /// Becomes `over`.
        case running(DownloadClient, DownloadGroup)
        /// With the error that ended the service, if there was one.
        case over(DownloadError?)

        /// Whether there may be a group later.
        var awaitsGroup: Bool {
            switch self {
            case .created, .starting: true
            case .unused, .running, .over: false
            }
        }
    }

    private struct State {
        var phase = Phase.created
        /// Callers that wait for the group. Each sequence has no elements, and ends when the wait is over.
        var waiters: [AsyncStream<Never>.Continuation] = []
    }

    /// Runs its argument with a client.
    package typealias ClientScope =
        @Sendable (_ body: @Sendable (DownloadClient) async throws -> Void) async throws -> Void

    private let configuration: DownloadConfiguration
    private let withClient: ClientScope
    private let directory: FilePath
    private let state = Mutex(State())
    private let (stop, stopping) = AsyncStream.makeStream(of: Never.self)

    /// Creates a service, which does nothing until it runs.
    ///
    /// - Parameter directory: Relative destinations are resolved against it. It is created if it is missing.
    public convenience init(
        _ configuration: DownloadConfiguration = DownloadConfiguration(), directory: FilePath = "."
    ) {
        self.init(configuration, directory: directory) { try await withDownloadClient(configuration, $0) }
    }

    /// Creates a service that gets its client from `withClient`. The simulator uses it.
    package init(_ configuration: DownloadConfiguration, directory: FilePath, withClient: @escaping ClientScope) {
        self.configuration = configuration
        self.withClient = withClient
        self.directory = directory
    }

    /// Runs the service until ``shutdown()``, then pauses its downloads, so that everything fetched is durable, except of streams
    /// that cannot be resumed. May be called once.
    ///
    /// A download that waits in the queue has nothing on disk, and is not stored: keep the ``ResumeState`` of each, as
    /// <doc:Servers> shows.
    ///
    /// If the task is cancelled, the service ends at once. What was fetched is kept, as after a killed process.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the configuration is invalid, the directory's path is not UTF-8
    ///   or the service has run before, and `file` if the directory cannot be created.
    public func run() async throws(DownloadError) {
        switch self.begin() {
        case .created: break
        case .unused: return
        case .starting, .running, .over: throw DownloadError(.usage, "a download service runs only once")
        }
        let history = self.configuration.history.listing
        do {
            try await self.withClient { client in
                try await client.makeDirectory(try self.directory.text)
                await client.withGroup(
                    name: nil, directory: self.directory, limits: nil, history: history
                ) { group in
                    self.enter(.running(client, group))
                    for await _ in self.stop {}
                    self.enter(.over(nil))
                    group.stopStarting()
                    await group.pauseAll()
                }
            }
        } catch {
            let error = DownloadError(wrapping: error)
            self.enter(.over(error))
            throw error
        }
    }

    /// Ends the service: its downloads are paused, and ``run()`` returns. It may be called at any time from any task, and has no
    /// further effect afterwards. A service that has not begun to run never does.
    public func shutdown() {
        self.stopping.finish()
        self.change { if case .created = $0 { $0 = .unused } }
    }

    /// The downloads of the service. Waits until it runs.
    ///
    /// - Throws: The ``DownloadError`` with which ``run()`` failed; code `cancelled` if the service has been shut down, or
    ///   the task is cancelled while it waits.
    public func downloads() async throws(DownloadError) -> DownloadGroup { try await self.waitUntilRunning().group }

    /// The client of the service, for example to probe a file before it is added. Waits until the service runs.
    ///
    /// Do not use the client after the service has ended: its requests fail then. A group of your own that it makes is
    /// not paused by ``shutdown()``.
    ///
    /// - Throws: The same errors as ``downloads()``.
    public func client() async throws(DownloadError) -> DownloadClient { try await self.waitUntilRunning().client }

    private func waitUntilRunning() async throws(DownloadError) -> (client: DownloadClient, group: DownloadGroup) {
        let (begun, waiter) = AsyncStream.makeStream(of: Never.self)
        self.state.withLock { state in
            if state.phase.awaitsGroup { state.waiters.append(waiter) } else { waiter.finish() }
        }
        for await _ in begun {}
        switch self.state.withLock({ $0.phase }) {
        case .running(let client, let group): return (client, group)
        case .over(let error?): throw error
        case .created, .unused, .starting, .over(nil):
            let why =
                Task.isCancelled ? "the wait for the download service was cancelled" : "the download service has ended"
            throw DownloadError(.cancelled, why)
        }
    }

    /// Begins to run, if that was not done before.
    ///
    /// - Returns: The phase before.
    private func begin() -> Phase {
        self.change { phase in
            switch phase {
            case .created: phase = .starting
            case .unused: phase = .over(nil)
            case .starting, .running, .over: break
            }
        }
    }

    private func enter(_ phase: Phase) {
        self.change { $0 = phase }
    }

    /// Changes the phase. Callers that wait for the group continue, unless there may still be one.
    ///
    /// - Returns: The phase before.
    @discardableResult
    private func change(_ body: (inout Phase) -> Void) -> Phase {
        let (before, waiters) = self.state.withLock { state in
            let before = state.phase
            body(&state.phase)
            guard !state.phase.awaitsGroup else { return (before, [AsyncStream<Never>.Continuation]()) }
            defer { state.waiters = [] }
            return (before, state.waiters)
        }
        for waiter in waiters { waiter.finish() }
        return before
    }
}

extension HistoryPolicy {
    /// The policy of a service: finished downloads leave the list, unless something else is said.
    fileprivate var listing: HistoryPolicy {
        var policy = self
        policy.listsFinished = self.listsFinished ?? false
        return policy
    }
}
