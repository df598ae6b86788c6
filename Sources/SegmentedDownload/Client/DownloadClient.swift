public import CoreMetrics
import HTTPTypes
public import Logging
public import NIOCore
import SegmentedDownloadCore
import SystemPackage

/// The settings of a client: how it connects, and how much its downloads may use.
public struct DownloadConfiguration: Sendable {
    /// The limits that the downloads of one group share.
    public var limits = DownloadLimits()
    /// The time limit for making a connection, TLS handshake included. Default 15 s.
    public var connectTimeout: Duration = .seconds(15)
    /// The certificate authorities that are trusted, and the client certificate.
    public var trust = TrustPolicy()
    /// The proxies to use. Default none; see ``ProxyPolicy/init(environment:)``.
    public var proxies = ProxyPolicy()
    /// Fixed addresses of hosts, used instead of name resolution. The last entry for a host and port takes precedence.
    public var addresses: [HostAddress] = []
    /// User names and passwords by host, for requests without ``DownloadRequest/credentials``.
    public var netrc: Netrc?
    /// Whether passwords are never sent themselves. Then they are of use only to servers that want digests of them (RFC 7616). If not,
    /// the first request has the password, and a server that wants a digest gets one afterwards.
    public var hidesPasswords = false
    /// The cookies to send. Cookies that servers set are added and kept for the client's lifetime.
    public var cookies = CookieJar()
    /// The schemes allowed in URLs and redirects. Others fail with code `policy`.
    public var schemes: Set<String> = ["http", "https"]
    /// Whether a redirect may lead from `https` to `http`. If not, it fails with code `policy`.
    public var allowsDowngrade = false
    /// Whether the user's fields, credentials and cookies are also sent to other hosts that a redirect leads to.
    public var trustsRedirects = false
    /// The maximum number of redirects followed for one request.
    public var redirectsMax = 20
    /// The network interfaces that connections may use. ``DownloadClient/update(network:)`` changes it while downloads
    /// run.
    public var network = NetworkPolicy()
    /// What happens to downloads that are completed, failed or cancelled.
    public var history = HistoryPolicy()
    /// The file that remembers the best number of connections for each server; `nil`, the default, for none.
    public var memory: ServerMemory?
    /// Whether processes of this user on this machine share how long hosts ask them to wait. Default `false`.
    ///
    /// If a host refuses a request with 429 or 503 and `Retry-After`, the others send it no request before that time is
    /// over, at most 10 min; connections that the host serves continue. Tasks of one job
    /// also take turns at a host that serves only some of their connections. The processes share a file in memory, below `XDG_RUNTIME_DIR` or
    /// in `/dev/shm`. Without such a place nothing is shared.
    public var sharesRefusals = false
    /// The event loops that make the connections: a `MultiThreadedEventLoopGroup` or one of its loops, which must outlive
    /// the client. One of them is used, or as many as ``receivingThreads`` says. Nil, the default, for threads of the
    /// client's own.
    public var eventLoopGroup: (any EventLoopGroup)?
    /// The maximum number of threads that receive and decrypt, and of those that write files; nil, the default, to
    /// choose it by the number of processors.
    ///
    /// The default is half of the processors that the process may use, at most 8, and 1 if there are fewer than 4 or an
    /// ``eventLoopGroup`` is given. Then only connections of the same time that fetch 4 MiB or more over TLS are spread
    /// over several threads. With a number from 1 to 1024, all connections are. Threads are started when they are needed.
    /// All fetches of one file are written by the same thread.
    public var receivingThreads: Int?
    /// The logger for what happens to downloads, in messages with metadata; nil, the default, for none.
    public var logger: Logger?
    /// The metrics system for ended downloads, failed attempts and the bytes of completed files; nil, the default, for none.
    public var metrics: (any MetricsFactory)?
    /// Whether the process exits soon after the client was used, so that the client's threads need not be ended before.
    /// Waiting for them is a part of the time that a short file takes.
    package var endsWithProcess = false
    /// The transport that sends the requests; nil, the default, for the built-in HTTP client.
    ///
    /// Everything that concerns sockets belongs to the built-in one, and has no effect on another: ``connectTimeout``, ``trust``,
    /// ``proxies``, ``addresses``, ``network``, ``eventLoopGroup`` and ``receivingThreads``. ``DownloadLimits/memory`` then limits
    /// the number of connections, but not the length of the pieces that the transport delivers.
    public var transport: (any DownloadTransport)?

