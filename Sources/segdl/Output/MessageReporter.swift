import SegmentedDownload
import Synchronization

/// Writes messages about files, depending on the verbosity.
final class MessageReporter: ProgressReporter {
    private let console: Console
    private let verbosity: OutputOptions.Verbosity
    private let filesCount: Int?
    private let terminal: Terminal?
    /// Bytes of paused files that a later run can use.
    private let bytesKept = Mutex<Int64>(0)

    /// - Parameters:
    ///   - filesCount: Several paused files are reported as one summary at the end. Nil if there is no end, as in the
    ///     service: each file then has its message.
    ///   - terminal: The terminal whose width lines about files must fit; nil if there is none.
    init(console: Console, verbosity: OutputOptions.Verbosity, filesCount: Int?, terminal: Terminal?) {
        self.console = console
        self.verbosity = verbosity
        self.filesCount = filesCount
        self.terminal = terminal
    }

    /// The verbosity from which on an event has a message; nil if it never has.
    private static func verbosity(of event: DownloadEvent) -> OutputOptions.Verbosity? {
        switch event {
        case .failed, .paused: .quiet
        case .completed, .cancelled, .note: .normal
        case .retrying, .segment: .verbose
        case .started, .progress, .checkpoint, .state: nil
        }
    }

    func wants(_ event: DownloadEvent) -> Bool {
        Self.verbosity(of: event).map { self.verbosity >= $0 } ?? false
    }

    func report(_ event: DownloadEvent, of file: TransferFile) {
        guard self.wants(event) else { return }
        switch event {
        case .completed(let result):
            self.console.write(self.fitted(ResultLine(result)))
        case .failed(let error, _):
            if !error.isBrokenPipe { self.console.write(FailureLine(error, of: file.path).text) }
        case .paused(let progress):
            // Files that never started need no look at the disk: there may be a million.
            guard self.filesCount == 1 || progress.bytesDone > 0 else { return }
            let line = PausedLine(file.path, progress)
            if self.filesCount ?? 1 == 1 {
                self.console.write(line.lines(on: self.terminal))
            } else {
                self.bytesKept.withLock { $0 += line.bytesKept }
            }
        case .cancelled:
            self.console.write("segdl: cancelled: \(file.path.shown)")
        case .retrying(let error, let attempt, let delay):
            self.console.write("\(file.path.shown): retry \(attempt) in \(Seconds(delay)): \(error.message)")
        case .note(let text):
            self.console.write("\(file.path.shown): note: \(text)")
        case .segment(let change):
            let range = "\(change.start)..<\(change.end.map { "\($0)" } ?? "")"
            self.console.write(
                "\(file.path.shown): segment \(change.segment) \(change.state.rawValue), bytes \(range)")
        case .started, .progress, .checkpoint, .state:
            break
        }
    }

    func finish(_ summary: TransferSummary) {
        guard summary.filesCount > 1 || summary.hasRest || summary.exitCode == .partial else { return }
        let failed = summary.failed
        var counts = "\(summary.completedCount) of \(summary.filesCount) files complete"
        if summary.failedCount > 0 { counts += ", \(summary.failedCount) failed" }
        let hint = "Run the same command again to fetch the rest"
        if summary.pausedCount > 0 || summary.hasRest {
            // Failed files are not listed again: an interrupted run ends with a short summary.
            if summary.pausedCount > 0 { counts += ", \(summary.pausedCount) paused" }
            let kept = self.bytesKept.withLock { $0 }
            if kept > 0 { counts += ", \(ByteCount(kept)) kept" }
            self.console.write(self.fitted(["segdl: \(counts).", hint]))
        } else if !failed.isEmpty {
            // The line printed when a file failed may have scrolled away, so every failed file is listed again.
            for entry in failed {
                self.console.write("segdl: failed: \(entry.file.path.shown) (\(entry.error.code.rawValue))")
            }
            if summary.failedCount > failed.count {
                self.console.write("segdl: failed: \(summary.failedCount - failed.count) more")
            }
            self.console.write(FailureLine(.partial, counts, hint: hint).text)
        } else {
            let rate = ResultLine.rate(summary.bytesFetched, in: summary.duration)
            guard self.verbosity >= .normal else { return }
            self.console.write(
                "\(summary.filesCount) files: \(ByteCount(summary.bytes)) in \(Seconds(summary.duration))\(rate)")
        }
    }

    private func fitted(_ line: ResultLine) -> String {
        self.terminal.map { $0.rendered(line.text(columns: $0.messageWidth)) } ?? line.text()
    }

    /// The sentences as one line if they fit, else each on a line of its own or more.
    private func fitted(_ sentences: [String]) -> [String] {
        let whole = sentences.joined(separator: " ")
        guard let width = self.terminal?.messageWidth, whole.columns > width else { return [whole] }
        return sentences.flatMap { $0.wrapped(to: width) }
    }
}
