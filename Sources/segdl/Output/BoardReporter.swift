import SegmentedDownload
import Synchronization

/// Shows progress as lines at the bottom of the terminal, as bars or as maps of the files.
///
/// Lines are drawn at fixed intervals and not for each event, because thousands of small files may end in a second.
final class BoardReporter: ProgressReporter {
    private struct State {
        var board: ProgressBoard
        /// The segments of the downloads that have been added and have not ended. Without maps there are none.
        var sources: [Download.ID: SegmentSource] = [:]
    }

    private let console: Console
    private let terminal: Terminal
    private let elapsed: @Sendable () -> Duration
    private let state: Mutex<State>

    /// - Parameter hasMaps: Whether maps are shown instead of bars.
    init(
        console: Console, terminal: Terminal, filesCount: Int?, hasMaps: Bool,
        elapsed: @escaping @Sendable () -> Duration
    ) {
        self.console = console
        self.terminal = terminal
        self.elapsed = elapsed
        let palette = hasMaps ? ProgressMap.Palette(terminal) : nil
        self.state = Mutex(State(board: ProgressBoard(filesCount: filesCount, palette: palette)))
    }

    var isTicking: Bool { true }

    func begin(_ file: TransferFile, segments: @escaping SegmentSource) {
        let isAlone = self.state.withLock { state in
            if let id = file.id, state.board.palette != nil { state.sources[id] = segments }
            // Most of many files are queued. They get a line when they start.
            guard state.board.filesCount == 1 else { return false }
            state.board.connect(file, at: self.elapsed())
            return true
        }
        if isAlone { self.draw() }
    }

    func report(_ event: DownloadEvent, of file: TransferFile) {
        let isLast = self.state.withLock { state in
            if let id = file.id, event.isTerminal { state.sources[id] = nil }
            state.board.take(event, of: file, at: self.elapsed())
            return event.isTerminal && state.board.filesCount == 1
        }
        // The line of a single file is removed before the message about its end.
        if isLast { self.draw() }
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
        let now = self.elapsed()
        let lines = self.state.withLock { state in
            state.board.tick(at: now)
            return state.board.lines(size, at: now)
        }
        self.console.show(lines.map { self.terminal.rendered($0) })
    }
}