    public init() {}
}

/// Runs `body` with a client, and closes the client's connections when `body` returns.
///
/// - Throws: ``DownloadError`` with code `usage` if the configuration is invalid, and any error that `body` throws. The
///   two may be of different types, so the type is not stated.
public func withDownloadClient<Answer: Sendable>(
    _ configuration: DownloadConfiguration = DownloadConfiguration(),
    _ body: (DownloadClient) async throws -> Answer
) async throws -> Answer {
    for path in [configuration.history.path, configuration.memory?.path] { _ = try path?.text }
    guard configuration.receivingThreads.map(DownloadConfiguration.receivingThreadsRange.contains) ?? true else {
        throw DownloadError(.usage, "the number of receiving threads must be from 1 to 1024")
    }
    let loops = configuration.loopPlan
    return try await EngineThreads.withThreads(
        fetchingCount: configuration.transport == nil ? loops.countMax : 1,
        endsWithProcess: configuration.endsWithProcess
    ) { threads in
        let (storage, clock, seed) = (POSIXStorage(), SystemClock(), UInt64.random(in: .min ... .max))
        let servers = configuration.memory.map { ServerRecords($0, in: storage, clock: clock, seed: seed) }
        // The file is read while the transport starts.
        async let loading: Void? = servers?.load(on: threads)
        let answer = try await withTransport(configuration, loops) { transport in
            try await body(
                DownloadClient(
                    configuration: configuration, transport: transport, storage: storage, clock: clock, seed: seed,
                    threads: threads, memory: PartMemory(),
                    notices: configuration.sharesRefusals ? NoticeFile.standard(bootID: storage.bootID) : nil,
                    servers: servers))
        }
        await loading
        return answer
    }
}

/// Runs `body` with the configuration's transport, or with the built-in one.
private func withTransport<Answer: Sendable>(
    _ configuration: DownloadConfiguration, _ loops: ReceivingLoops.Plan,
    _ body: (any HTTPTransport) async throws -> Answer
) async throws -> Answer {
    if let own = configuration.transport {
        try DescriptorLimit.check()
        return try await body(TransportAdapter(own))
    }
    var transport = AsyncHTTPClientTransport.Configuration()
    transport.connectTimeout = configuration.connectTimeout
    transport.trust = configuration.trust
    transport.proxies = configuration.proxies
    transport.addresses = configuration.addresses
    transport.network = configuration.network
    transport.group = configuration.eventLoopGroup
    transport.loops = loops
    transport.endsWithProcess = configuration.endsWithProcess
    return try await AsyncHTTPClientTransport.withTransport(transport) { try await body($0) }
}

/// Fetches files in segments.
///
/// ```swift
/// try await withDownloadClient { client in
///     let result = try await client.download(DownloadRequest(SourceURL("https://example.org/file.iso")))
///     print(result.path)
/// }
/// ```
public struct DownloadClient: Sendable {
    let configuration: DownloadConfiguration
    let transport: any HTTPTransport
    let storage: any Storage
    let clock: any EngineClock
    let seed: UInt64
    private let threads: EngineThreads
    private let servers: ServerRecords?
    /// The memory for the parts of short files; `nil` if all parts are on disk.
    private let memory: PartMemory?
    /// The notices that processes share; `nil` if they share none.
    let notices: NoticeFile?

    /// Creates a client with a given transport, storage, clock and seed. Tests use it to inject faults and to replay
    /// runs.
    package init(
        configuration: DownloadConfiguration, transport: any HTTPTransport, storage: any Storage,
        clock: any EngineClock, seed: UInt64, threads: EngineThreads = .inherited, memory: PartMemory? = nil
    ) {
        self.init(
            configuration: configuration, transport: transport, storage: storage, clock: clock, seed: seed,
            threads: threads, memory: memory, notices: nil,
            servers: configuration.memory.map { ServerRecords($0, in: storage, clock: clock, seed: seed) })
    }

