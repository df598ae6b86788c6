import SegmentedDownload
import Synchronization

/// Shows the progress of many files as lines at the bottom of the terminal.
///
/// Lines are drawn at fixed intervals and not for each event, because thousands of small files may end in a second.
final class BoardReporter: ProgressReporter {
    private let console: Console
    private let terminal: Terminal
    private let board: Mutex<ProgressBoard>

    init(console: Console, filesCount: Int, terminal: Terminal) {
        self.console = console
        self.terminal = terminal
        self.board = Mutex(ProgressBoard(filesCount: filesCount))
    }

    var isTicking: Bool { true }

    func report(_ event: DownloadEvent, of file: TransferFile) {
        self.board.withLock { $0.take(event, of: file) }
    }

    func tick() {
        let size = self.terminal.size
        let lines = self.board.withLock { $0.lines(size) }
        self.console.show(lines.map { self.terminal.rendered($0) })
    }

    func redraw() {
        self.console.forget()
        self.tick()
    }

    func finish(_ summary: TransferSummary) {
        self.console.show([])
    }
}
