import Hummingbird
import Logging
import SegmentedDownload
import SegmentedDownloadService
import ServiceLifecycle
import Synchronization
import UnixSignals

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The background service of one user: the queue, and the listeners through which it is controlled.
struct Daemon: Sendable {
    /// What the command line and the configuration file say. They are read again after SIGHUP.
    struct Settings: Sendable {
        var configuration: DownloadConfiguration
        var layers: OptionLayers
        var hooks: HookOptions
    }

    let paths: ServicePaths
    /// Relative paths of clients begin here.
    let directory: FilePath
    /// Exit once there was nothing to do for this long; nil for never.
    let idleLimit: Duration?
    let rpc: RPCOptions
    let environment: [String: String]
    let settings: Settings
    let reload: @Sendable () throws -> Settings
    let console: Console
    /// Called once commands are answered.
    let onReady: @Sendable () -> Void

    /// 900 ms: a signal ends the service within a second, whatever its clients do.
    private static let shutdownLimit: Duration = .milliseconds(900)

    /// Runs the service until it is told to stop.
    ///
    /// - Throws: ``ServiceFailure``, or the ``DownloadError`` of the queue.
    func run() async throws {
        try self.paths.prepare()
        let lock = try ServiceLock(self.paths.lock)
        defer { lock.release() }
        let socket =
            try ServiceSocket(inherited: self.environment) ?? ServiceSocket(at: self.paths.socket)
        defer { socket.remove() }

        let start = ContinuousClock.now
        let elapsed: @Sendable () -> Duration = { ContinuousClock.now - start }
        let queue = DownloadQueue(
            self.settings.configuration, database: FilePath(self.paths.database), directory: self.directory,
            isHeld: true)
        let hooks = HookRunner(self.settings.hooks, console: self.console, elapsed: elapsed)
        let events = EventLog(
            of: queue,
            reporters: [
                hooks,
                MessageReporter(console: self.console, verbosity: .normal, filesCount: nil, terminal: nil),
            ],
            elapsed: elapsed)
        let policy = ServicePolicy(of: queue, self.settings.configuration)
        let layers = Layers(self.settings.layers)
        let control = QueueControl(queue: queue, policy: policy, layers: layers, directory: self.directory)
        let idle = IdleWatch(of: queue, limit: self.idleLimit)
        let manager = ServiceManager(environment: self.environment)
        let logger = Logger(label: "segdl") { _ in SwiftLogNoOpLogHandler() }

        let router = Router(context: ServiceContext.self)
        router.add(middleware: idle.middleware)
        let run = String(UInt64.random(in: 1...UInt64.max), radix: 36)
        let api = ControlAPI(control: control, events: events, run: run, stop: { queue.shutdown() })
        api.add(to: router)
        let listener = Listener(
            socket: socket.descriptor, peers: .sameUser, responder: router.buildResponder(), logger: logger)

        // The services are shut down in reverse order: first the downloads are paused, last the listener ends, which
        // answers until then.
        var configuration = ServiceGroupConfiguration(
            services: (try self.webListener(api, idle, logger).map { [.init(service: $0)] } ?? []) + [
                .init(service: listener),
                .init(service: manager),
                .init(service: idle),
                .init(service: Reload(policy: policy, layers: layers, daemon: self)),
                .init(service: Hooks(runner: hooks)),
                .init(service: events),
                .init(service: policy),
                .init(service: Readiness(queue: queue, manager: manager, console: self.console, onReady: self.onReady)),
                .init(service: queue, successTerminationBehavior: .gracefullyShutdownGroup),
            ],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger)
        configuration.maximumGracefulShutdownDuration = Self.shutdownLimit
        do {
            try await ServiceGroup(configuration: configuration).run()
        } catch {
            manager.send("STOPPING=1")
            throw error
        }
        manager.send("STOPPING=1")
    }
}

extension Daemon {
    /// The listener on a TCP port; nil if none is asked for.
    private func webListener(_ api: ControlAPI, _ idle: IdleWatch, _ logger: Logger) throws -> Listener? {
        guard let address = self.rpc.rpcListen else { return nil }
        let secret = try self.rpc.rpcSecret ?? RPCSecretFile.secret(at: self.paths.secret)
        var control = api.control
        let directory = self.directory.lexicallyNormalized()
        let home = self.environment["HOME"].map { FilePath($0).lexicallyNormalized() }
        guard !self.rpc.rpcRoot.isEmpty || directory != home && directory != "/" else {
            throw ServiceFailure(
                "clients could save files anywhere in \(directory.string.shown)",
                hint: "Give a directory for files with -d DIR, or allow some with --rpc-root DIR")
        }
        let roots = self.rpc.rpcRoot.isEmpty ? [directory] : self.rpc.rpcRoot.map { FilePath($0) }
        control.roots = SavingRoots(directories: roots.map { self.directory.pushing($0).lexicallyNormalized() })
        control.allowsPrivateAddresses = self.rpc.rpcAllowPrivate
        let policy = WebPolicy(
            origins: Set(self.rpc.rpcAllowOrigin), hosts: Set(self.rpc.rpcAllowHost.map { $0.lowercased() }))
        let rpc = Aria2RPC(control: control, events: api.events, secret: secret, session: api.run, stop: api.stop)
        let web = WebListener(
            rpc: rpc,
            api: ControlAPI(control: control, events: api.events, run: api.run, isRemote: true, stop: api.stop),
            policy: policy, secret: secret, hasPage: self.rpc.web)
        let router = web.router(idle)
        let (socket, port) = try Listener.open(address)
        let bound = RPCAddress(host: address.host, port: port)
        self.console.write("segdl: \(self.rpc.web ? "page at http://\(bound)/, " : "")RPC at http://\(bound)/jsonrpc")
        return Listener(
            socket: socket, peers: .any,
            webSockets: .init(policy: policy, handler: RPCSocket(rpc: rpc, events: api.events, idle: idle)),
            responder: router.buildResponder(), logger: logger)
    }
}

/// The layers of options, which change when the configuration is read again.
final class Layers: Sendable {
    private let layers: Mutex<OptionLayers>

