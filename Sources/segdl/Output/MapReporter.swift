import SegmentedDownload
import Synchronization

/// Shows progress as maps of the files at the bottom of the terminal, drawn at fixed intervals.
final class MapReporter: ProgressReporter {
    private struct State {
        var board: ProgressBoard
        /// The downloads that have been added and have not ended.
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
            // Most of many files are queued. They get a line when they start.
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
        // Only for the files on the screen, because a list may be long.
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
