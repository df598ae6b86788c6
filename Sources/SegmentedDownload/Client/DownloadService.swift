import Synchronization

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
/// The product `SegmentedDownloadService` runs it in a service group of swift-service-lifecycle.
public final class DownloadService: Sendable {
    private enum Phase {
        case created
        case running(DownloadGroup)
        case over
    }

    private struct State {
        var phase = Phase.created
        var hasBegun = false
        /// Callers that wait for the group. Each sequence has no elements, and ends when the phase changes.
        var waiters: [AsyncStream<Never>.Continuation] = []
    }

    private let configuration: DownloadConfiguration
    private let directory: String
    private let state = Mutex(State())
    private let (stop, stopping) = AsyncStream.makeStream(of: Never.self)

    /// Creates a service, which does nothing until it runs.
    ///
    /// - Parameter directory: Relative destinations are resolved against it. It is created if it is missing.
    public init(_ configuration: DownloadConfiguration = DownloadConfiguration(), directory: String = ".") {
        self.configuration = configuration
        self.directory = directory
    }

    /// Runs the service until ``shutdown()``, then pauses its downloads, so that everything fetched is durable, except of streams
    /// that cannot be resumed. May be called once.
    ///
    /// If the task is cancelled, the service ends at once. What was fetched is kept, as after a killed process.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the configuration is invalid or the service has run before, and `file` if the
    ///   directory cannot be created.
    public func run() async throws(DownloadError) {
        let isFirst = self.state.withLock { state in
            defer { state.hasBegun = true }
            return !state.hasBegun
        }
        guard isFirst else { throw DownloadError(.usage, "a download service runs only once") }
        defer { self.enter(.over) }
        if case .over = self.state.withLock({ $0.phase }) { return }
        do {
            try await withDownloadClient(self.configuration) { client in
                try client.makeDirectory(self.directory)
                await client.withGroup(
                    name: nil, directory: self.directory, limits: nil, history: self.configuration.history
                ) { group in
                    self.enter(.running(group))
                    for await _ in self.stop {}
                    self.enter(.over)
                    group.stopStarting()
                    await group.pauseAll()
                }
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// Ends the service: its downloads are paused, and ``run()`` returns. It may be called at any time from any task, and has no
    /// further effect afterwards. A service that has not begun to run never does.
    public func shutdown() {
        self.stopping.finish()
        let isUnused = self.state.withLock { !$0.hasBegun }
        if isUnused { self.enter(.over) }
    }

    /// The downloads of the service. Waits until it runs.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` if the service has ended, or the task is cancelled while it waits.
    public func downloads() async throws(DownloadError) -> DownloadGroup {
        let (begun, waiter) = AsyncStream.makeStream(of: Never.self)
        self.state.withLock { state in
            if case .created = state.phase { state.waiters.append(waiter) } else { waiter.finish() }
        }
        for await _ in begun {}
        guard case .running(let group) = self.state.withLock({ $0.phase }) else {
            throw DownloadError(.cancelled, "the download service does not run")
        }
        return group
    }

    private func enter(_ phase: Phase) {
        let waiters = self.state.withLock { state in
            state.phase = phase
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.finish() }
    }
}
