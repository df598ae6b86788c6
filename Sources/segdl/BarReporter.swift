import SegmentedDownload
import Synchronization

/// Progress as one line at the bottom of the terminal: of the file, or of all of them.
final class BarReporter: ProgressReporter {
    private struct State {
        /// By number; what ended keeps its bytes, and neither rate nor connections.
        var progress: [Download.ID: DownloadProgress] = [:]
        var names: [Download.ID: String] = [:]
        /// What a file waits for, until bytes come.
        var remarks: [Download.ID: String] = [:]
        var endedCount = 0
        var drawnAt: Duration?
    }

    /// Many files have many events; more than this a second nobody reads.
    private static let intervalMin: Duration = .milliseconds(100)

    /// Some terminals wrap as soon as the last column is written, and `^C` is echoed behind the line.
    private static let columnsFree = 3

    private let console: Console
    private let filesCount: Int
    private let width: TerminalWidth
    private let elapsed: @Sendable () -> Duration
    private let state = Mutex(State())

    init(console: Console, filesCount: Int, width: TerminalWidth, elapsed: @escaping @Sendable () -> Duration) {
        self.console = console
        self.filesCount = filesCount
        self.width = width
        self.elapsed = elapsed
    }

    func begin(_ files: [TransferFile]) {
        self.state.withLock { state in
            for file in files {
                guard let id = file.id else { continue }
                state.names[id] = file.name
                state.remarks[id] = "connecting"
            }
            self.draw(&state)
        }
    }

    func report(_ event: DownloadEvent, of file: TransferFile) {
        guard let id = file.id else { return }
        self.state.withLock { state in
            switch event {
            case .started(let start):
                state.remarks[id] = nil
                state.names[id] = start.path.lastPathComponent.shown
                state.progress[id, default: DownloadProgress()].bytesTotal = start.bytesTotal
                state.progress[id, default: DownloadProgress()].bytesDone = start.resumedFrom
            case .progress(let progress):
                state.names[id] = file.name
                if progress.connections > 0, progress.bytesDone > state.progress[id]?.bytesDone ?? 0 {
                    state.remarks[id] = nil
                }
                state.progress[id] = progress
            case .retrying(let error, let attempt, let delay):
                state.remarks[id] = "retry \(attempt) in \(Seconds(delay)): \(error.message)"
            case .paused, .completed, .failed, .cancelled:
                state.progress[id] = Self.ended(state.progress[id] ?? DownloadProgress(), by: event)
                state.endedCount += 1
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
        self.console.show("")
    }

    private func draw(_ state: inout State) {
        state.drawnAt = self.elapsed()
        guard state.endedCount < self.filesCount else { return self.console.show("") }
        self.console.show(self.bar(state).line(width: self.width.columns - Self.columnsFree))
    }

    private func bar(_ state: State) -> ProgressBar {
        if self.filesCount == 1 {
            let progress = state.progress.values.first ?? DownloadProgress()
            var bar = ProgressBar(title: state.names.values.first ?? "", progress: progress)
            // While other connections go on, one that is made again is no news.
            if progress.connections == 0 { bar.remark = state.remarks.values.first }
            return bar
        }
        var sum = DownloadProgress()
        sum.bytesTotal = state.progress.count == self.filesCount ? 0 : nil
        for progress in state.progress.values {
            sum.bytesDone += progress.bytesDone
            // One unknown total leaves the sum unknown.
            sum.bytesTotal = sum.bytesTotal.flatMap { total in progress.bytesTotal.map { total + $0 } }
            sum.rate = progress.rate.map { (sum.rate ?? 0) + $0 } ?? sum.rate
            sum.connections += progress.connections
        }
        let title = "\(state.endedCount)/\(self.filesCount) files"
        return ProgressBar(title: title, progress: sum, titleMin: title.columns)
    }

    private static func ended(_ progress: DownloadProgress, by event: DownloadEvent) -> DownloadProgress {
        var ended = progress
        ended.rate = nil
        ended.connections = 0
        switch event {
        case .completed(let result):
            ended.bytesDone = result.bytes
            ended.bytesTotal = result.bytes
        case .failed, .paused, .cancelled:
            // What will not come is not waited for.
            ended.bytesTotal = ended.bytesDone
        case .started, .progress, .segment, .retrying, .checkpoint, .note, .state:
            break
        }
        return ended
    }
}
