import SegmentedDownload
import Synchronization

/// Shows progress as maps of the files at the bottom of the terminal, drawn at fixed intervals.
final class MapReporter: ProgressReporter {
    private struct State {
        var board: ProgressBoard
        /// The segments of the downloads that have been added and have not ended.
        var sources: [Download.ID: SegmentSource] = [:]
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

    func begin(_ file: TransferFile, segments: @escaping SegmentSource) {
        self.state.withLock { state in
            if let id = file.id { state.sources[id] = segments }
            // Most of many files are queued. They get a line when they start.
            if state.board.filesCount == 1 { state.board.connect(file) }
        }
    }

    func report(_ event: DownloadEvent, of file: TransferFile) {
        self.state.withLock { state in
            if let id = file.id, event.isTerminal { state.sources[id] = nil }
            state.board.take(event, of: file)
        }
    }

    func tick() async {
        let size = self.terminal.size
        // Only for the files on the screen, because a list may be long.
        let seen = self.state.withLock { state in
            state.board.mapped(size).compactMap { id in state.sources[id].map { (id, $0) } }
        }
        for (id, source) in seen {
            let segments = await source()
            self.state.withLock { $0.board.note(segments, of: id) }
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
