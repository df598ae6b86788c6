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

    private let events = LineSink(descriptor: STDOUT_FILENO)
    private let errors = LineSink(descriptor: STDERR_FILENO)

    init(configuration: DownloadConfiguration, output: OutputOptions, hooks: HookOptions) {
        self.configuration = configuration
        self.output = output
        self.hooks = hooks
    }

    /// Runs the downloads until they end.
    ///
    /// - Parameters:
    ///   - refused: Files that cannot be requested, and why.
    ///   - completed: Called with the index of each request whose file is complete.
    func run(
        _ requests: [DownloadRequest], refused: [(path: String, error: DownloadError)] = [],
        completed: @Sendable (Int) async -> Void = { _ in }
    ) async -> ExitCode {
        let start = ContinuousClock.now
        let elapsed: @Sendable () -> Duration = { ContinuousClock.now - start }
        let terminal = Terminal(assuming: STDERR_FILENO)
        let console = Console(self.errors) { terminal.size.columns }
        let hooks = HookRunner(self.hooks, console: console, elapsed: elapsed)
        let reporters =
            self.output.reporters(
                filesCount: refused.count + requests.count, output: self.events, console: console, elapsed: elapsed)
            + [hooks]
        var summary = TransferSummary(filesCount: refused.count + requests.count)
        for (number, (path, error)) in refused.enumerated() {
            let file = TransferFile(path: path)
            for reporter in reporters { reporter.report(.failed(error, DownloadProgress()), of: file) }
            summary.note(.failed(error), of: file, number: number)
        }
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
                let first = refused.count
                try await self.fetch(requests, from: first, reporters, signals, into: &summary) { number in
                    await completed(number - first)
                }
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

    /// Reports why nothing was started.
    func refuse(_ error: any Error) -> ExitCode {
        let error = DownloadError(wrapping: error)
        self.errors.send(FailureLine(error, of: nil).text + "\n")
        self.drain(isHurried: false)
        return ExitCode(error.code)
    }

    private func fetch(
        _ requests: [DownloadRequest], from number: Int, _ reporters: [any ProgressReporter], _ signals: SignalSource,
        into summary: inout TransferSummary, completed: @Sendable (Int) async -> Void
    ) async throws {
        guard !requests.isEmpty else { return }
        let window = max(Self.windowLength, 2 * self.configuration.limits.downloads)
        let before = summary
        summary = try await withDownloadClient(self.configuration) { client in
            try await client.withGroup { group in
                var summary = before
                let events = group.events
                let feed = try Feed(requests, to: group, from: number)
                await Self.watch(
                    feed, of: group, events, window: window, reporters, signals.events, into: &summary,
                    completed: completed)
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