    init(
        configuration: DownloadConfiguration, transport: any HTTPTransport, storage: any Storage,
        clock: any EngineClock, seed: UInt64, threads: EngineThreads, memory: PartMemory?, notices: NoticeFile?,
        servers: ServerRecords?
    ) {
        self.notices = notices
        self.memory = memory
        self.configuration = configuration
        self.transport = transport
        self.storage = storage
        self.clock = clock
        self.seed = seed
        self.threads = threads.deciding(on: transport.executor)
        self.servers = servers
    }

    /// Fetches one file and returns when it is in place.
    ///
    /// - Throws: ``DownloadError``. ``DownloadError/isResumable`` says whether the fetched bytes are kept, and
    ///   ``DownloadError/isTransient`` whether the same request may succeed later. If the task is cancelled, the download
    ///   is paused and the code is `cancelled`.
    public func download(_ request: DownloadRequest) async throws(DownloadError) -> DownloadResult {
        try await self.withGroup { (group) async throws(DownloadError) -> DownloadResult in
            let download = try group.add(request)
            let result = await withTaskCancellationHandler { () async -> Result<DownloadResult, DownloadError> in
                do throws(DownloadError) {
                    return try await download.rest().result
                } catch {
                    // The task was cancelled, which also stops the download.
                    return DownloadEvent.cancelled.result
                }
            } onCancel: {
                download.requestPause()
            }
            return try result.get()
        }
    }

    /// Runs `body` with a group of downloads, and returns when `body` has returned and every download of the group is
    /// at rest.
    ///
    /// - Throws: Only errors that `body` throws, after the group's downloads have been paused.
    public func withGroup<Answer: Sendable, BodyError: Error>(
        _ body: (DownloadGroup) async throws(BodyError) -> Answer
    ) async throws(BodyError) -> Answer {
        try await self.withGroup(
            name: nil, directory: ".", limits: nil, history: self.configuration.history, body)
    }

    /// Creates a group's directory if it is missing.
    func makeDirectory(_ path: String) async throws(DownloadError) {
        do throws(StorageError) {
            try await self.threads.run(.stepping) { () throws(StorageError) in
                try self.storage.makeDirectory(path)
            }
        } catch {
            throw error.failure
        }
    }

    func withGroup<Answer: Sendable, BodyError: Error>(
        name: String?, directory: FilePath, limits: DownloadLimits?, history: HistoryPolicy,
        _ body: (DownloadGroup) async throws(BodyError) -> Answer
    ) async throws(BodyError) -> Answer {
        let hub = GroupHub()
        let engine = DownloadEngine(
            transport: self.transport, storage: self.storage, clock: self.clock,
            limits: limits ?? self.configuration.limits, seed: self.seed,
            threads: self.threads, hub: hub, notices: self.notices.map { NoticeBoard($0) })
        // Read before downloads are added, because adding one does not block.
        await self.servers?.load(on: self.threads)
        let log = history.log(in: self.storage, clock: self.clock)
        let group = DownloadGroup(
            engine: engine, hub: hub, transport: self.transport, storage: self.storage,
            access: Access(self.configuration), name: name, directory: directory, history: history, historyLog: log,
            servers: self.servers, memory: self.memory)
        let answer: Result<Answer, BodyError> = await withTaskGroup(of: Void.self) { tasks in
            self.threads.run(.deciding, in: &tasks) {
                await engine.run()
                // Also if the task was cancelled: otherwise a caller could wait for a download that can no longer end.
                group.close()
                log?.finish()
            }
            if let log { tasks.addTask { await self.threads.run(.stepping) { await log.run() } } }
            if let telemetry = Telemetry(self.configuration) {
                let events = group.events
                tasks.addTask { await telemetry.follow(events) }
            }
            let answer: Result<Answer, BodyError>
            do throws(BodyError) {
                answer = .success(try await body(group))
            } catch {
                group.requestPauseAll()
                answer = .failure(error)
            }
            engine.post(.close)
            await tasks.waitForAll()
            if let servers = self.servers { await self.threads.run(.stepping) { await servers.save() } }
            return answer
        }
        return try answer.get()
    }
}
