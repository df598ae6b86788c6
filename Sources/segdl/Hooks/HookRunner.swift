import CLinux
import ChildProcess
import SegmentedDownload
import Synchronization

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Runs the user's commands when files end, in the order of the ends, in parallel with the downloads.
struct HookRunner: ProgressReporter {
    private struct Hook: Sendable {
        /// The option that gives the command, for messages.
        var option: String
        var command: [String]
        var input = ""
        var variables: [String: String?] = [:]
        /// The file or run that the command is for, safe to print.
        var subject: String
        /// The maximum time; nil for no limit.
        var limit: Duration?
    }

    private enum Event: Sendable {
        case added(Hook)
        /// A hook has run for the time of a turn.
        case overdue(Int, Hook)
        case ended(Int)
        /// No more hooks are added.
        case finished
    }

    private let options: HookOptions
    private let console: Console
    private let elapsed: @Sendable () -> Duration
    private let turnLimit: Duration
    private let events: AsyncStream<Event>
    private let inbox: AsyncStream<Event>.Continuation
    private let waiting = Counter()

    /// The time between SIGTERM and SIGKILL.
    private static let patience: Duration = .milliseconds(500)
    /// A desktop may not respond. Notifications are lost after this time.
    private static let notificationLimit: Duration = .seconds(5)

    /// - Parameter turnLimit: A hook that has run for this long no longer delays others. 10 min: more than most take.
    init(
        _ options: HookOptions, console: Console, turnLimit: Duration = .seconds(600),
        elapsed: @escaping @Sendable () -> Duration
    ) {
        self.options = options
        self.console = console
        self.turnLimit = turnLimit
        self.elapsed = elapsed
        (self.events, self.inbox) = AsyncStream.makeStream()
    }

    /// Runs hooks until the run is finished. Cancelling the task ends those that run.
    func run() async {
        await withDiscardingTaskGroup { group in
            var schedule = HookSchedule<Hook>()
            var isFinished = false
            for await event in self.events {
                guard !Task.isCancelled else { break }
                switch event {
                case .added(let hook): schedule.add(hook)
                case .ended(let number): schedule.end(number)
                case .finished: isFinished = true
                case .overdue(let number, let hook):
                    if schedule.passTurn(of: number) {
                        self.console.write(
                            "segdl: \(hook.option) has run for \(Seconds(self.turnLimit)) for \(hook.subject); "
                                + "others no longer wait for it")
                    }
                }
                while let (number, hook) = schedule.start() {
                    self.waiting.add(-1)
                    group.addTask { await self.perform(hook, number) }
                }
                if isFinished, schedule.isIdle { break }
            }
        }
        let count = self.waiting.value
        if count > 0 {
            self.console.write("segdl: interrupted, \(count) \(count == 1 ? "hook was" : "hooks were") not run")
        }
    }

    private func perform(_ hook: Hook, _ number: Int) async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                guard (try? await Task.sleep(for: self.turnLimit)) != nil else { return }
                self.inbox.yield(.overdue(number, hook))
            }
            do throws(ChildProcess.SpawnFailure) {
                try await self.run(hook)
            } catch {
                self.console.write("segdl: \(hook.option) could not be run for \(hook.subject): \(error)")
            }
            group.cancelAll()
        }
        self.inbox.yield(.ended(number))
    }

    private func run(_ hook: Hook) async throws(ChildProcess.SpawnFailure) {
        let input = Self.descriptor(holding: hook.input)
        defer { if let input { close(input) } }
        // The hook writes to standard error directly. Reading a pipe instead would wait for its background processes
        // too.
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

    /// Ends the process and its children when the limit has passed or the task is cancelled, unless it has ended.
    private static func end(_ process: ChildProcess, after limit: Duration?) async {
        try? await Task.sleep(for: limit ?? .seconds(1 << 40))
        guard !process.hasEnded else { return }
        process.signal(SIGTERM, toGroup: true)
        // In a new task, because this one may be cancelled and would not sleep.
        await Task { try? await Task.sleep(for: Self.patience) }.value
        process.signal(SIGKILL, toGroup: true)
    }

    /// An anonymous file that contains the text. Unlike a pipe it needs no writer while it is read.
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

    // MARK: Adding hooks

    func wants(_ event: DownloadEvent) -> Bool { false }

    func report(_ event: DownloadEvent, of file: TransferFile) {
        switch event {
        case .completed: self.add(self.options.onComplete, "--on-complete", event, file)
        case .failed: self.add(self.options.onError, "--on-error", event, file)
        case .started, .state, .progress, .segment, .retrying, .checkpoint, .note, .paused, .cancelled: break
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
        self.inbox.yield(.finished)
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
        self.inbox.yield(.added(hook))
    }

    private static func title(_ summary: TransferSummary) -> String {
        let (count, failures) = (summary.filesCount, summary.failedCount)
        if failures == 0 { return count == 1 ? "Download complete" : "\(count) downloads complete" }
        return count == 1 ? "Download failed" : "\(failures) of \(count) downloads failed"
    }

    private static func text(_ summary: TransferSummary) -> String {
        guard let file = summary.only else { return "\(ByteCount(summary.bytes)) complete" }
        return "\(file.name): \(summary.failed.first?.error.message ?? "\(ByteCount(summary.bytes))")"
    }
}

/// A number that several tasks change.
private final class Counter: Sendable {
    private let number = Mutex(0)

    var value: Int { self.number.withLock { $0 } }

    func add(_ count: Int) { self.number.withLock { $0 += count } }
}

extension EventRecord {
    /// The main fields, for a hook's environment. Variables for absent fields are nil, which unsets them.
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
