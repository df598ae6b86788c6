import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Fetches files and reports their progress, for `get`, `resume` and `verify --repair`.
struct Transfer {
    let configuration: DownloadConfiguration
    let output: OutputOptions
    let hooks: HookOptions
    /// Whether what is fetched is no longer needed, so that its failure is none.
    var isSuperseded: @Sendable () -> Bool = { false }

    private let events = LineSink(descriptor: STDOUT_FILENO)
    private let errors = LineSink(descriptor: STDERR_FILENO)

    init(configuration: DownloadConfiguration, output: OutputOptions, hooks: HookOptions) {
        self.configuration = configuration
        self.output = output
        self.hooks = hooks
    }

    /// Runs the downloads until they end.
    ///
    func run(_ files: some FileSource) async -> ExitCode {
        let start = ContinuousClock.now
        let elapsed: @Sendable () -> Duration = { ContinuousClock.now - start }
        let terminal = Terminal(assuming: STDERR_FILENO)
        let console = Console(self.errors) { terminal.size.columns }
        let hooks = HookRunner(self.hooks, console: console, elapsed: elapsed)
        let reporters =
            self.output.reporters(
                filesCount: files.count, output: self.events, console: console, elapsed: elapsed)
            + [hooks]
        var summary = TransferSummary(filesCount: files.count)
        do {
            try DescriptorLimit.check(others: SignalSource.descriptorCount)
        } catch {
            return self.refuse(error)
        }
        let signals = SignalSource()
        defer { signals.cancel() }
        do {
            try await withThrowingTaskGroup { group in
                group.addTask { await hooks.run() }
                try await self.fetch(files, reporters, signals, into: &summary)
                summary.duration = elapsed()
                for reporter in reporters { reporter.finish(summary) }
                // A signal also ends the hooks, even if all downloads have ended.
                if summary.signal == nil {
                    let events = signals.events
                    group.addTask { for await case .stop in events { return } }
                } else {
                    group.cancelAll()
                }
                while try await group.next() != nil { group.cancelAll() }
                signals.expectNone()
            }
        } catch {
            return self.refuse(error)
        }
        for line in await ServiceOwner.remarks(on: summary) { self.say(line) }
        self.drain(isHurried: summary.signal != nil)
        self.tellLostEvents()
        return summary.exitCode
    }

    /// Prints a message unless `--quiet` is given.
    func say(_ text: String) {
        if self.output.verbosity >= .normal { self.errors.send("segdl: \(text)\n") }
    }

    /// Prints the last message of a run.
    func finish(saying text: String) {
        self.say(text)
        self.drain(isHurried: false)
    }

    /// Reports why nothing was started.
    func refuse(_ error: any Error) -> ExitCode {
        let error = DownloadError(wrapping: error)
        self.errors.send(FailureLine(error, of: nil).text + "\n")
        self.drain(isHurried: false)
        return ExitCode(error.code)
    }

    private func fetch(
        _ files: some FileSource, _ reporters: [any ProgressReporter], _ signals: SignalSource,
        into summary: inout TransferSummary
    ) async throws {
        guard files.count != 0 else { return }
        let window = max(Self.windowLength, 2 * self.configuration.limits.downloadsMax)
        let before = summary
        summary = try await withDownloadClient(self.configuration) { client in
            try await client.withGroup { group in
                var summary = before
                let events = group.events { event in
                    if case .started = event { return true }
                    return event.isTerminal || reporters.contains { $0.wants(event) }
                }
                let feed = try Feed(files, to: group)
                await Self.watch(
                    feed, of: group, events, window: window, reporters, signals.events,
                    isSuperseded: self.isSuperseded, into: &summary)
                return summary
            }
        }
    }

    /// Reports that events could not be written, unless the reader closed standard output.
    private func tellLostEvents() {
        guard let failure = self.events.failure, failure != EPIPE else { return }
        self.errors.send("segdl: events were lost: standard output: \(String(cString: strerror(failure)))\n")
        self.errors.drain()
    }

    /// Waits until the output is written. After a signal it waits 300 ms at most, because a slow reader must not delay
    /// the exit by more than a second.
    private func drain(isHurried: Bool) {
        for sink in [self.errors, self.events] {
            sink.drain(within: isHurried ? .milliseconds(300) : nil)
        }
    }
}
