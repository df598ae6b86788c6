import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Fetches files and tells how it goes: what `get` and `resume` have in common.
struct Transfer {
    let configuration: DownloadConfiguration
    let output: OutputOptions

    private let events = LineSink(descriptor: STDOUT_FILENO)
    private let errors = LineSink(descriptor: STDERR_FILENO)

    init(configuration: DownloadConfiguration, output: OutputOptions) {
        self.configuration = configuration
        self.output = output
    }

    /// Runs the downloads to their ends.
    ///
    /// - Parameter refused: files that cannot even be tried, and why.
    func run(
        _ requests: [DownloadRequest], refused: [(path: String, error: DownloadError)] = []
    ) async -> ExitCode {
        let start = ContinuousClock.now
        let elapsed: @Sendable () -> Duration = { ContinuousClock.now - start }
        let reporters = self.output.reporters(
            filesCount: requests.count, output: self.events, console: Console(self.errors), elapsed: elapsed)
        var summary = TransferSummary()
        for (path, error) in refused {
            let file = TransferFile(path: path)
            for reporter in reporters { reporter.report(.failed(error, DownloadProgress()), of: file) }
            summary.files.append((file, .failed(error)))
        }
        let signals = SignalSource()
        defer { signals.cancel() }
        do {
            try await self.fetch(requests, reporters, signals, into: &summary)
        } catch {
            return self.refuse(error)
        }
        signals.expectNone()
        summary.duration = elapsed()
        for reporter in reporters { reporter.finish(summary) }
        self.drain(isHurried: summary.signal != nil)
        self.tellLostEvents()
        return summary.exitCode
    }

    /// Something worth knowing, unless to be quiet.
    func say(_ text: String) {
        if self.output.verbosity >= .normal { self.errors.send("segdl: \(text)\n") }
    }

    /// Says why nothing was begun.
    func refuse(_ error: any Error) -> ExitCode {
        let error = error as? DownloadError ?? DownloadError(.internal, "\(error)".shown)
        self.errors.send(FailureLine(error, of: nil).text + "\n")
        self.drain(isHurried: false)
        return ExitCode(error.code)
    }

    private func fetch(
        _ requests: [DownloadRequest], _ reporters: [any ProgressReporter], _ signals: SignalSource,
        into summary: inout TransferSummary
    ) async throws {
        guard !requests.isEmpty else { return }
        let (endings, signal) = try await withDownloadClient(self.configuration) { client in
            try await client.withGroup { group in
                // Listened to from the start: a small file may be done before its task runs.
                let downloads = try requests.map { request in
                    let download = try group.add(request)
                    return (download, download.events)
                }
                return await Self.watch(downloads, of: group, reporters, signals.events)
            }
        }
        summary.files += endings
        summary.signal = signal
    }

    /// A reader who has gone does not want to know; one who misses something does.
    private func tellLostEvents() {
        guard let failure = self.events.failure, failure != EPIPE else { return }
        self.errors.send("segdl: events were lost: standard output: \(String(cString: strerror(failure)))\n")
        self.errors.drain()
    }

    /// A reader who sleeps may hold up the end of a run, but not one that a signal ended: that has a second.
    private func drain(isHurried: Bool) {
        for sink in [self.errors, self.events] {
            sink.drain(within: isHurried ? .milliseconds(300) : nil)
        }
    }
}