    init(_ layers: OptionLayers) { self.layers = Mutex(layers) }

    var current: OptionLayers {
        get { self.layers.withLock { $0 } }
        set { self.layers.withLock { $0 = newValue } }
    }
}

/// Reports once that the service answers.
private struct Readiness: Service {
    let queue: DownloadQueue
    let manager: ServiceManager
    let console: Console
    let onReady: @Sendable () -> Void

    func run() async throws {
        if (try? await self.queue.limits()) != nil {
            if let repair = self.queue.repair {
                self.console.write(
                    "segdl: the queue was damaged; it is now \(repair.setAside.string.shown). Restored "
                        + "\(repair.readCount) downloads from it, and \(repair.foundCount) from their manifests, which are "
                        + "paused: segdl resume --all. \(repair.unreadableCount) cannot be read. It may have secrets: "
                        + "delete it when you do not need it")
            }
            self.manager.send("READY=1")
            self.onReady()
        }
        try await gracefulShutdown()
    }
}

/// Runs hooks until the service ends.
private struct Hooks: Service {
    let runner: HookRunner

    func run() async throws {
        await cancelWhenGracefulShutdown { await self.runner.run() }
        try await gracefulShutdown()
    }
}

/// Reads the configuration again after SIGHUP.
private struct Reload: Service {
    let policy: ServicePolicy
    let layers: Layers
    let daemon: Daemon

    func run() async throws {
        for await _ in await UnixSignalsSequence(trapping: .sighup).cancelOnGracefulShutdown() {
            do {
                let settings = try self.daemon.reload()
                self.layers.current = settings.layers
                try await self.policy.reconfigure(settings.configuration)
                self.daemon.console.write("segdl: the configuration was read again")
            } catch {
                self.daemon.console.write("segdl: the configuration stays as it is: \(error)")
            }
        }
    }
}

/// Ends the service once there was nothing to do for a time.
final class IdleWatch: Service {
    private struct State {
        var requests = 0
        var lastBusy = ContinuousClock.now
    }

    private let queue: DownloadQueue
    private let limit: Duration?
    private let state = Mutex(State())

    init(of queue: DownloadQueue, limit: Duration?) {
        self.queue = queue
        self.limit = limit
    }

    func run() async throws {
        guard let limit else { return try await gracefulShutdown() }
        try? await cancelWhenGracefulShutdown {
            while true {
                let entries = try await self.queue.entries()
                let isBusy = entries.contains { [.waiting, .active, .cancelling].contains($0.state) }
                let idle = self.state.withLock { state in
                    if isBusy || state.requests > 0 { state.lastBusy = .now }
                    return ContinuousClock.now - state.lastBusy
                }
                if idle >= limit { break }
                try await Task.sleep(for: max(limit - idle, .milliseconds(10)))
            }
            self.queue.shutdown()
        }
        try await gracefulShutdown()
    }

    /// Counts a client while `body` runs.
    func whileBusy(_ body: () async -> Void) async {
        let busy = Busy(self)
        await body()
        withExtendedLifetime(busy) {}
    }

    /// Counts the requests that are being answered.
    var middleware: some RouterMiddleware<ServiceContext> { Middleware(watch: self) }

    private struct Middleware: RouterMiddleware {
        let watch: IdleWatch

        func handle(
            _ request: Request, context: ServiceContext,
            next: @concurrent (Request, ServiceContext) async throws -> Response
        ) async throws -> Response {
            let busy = Busy(self.watch)
            var response = try await next(request, context)
            // The answer's body may be a stream of events that lasts for hours.
            let body = response.body
            response.body = ResponseBody(contentLength: body.contentLength) { writer in
                defer { withExtendedLifetime(busy) {} }
                try await body.write(writer)
            }
            return response
        }
    }

    /// A request that is being answered, as long as this lives.
    private final class Busy: Sendable {
        private let watch: IdleWatch

        init(_ watch: IdleWatch) {
            self.watch = watch
            watch.state.withLock { $0.requests += 1 }
        }

        deinit {
            self.watch.state.withLock { state in
                state.requests -= 1
                state.lastBusy = .now
            }
        }
    }
}
