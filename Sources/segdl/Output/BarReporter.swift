import SegmentedDownload
import Synchronization

/// Shows the progress of one file as one line at the bottom of the terminal.
final class BarReporter: ProgressReporter {
    private struct State {
        var progress = DownloadProgress()
        var name = ""
        /// What the file waits for; nil once bytes arrive.
        var remark: String?
        var isEnded = false
        var drawnAt: Duration?
    }

    /// 100 ms: a faster display is not readable.
    private static let intervalMin: Duration = .milliseconds(100)

    /// Some terminals wrap as soon as the last column is written, and `^C` is echoed after the line.
    private static let columnsFree = 3

    private let console: Console
    private let terminal: Terminal
    private let elapsed: @Sendable () -> Duration
    private let state = Mutex(State())

    init(console: Console, terminal: Terminal, elapsed: @escaping @Sendable () -> Duration) {
        self.console = console
        self.terminal = terminal
        self.elapsed = elapsed
    }

    func begin(_ file: TransferFile, segments: @escaping SegmentSource) {
        self.state.withLock { state in
            state.name = file.name
            state.remark = "connecting"
            self.draw(&state)
        }
    }

    func report(_ event: DownloadEvent, of file: TransferFile) {
        guard file.id != nil else { return }
        self.state.withLock { state in
            switch event {
            case .started(let start):
                state.remark = nil
                state.name = start.path.string.lastPathComponent.shown
                state.progress.bytesTotal = start.bytesTotal
                state.progress.bytesDone = start.resumedFrom
            case .progress(let progress):
                state.name = file.name
                if progress.connections > 0, progress.bytesDone > state.progress.bytesDone { state.remark = nil }
                state.progress = progress
            case .retrying(let error, let attempt, let delay):
                state.remark = "retry \(attempt) in \(Seconds(delay)): \(error.message)"
            case .paused, .completed, .failed, .cancelled:
                state.isEnded = true
            case .segment, .checkpoint, .note, .state:
                return
            }
            let isRecent = state.drawnAt.map { self.elapsed() - $0 < Self.intervalMin } ?? false
            if case .progress = event, isRecent { return }
            self.draw(&state)
        }
    }

    func redraw() {
        self.console.forget()
        self.state.withLock { self.draw(&$0) }
    }

    func finish(_ summary: TransferSummary) {
        self.console.show([])
    }

    private func draw(_ state: inout State) {
        state.drawnAt = self.elapsed()
        guard !state.isEnded else { return self.console.show([]) }
        var bar = ProgressBar(title: state.name, progress: state.progress)
        // A retry is not worth showing while other connections receive bytes.
        if state.progress.connections == 0 { bar.remark = state.remark }
        self.console.show([self.terminal.rendered(bar.line(width: self.terminal.size.columns - Self.columnsFree))])
    }
}
