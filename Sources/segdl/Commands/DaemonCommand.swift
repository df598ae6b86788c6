import ArgumentParser
import SegmentedDownload

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Runs the background service.
struct DaemonCommand: FetchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "daemon",
        abstract: "Runs the background service, which continues downloads when the terminal is closed.",
        usage: "segdl daemon [options]",
        discussion: """
            There is one service for each user. segdl add and the other commands of the queue start it when they need \
            it. Its queue is in ~/.local/state/segdl, and survives a crash and a power cut.

            The options are those of segdl itself: options of a file are defaults for the files that are added over the \
            API, options of the run apply to the whole service. SIGHUP makes the service read the configuration file \
            again. SIGTERM pauses all downloads and ends the service; they continue when it is started again.

              segdl daemon --detach
              segdl daemon --limit-rate 5M -d /srv/files
              segdl daemon --install
            """
    )

    @Flag(help: "Run in the background, and return once the service answers.")
    var detach = false

    @Flag(help: "Write systemd units for this user, so that the service starts when it is first used.")
    var install = false

    @Option(
        help: ArgumentHelp("Exit when there was nothing to do for this long. (default: never)", valueName: "TIME"))
    var idleExit: Seconds?

    @Option(
        name: [.customShort("d", allowingJoined: true), .long, .customShort("P", allowingJoined: true)],
        help: ArgumentHelp(
            "The directory of files that are added over the API without one. (default: the working directory)",
            valueName: "DIR"), completion: .directory, transform: HomePath.directory)
    var dir: String?

    @OptionGroup(title: "RPC") var rpc: RPCOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions
    @OptionGroup(title: "Speed") var limits: LimitOptions
    @OptionGroup(title: "Sources") var labels: LabelOptions
    @OptionGroup(title: "Requests") var identity: IdentityOptions
    @OptionGroup(title: "Network") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(title: "Hooks") var hooks: HookOptions

    mutating func validate() throws {
        if self.detach, self.install { throw ValidationError("--detach and --install exclude each other") }
        if !self.labels.mirror.isEmpty || self.labels.id != nil {
            throw ValidationError("--mirror and --id are for one file")
        }
    }

    func perform(_ fetch: FetchRun) async -> ExitCode {
        let environment = ProcessInfo.processInfo.environment
        let log = environment[ServiceLauncher.variable].map { ServiceLog($0) }
        let errors = LineSink(descriptor: STDERR_FILENO) { log?.prepare() }
        defer { errors.drain() }
        do {
            let paths = try ServicePaths(environment: environment)
            let arguments = Array(CommandLine.arguments.dropFirst())
            if self.install {
                if let secret = SecretArguments.first(in: arguments) {
                    throw ServiceFailure(
                        "\(secret) would be written into a file that other users can read",
                        hint: "Put it into the configuration file, with chmod 600")
                }
                for line in try SystemdUnits.install(arguments, environment: environment) {
                    errors.send("segdl: \(line)\n")
                }
                return .ok
            }
            if self.detach {
                let process = try await ServiceLauncher(paths: paths).start(
                    arguments.filter { $0 != "--detach" }, in: FileManager.default.currentDirectoryPath)
                if !self.output.quiet { errors.send("segdl: the service runs as process \(process)\n") }
                return .ok
            }
            try await self.run(fetch, paths, environment, Console(errors), log)
            return .ok
        } catch let failure as ServiceFailure {
            errors.send(failure.line.text + "\n")
            return .daemon
        } catch {
            let error = DownloadError(wrapping: error)
            errors.send(FailureLine(error, of: nil).text + "\n")
            return ExitCode(error.code)
        }
    }

    private func run(
        _ fetch: FetchRun, _ paths: ServicePaths, _ environment: [String: String], _ console: Console,
        _ log: ServiceLog?
    ) async throws {
        for number in [SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
        let arguments = Array(CommandLine.arguments.dropFirst())
        let daemon = Daemon(
            paths: paths,
            directory: FilePath(FileManager.default.currentDirectoryPath).pushing(FilePath(self.dir ?? ".")),
            idleLimit: self.idleExit?.duration, rpc: self.rpc, environment: environment,
            settings: try self.settings(fetch),
            reload: {
                let prepared = try ArgumentPipeline(arguments, environment: environment)
                guard let command = try SegdlCommand.parseAsRoot(prepared.arguments) as? DaemonCommand else {
                    throw ServiceFailure("the command line cannot be read again")
                }
                return try command.settings(FetchRun(command, prepared.layers))
            },
            console: console,
            onReady: {
                let output = LineSink(descriptor: STDOUT_FILENO)
                output.send(ServiceLauncher.readyLine(at: paths.socket))
                output.drain()
                log?.begin()
            })
        try await daemon.run()
    }

    private func settings(_ fetch: FetchRun) throws(DownloadError) -> Daemon.Settings {
        var layers = fetch.layers
        layers.asksPasswords = false
        return Daemon.Settings(configuration: try fetch.configuration(for: []), layers: layers, hooks: self.hooks)
    }
}
