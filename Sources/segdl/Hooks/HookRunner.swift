import CLinux
import ChildProcess
import SegmentedDownload
import Synchronization

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Has the user's commands run as files end: one after another, in the order of the ends, beside the downloads.
struct HookRunner: ProgressReporter {
    private struct Hook: Sendable {
        /// What the user called it, for messages.
        var option: String
        var command: [String]
        var input = ""
        var variables: [String: String?] = [:]
        /// What it is about, safe to show.
        var subject: String
        /// How long it may take; as long as it takes, without one.
        var limit: Duration?
    }

    private let options: HookOptions
    private let console: Console
    private let elapsed: @Sendable () -> Duration
    private let hooks: AsyncStream<Hook>
    private let queue: AsyncStream<Hook>.Continuation
    private let waiting = Counter()

    /// How long a hook that is to end may take to do so.
    private static let patience: Duration = .milliseconds(500)
    /// A desktop that does not answer is not waited for.
    private static let notificationLimit: Duration = .seconds(5)

    init(_ options: HookOptions, console: Console, elapsed: @escaping @Sendable () -> Duration) {
        self.options = options
        self.console = console
        self.elapsed = elapsed
        (self.hooks, self.queue) = AsyncStream.makeStream()
    }

    /// Runs what is to be run, until nothing more will be or it is cancelled, which ends the one that runs.
    func run() async {
        for await hook in self.hooks {
            guard !Task.isCancelled else { break }
            self.waiting.add(-1)
            do throws(ChildProcess.SpawnFailure) {
                try await self.run(hook)
            } catch {
                self.console.write("segdl: \(hook.option) could not be run for \(hook.subject): \(error)")
            }
        }
        let count = self.waiting.value
        if count > 0 {
            self.console.write("segdl: interrupted, \(count) \(count == 1 ? "hook was" : "hooks were") not run")
        }
    }

    private func run(_ hook: Hook) async throws(ChildProcess.SpawnFailure) {
        let input = Self.descriptor(holding: hook.input)
        defer { if let input { close(input) } }
        // What it prints goes where our own words go: reading it, we would wait for all that it leaves running.
        let process = try ChildProcess(
            hook.command, environment: hook.variables, input: input, output: STDERR_FILENO, errors: STDERR_FILENO)
        let ending = await withTaskGroup(of: Void.self) { group in
            group.addTask { await Self.end(process, after: hook.limit) }
            defer { group.cancelAll() }
            return await process.wait()
        }
        switch ending {
        case .exited(0): break
        case .exited(let status):
            self.console.write("segdl: \(hook.option) ended with status \(status) for \(hook.subject)")
        case .signaled(let number):
            self.console.write("segdl: \(hook.option) was ended by signal \(number) for \(hook.subject)")
        }
    }

    /// Ends a process, with those it started, when its time is over or the task is cancelled; nothing if it has ended by then.
    private static func end(_ process: ChildProcess, after limit: Duration?) async {
        try? await Task.sleep(for: limit ?? .seconds(1 << 40))
        guard !process.hasEnded else { return }
        process.signal(SIGTERM, toGroup: true)
        // Not to be cut short by the cancellation that brought us here.
        await Task { try? await Task.sleep(for: Self.patience) }.value
        process.signal(SIGKILL, toGroup: true)
    }

    /// A text to be read as a file that has no name, so that nobody has to write while it is read.
    private static func descriptor(holding text: String) -> CInt? {
        let descriptor = memfd_create("segdl-event", UInt32(MFD_CLOEXEC))
        guard descriptor >= 0 else { return nil }
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { SystemCalls.writeBytes(descriptor, $0) }
            guard count > 0 else { break }
            bytes = bytes.dropFirst(count)
        }
        lseek(descriptor, 0, SEEK_SET)
        return descriptor
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
        if self.options.notify, summary.signal == nil, summary.filesCount > 0 {
            self.add(
                Hook(
                    option: "--notify",
                    command: ["notify-send", "--app-name=segdl", "--", Self.title(summary), Self.text(summary)],
                    subject: "the run", limit: Self.notificationLimit))
        }
        self.queue.finish()
    }

    private func add(_ command: String?, _ option: String, _ event: DownloadEvent, _ file: TransferFile) {
        guard let command else { return }
        let record = EventRecord(event, of: file, time: self.elapsed())
        self.add(
            Hook(
                option: option, command: ["/bin/sh", "-c", command], input: record.jsonLine + "\n",
                variables: record.variables, subject: file.path.shown))
    }

    private func add(_ hook: Hook) {
        self.waiting.add(1)
        self.queue.yield(hook)
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

/// A number that many tasks change.
private final class Counter: Sendable {
    private let number = Mutex(0)

    var value: Int { self.number.withLock { $0 } }

    func add(_ count: Int) { self.number.withLock { $0 += count } }
}

extension EventRecord {
    /// The main facts, for a hook's environment; those that it has not are taken out of it.
    var variables: [String: String?] {
        let facts: [String: String?] = [
            "EVENT": self.event, "ID": self.id, "URL": self.url, "PATH": self.path, "CRC32": self.crc32,
            "BYTES": self.bytes.map { "\($0)" }, "BYTES_FETCHED": self.bytesFetched.map { "\($0)" },
            "BYTES_DONE": self.bytesDone.map { "\($0)" }, "SECONDS": self.seconds.map { "\($0)" },
            "VERIFIED_BY": self.verifiedBy, "ALREADY_COMPLETE": self.alreadyComplete.map { $0 ? "1" : "0" },
            "CODE": self.code, "EXIT": self.exit.map { "\($0)" }, "MESSAGE": self.message,
            "STATUS": self.status.map { "\($0)" }, "HINT": self.hint,
        ]
        return Dictionary(uniqueKeysWithValues: facts.map { ("SEGDL_" + $0, $1) })
    }
}
