import SegmentedDownload
import Synchronization

@testable import segdl

/// A run of the command's reporters on a pseudo-terminal, with files that arrive at fixed rates on a clock of its own.
final class DisplayScene {
    /// The terminal and the form of progress.
    struct Setting: CustomStringConvertible {
        var columns: Int
        var isUTF8: Bool
        var hasMaps = false

        var description: String { "\(self.columns)-\(self.isUTF8 ? "utf8" : "c")" }
    }

    /// A file that arrives at a constant rate.
    struct File {
        var name: String
        var length: Int64?
        /// In bytes per second.
        var rate: Int64
        var startsAt: Duration = .zero
        var resumedFrom: Int64 = 0
        var connections = 4

        func bytes(at time: Duration) -> Int64 {
            let arrived = self.resumedFrom + Int64(max((time - self.startsAt) / .seconds(1), 0) * Double(self.rate))
            return self.length.map { min(arrived, $0) } ?? arrived
        }
    }

    private enum Phase {
        case queued, running, ended
    }

    private let files: [File]
    private var phases: [Phase]
    private let pseudo: PseudoTerminal
    private let reporters: [any ProgressReporter]
    private let clock: Clock
    private var summary: TransferSummary
    /// Files whose connections are lost.
    private var lost: Set<Int> = []
    /// The screens so far, each after a title.
    private(set) var text = ""

    private final class Clock: Sendable {
        private let time = Mutex<Duration>(.zero)

        var now: Duration {
            get { self.time.withLock { $0 } }
            set { self.time.withLock { $0 = newValue } }
        }
    }

    /// - Parameter queuedCount: Files that never start.
    init(_ setting: Setting, _ files: [File], queuedCount: Int = 0) throws {
        let count = files.count + queuedCount
        let (pseudo, clock) = (try PseudoTerminal(columns: setting.columns, rows: 24), Clock())
        let terminal = Terminal(descriptor: pseudo.descriptor, isUTF8: setting.isUTF8, hasColors: setting.hasMaps)
        let console = Console(pseudo.sink) { setting.columns }
        self.files = files
        self.phases = files.map { _ in .queued }
        self.pseudo = pseudo
        self.clock = clock
        self.reporters = [
            BoardReporter(
                console: console, terminal: terminal, filesCount: count, hasMaps: setting.hasMaps,
                elapsed: { clock.now }),
            MessageReporter(console: console, verbosity: .normal, filesCount: count, terminal: terminal),
        ]
        self.summary = TransferSummary(filesCount: count)
        for number in files.indices {
            for reporter in self.reporters { reporter.begin(self.file(number), segments: self.segments(of: number)) }
        }
    }

    /// Lets the files arrive until a time, step by step.
    func run(to end: Duration, step: Duration = .milliseconds(100)) async throws {
        while self.clock.now < end {
            let now = min(self.clock.now + step, end)
            self.clock.now = now
            for number in self.files.indices { self.advance(number, now) }
            for reporter in self.reporters { await reporter.tick() }
            // Without a reader the terminal is soon full, and frames are dropped.
            try self.pseudo.update()
        }
    }

    private func advance(_ number: Int, _ now: Duration) {
        let file = self.files[number]
        if self.phases[number] == .queued, now > file.startsAt {
            self.phases[number] = .running
            self.report(
                .started(
                    .init(
                        url: "https://example.org/\(file.name)", path: FilePath(file.name), bytesTotal: file.length,
                        resumedFrom: file.resumedFrom, isSegmented: file.length != nil, validator: nil)), number)
        }
        guard self.phases[number] == .running, !self.lost.contains(number) else { return }
        self.report(.progress(self.progress(number, connections: file.connections)), number)
        if file.length == file.bytes(at: now) { self.complete(number) }
    }

    private func progress(_ number: Int, connections: Int) -> DownloadProgress {
        var progress = DownloadProgress()
        progress.bytesDone = self.files[number].bytes(at: self.clock.now)
        progress.bytesTotal = self.files[number].length
        progress.connections = connections
        return progress
    }

    // MARK: Endings

    func complete(_ number: Int) {
        let file = self.files[number]
        let bytes = file.bytes(at: self.clock.now)
        self.end(
            .completed(
                DownloadResult(
                    reported: FilePath(file.name), bytes: bytes, bytesFetched: bytes - file.resumedFrom, requests: 4,
                    connectionsPeak: file.connections, duration: self.clock.now - file.startsAt, crc32: "671d7ca4",
                    digests: [], verifiedBy: .etag, wasAlreadyComplete: false)), number)
    }

    /// All connections of a file are lost, and it waits.
    func lose(_ number: Int, _ message: String, delay: Duration) {
        self.lost.insert(number)
        self.report(.progress(self.progress(number, connections: 0)), number)
        self.report(.retrying(DownloadError(.network, message), attempt: 2, delay: delay), number)
    }

    func fail(_ number: Int, _ message: String) {
        self.end(
            .failed(DownloadError(.server, message, status: 404), self.progress(number, connections: 0)), number)
    }

    /// Ctrl-C.
    func interrupt() {
        for number in self.files.indices where self.phases[number] != .ended {
            self.end(.paused(self.progress(number, connections: 0)), number)
        }
    }

    func finish() {
        self.summary.duration = self.clock.now
        for reporter in self.reporters { reporter.finish(self.summary) }
    }

    private func end(_ event: DownloadEvent, _ number: Int) {
        self.phases[number] = .ended
        self.report(event, number)
        if let outcome = TransferSummary.Outcome(event) {
            self.summary.note(outcome, of: self.file(number), number: number)
        }
    }

    private func report(_ event: DownloadEvent, _ number: Int) {
        for reporter in self.reporters { reporter.report(event, of: self.file(number)) }
    }

    private func file(_ number: Int) -> TransferFile {
        TransferFile(id: Download.ID(rawValue: "\(number)"), path: self.files[number].name)
    }

    /// Four segments that have advanced equally.
    private func segments(of number: Int) -> SegmentSource {
        let (file, clock) = (self.files[number], self.clock)
        return {
            guard let length = file.length else { return [] }
            let done = file.bytes(at: clock.now) / 4
            return (0..<4).map { segment in
                let (start, end) = (length / 4 * Int64(segment), length / 4 * Int64(segment + 1))
                return SegmentStatus(
                    segment: segment, start: start, position: min(start + done, end), end: segment == 3 ? length : end,
                    state: segment == 3 ? .retrying : .fetching)
            }
        }
    }

    // MARK: Screens

    /// Adds what the terminal shows.
    func show(_ title: String) throws {
        try self.pseudo.update()
        let lines = self.pseudo.screen.lines.map { line in
            // Approved screens have no blanks at the end of a line.
            String(line.reversed().drop { $0 == " " }.reversed())
        }
        self.text += "=== \(title)\n" + lines.map { $0 + "\n" }.joined()
    }
}
