import SegmentedDownload
import Synchronization

/// Progress as maps of the files at the bottom of the terminal, drawn when it is time.
final class MapReporter: ProgressReporter {
    private struct State {
        var board: ProgressBoard
        /// Those that have begun and not ended.
        var downloads: [Download.ID: Download] = [:]
    }

    private let console: Console
    private let terminal: Terminal
    private let state: Mutex<State>

    init(console: Console, filesCount: Int, terminal: Terminal) {
        self.console = console
        self.terminal = terminal
        self.state = Mutex(State(board: ProgressBoard(filesCount: filesCount, palette: .init(terminal))))
    }

    var isTicking: Bool { true }

    func begin(_ download: Download) {
        self.state.withLock { state in
            state.downloads[download.id] = download
            // Of many most wait for their turn, and the others tell when it has come.
            if state.board.filesCount == 1 { state.board.connect(TransferFile(download)) }
        }
    }

    func report(_ event: DownloadEvent, of file: TransferFile) {
        self.state.withLock { state in
            if let id = file.id, event.isTerminal { state.downloads[id] = nil }
            state.board.take(event, of: file)
        }
    }

    func tick() async {
        let size = self.terminal.size
        // Only at those that are seen: a list may be long.
        let seen = self.state.withLock { state in state.board.mapped(size).compactMap { state.downloads[$0] } }
        for download in seen {
            let segments = await download.segments
            self.state.withLock { $0.board.note(segments, of: download.id) }
        }
        self.draw()
    }

    func redraw() {
        self.console.forget()
        self.draw()
    }

    func finish(_ summary: TransferSummary) {
        self.console.show([])
    }

    private func draw() {
        let size = self.terminal.size
        let lines = self.state.withLock { $0.board.lines(size) }
        self.console.show(lines.map { self.terminal.rendered($0) })
    }
}
