import HTTPTypes
import SegmentedDownloadCore

/// How downloads connect, and how much they may use.
public struct DownloadConfiguration: Sendable {
    /// What the downloads of one group may use together.
    public var limits = DownloadLimits()
    /// How long a connection may take to be made, handshakes included. Default 15 s.
    public var connectTimeout: Duration = .seconds(15)
    /// Whose certificates are believed, and which one is shown.
    public var trust = TrustPolicy()
    /// Which connections go through a proxy; the default is none, see ``ProxyPolicy/init(environment:)``.
    public var proxies = ProxyPolicy()
    /// Where hosts are to be found, instead of what name servers say; of two for the same host and port the last one counts.
    public var addresses: [HostAddress] = []
    /// Names and passwords by host: for sources whose request has no ``DownloadRequest/credentials``.
    public var netrc: Netrc?
    /// What servers set is kept for the client's life, beside what was loaded.
    public var cookies = CookieJar()
    /// Schemes that URLs and redirects may have; others fail with code `policy`.
    public var schemes: Set<String> = ["http", "https"]
    /// Whether a redirect may lead from https to http.
    public var allowsDowngrade = false
    /// Whether redirects lead to hosts that are shown what the user sends along: fields, credentials and cookies.
    public var trustsRedirects = false
    /// Redirects followed for one request.
    public var redirectsMax = 20
    /// Which network interfaces may be used; ``DownloadClient/update(network:)`` changes it.
    public var network = NetworkPolicy()
    /// What becomes of downloads that are over.
    public var history = HistoryPolicy()
    /// Where it is remembered how many connections paid; absent, the default, nowhere.
    public var memory: ServerMemory?

    public init() {}
}

/// Hands a client to `body` and closes its connections when that returns.
///
/// - Throws: ``DownloadError`` with code `usage` if the configuration cannot be used, and what `body` throws.
public func withDownloadClient<Answer: Sendable>(
    _ configuration: DownloadConfiguration = DownloadConfiguration(),
    _ body: (DownloadClient) async throws -> Answer
) async throws -> Answer {
    var transport = AsyncHTTPClientTransport.Configuration()
    transport.connectTimeout = configuration.connectTimeout
    transport.trust = configuration.trust
    transport.proxies = configuration.proxies
    transport.addresses = configuration.addresses
    transport.network = configuration.network
    do {
        return try await EngineThreads.withThreads { threads in
            try await AsyncHTTPClientTransport.withTransport(transport) { transport in
                try await body(
                    DownloadClient(
                        configuration: configuration, transport: transport, storage: POSIXStorage(),
                        clock: SystemClock(), seed: UInt64.random(in: .min ... .max), threads: threads))
            }
        }
    } catch let failure as Failure {
        throw DownloadError(failure)
    }
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
    private let seed: UInt64
    private let threads: EngineThreads
    private let servers: ServerRecords?

    /// A client over other effects than the system's: for tests that need them to fail, or to be replayed.
    package init(
        configuration: DownloadConfiguration, transport: any HTTPTransport, storage: any Storage,
        clock: any EngineClock, seed: UInt64, threads: EngineThreads = .inherited
    ) {
        self.configuration = configuration
        self.transport = transport
        self.storage = storage
        self.clock = clock
        self.seed = seed
        self.threads = threads
        self.servers = configuration.memory.map(ServerRecords.init)
    }

    /// Fetches one file and returns when it is in place.
    ///
    /// - Throws: ``DownloadError``. What was fetched is kept; the same request goes on with it. When the task is
    ///   cancelled the download stops where it is and the error's code is `cancelled`; what was claimed by then is kept.
    public func download(_ request: DownloadRequest) async throws -> DownloadResult {
        try await self.withGroup { group in
            let download = try group.add(request)
            return try await withTaskCancellationHandler {
                try await download.result()
            } onCancel: {
                download.requestPause()
            }
        }
    }

    /// Hands a group of downloads to `body`. Returns once `body` has, and every download of the group rests; throws at
    /// once what `body` throws, after pausing them.
    public func withGroup<Answer: Sendable>(
        _ body: (DownloadGroup) async throws -> Answer
    ) async throws -> Answer {
        try await self.withGroup(
            name: nil, directory: ".", limits: nil, history: self.configuration.history, makesDirectory: false, body)
    }

    func withGroup<Answer: Sendable>(
        name: String?, directory: String, limits: DownloadLimits?, history: HistoryPolicy, makesDirectory: Bool,
        _ body: (DownloadGroup) async throws -> Answer
    ) async throws -> Answer {
        if makesDirectory {
            do throws(StorageError) {
                try self.storage.makeDirectory(directory)
            } catch {
                throw DownloadError(error.failure)
            }
        }
        let engine = DownloadEngine(
            transport: self.transport, storage: self.storage, clock: self.clock,
            limits: limits ?? self.configuration.limits, seed: self.seed,
            threads: self.threads)
        let log = history.log(clock: self.clock)
        let group = DownloadGroup(
            engine: engine, transport: self.transport, storage: self.storage,
            access: Access(self.configuration), name: name, directory: directory, history: history, historyLog: log,
            servers: self.servers)
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                await engine.run()
                // Also where the task was cancelled: nobody may wait for what cannot come.
                group.close()
                log?.finish()
            }
            if let log { tasks.addTask { await self.threads.run(.stepping) { await log.run() } } }
            let answer: Result<Answer, any Error>
            do {
                answer = .success(try await body(group))
            } catch {
                group.requestPauseAll()
                answer = .failure(error)
            }
            engine.post(.close)
            try await tasks.waitForAll()
            self.servers?.save()
            return try answer.get()
        }
    }
}
