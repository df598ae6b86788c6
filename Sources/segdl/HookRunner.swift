import SegmentedDownload
import Subprocess

/// Has the user's commands run as files end: one after another, in the order of the ends, beside the downloads.
struct HookRunner: ProgressReporter {
    private struct Hook: Sendable {
        /// What the user called it, for messages.
        var option: String
        var executable: Executable
        var arguments: [String]
        var input = ""
        var variables: [String: String] = [:]
        /// What it is about, safe to show.
        var subject: String
    }

    let options: HookOptions
    let console: Console
    let elapsed: @Sendable () -> Duration
    private let hooks: AsyncStream<Hook>
    private let queue: AsyncStream<Hook>.Continuation

    /// How long an interrupted run leaves a hook to end by itself.
    private static let patience: Duration = .milliseconds(500)

    init(_ options: HookOptions, console: Console, elapsed: @escaping @Sendable () -> Duration) {
        self.options = options
        self.console = console
        self.elapsed = elapsed
        (self.hooks, self.queue) = AsyncStream.makeStream()
    }

    /// Runs what is to be run, until nothing more will be or it is cancelled.
    func run() async {
        for await hook in self.hooks {
            guard !Task.isCancelled else { return }
            do {
                try await self.run(hook)
            } catch {
                guard !Task.isCancelled else { return }
                self.console.write("segdl: \(hook.option) could not be run for \(hook.subject): \("\(error)".shown)")
            }
        }
    }

    private func run(_ hook: Hook) async throws {
        var options = PlatformOptions()
        options.teardownSequence = [.gracefulShutDown(allowedDurationToNextStep: Self.patience)]
        var variables: [Environment.Key: String?] = [:]
        for (name, value) in hook.variables {
            if let key = Environment.Key(rawValue: "SEGDL_" + name) { variables[key] = value }
        }
        // What it prints goes where our own words go: reading it, we would wait for all that it leaves running.
        let result = try await Subprocess.run(
            hook.executable, arguments: Arguments(hook.arguments),
            environment: .inherit.updating(variables), platformOptions: options,
            input: .inputWriter, output: .currentStandardError, error: .currentStandardError
        ) { execution in
            // One that does not want to know need not read it.
            _ = try? await execution.standardInputWriter.write(hook.input)
            try? await execution.standardInputWriter.finish()
        }
        switch result.terminationStatus {
        case .exited(0): break
        case .exited(let status):
            self.console.write("segdl: \(hook.option) ended with status \(status) for \(hook.subject)")
        case .signaled(let number):
            if Task.isCancelled { return }
            self.console.write("segdl: \(hook.option) was ended by signal \(number) for \(hook.subject)")
        }
    }

    // MARK: What is to be run

    func report(_ event: DownloadEvent, of file: TransferFile) {
        switch event {
        case .completed: self.add(self.options.onComplete, "--on-complete", event, file)
        case .failed, .cancelled: self.add(self.options.onError, "--on-error", event, file)
        case .started, .state, .progress, .segment, .retrying, .checkpoint, .note, .paused: break
        }
    }

    func finish(_ summary: TransferSummary) {
        if self.options.notify, summary.signal == nil {
            self.queue.yield(
                Hook(
                    option: "--notify", executable: .name("notify-send"),
                    arguments: ["--app-name=segdl", "--", Self.title(summary), Self.text(summary)], subject: "the run"))
        }
        self.queue.finish()
    }

    private func add(_ command: String?, _ option: String, _ event: DownloadEvent, _ file: TransferFile) {
        guard let command else { return }
        let record = EventRecord(event, of: file, time: self.elapsed())
        self.queue.yield(
            Hook(
                option: option, executable: .name("sh"), arguments: ["-c", command],
                input: record.jsonLine + "\n", variables: record.variables, subject: file.path.shown))
    }

    private static func title(_ summary: TransferSummary) -> String {
        let (count, failures) = (summary.filesCount, summary.failed.count)
        if failures == 0 { return count == 1 ? "Download complete" : "\(count) downloads complete" }
        return count == 1 ? "Download failed" : "\(failures) of \(count) downloads failed"
    }

    private static func text(_ summary: TransferSummary) -> String {
        guard let file = summary.only else { return "\(ByteCount(summary.bytes)) complete" }
        return "\(file.name): \(summary.failed.first?.error.message ?? "\(ByteCount(summary.bytes))")"
    }
}

extension EventRecord {
    /// The main facts by their names, for a hook's environment.
    var variables: [String: String] {
        let facts: [String: String?] = [
            "EVENT": self.event, "ID": self.id, "URL": self.url, "PATH": self.path, "CRC32": self.crc32,
            "BYTES": self.bytes.map { "\($0)" }, "BYTES_FETCHED": self.bytesFetched.map { "\($0)" },
            "BYTES_DONE": self.bytesDone.map { "\($0)" }, "SECONDS": self.seconds.map { "\($0)" },
            "VERIFIED_BY": self.verifiedBy, "ALREADY_COMPLETE": self.alreadyComplete.map { $0 ? "1" : "0" },
            "CODE": self.code, "EXIT": self.exit.map { "\($0)" }, "MESSAGE": self.message,
            "STATUS": self.status.map { "\($0)" }, "HINT": self.hint,
        ]
        return facts.compactMapValues { $0 }
    }
}
