import Synchronization

/// Lines for people, and below them a few status lines that are redrawn in place.
final class Console: Sendable {
    private struct State {
        /// The status lines as they stand on the terminal; the cursor is behind the last.
        var status: [String] = []
        /// Lines that are written with the next redrawing.
        var waiting: [String] = []
    }

    /// Many status lines are not drawn again for each line above them, but for so many.
    private static let waitingMax = 256

    private static let clearingLine = "\u{1B}[K"
    private static let clearingBelow = "\u{1B}[J"

    private let sink: LineSink
    private let columns: @Sendable () -> Int
    private let state = Mutex(State())

    /// - Parameter columns: how wide the terminal is now.
    init(_ sink: LineSink, columns: @escaping @Sendable () -> Int = { Terminal.standard.columns }) {
        self.sink = sink
        self.columns = columns
    }

    /// Writes a line above the status lines: at once, unless there are many of those.
    func write(_ line: String) {
        self.state.withLock { state in
            state.waiting.append(line)
            guard state.status.count <= 1 || state.waiting.count >= Self.waitingMax else { return }
            self.draw(state.status, &state)
        }
    }

    /// Replaces the status lines; none takes them away.
    func show(_ lines: [String]) {
        self.state.withLock { state in
            guard lines != state.status || !state.waiting.isEmpty else { return }
            self.draw(lines, &state)
        }
    }

    /// Takes the status lines away until they are shown again, as after a change of the terminal's width.
    func forget() {
        self.show([])
    }

    private func draw(_ lines: [String], _ state: inout State) {
        let rows = self.rows(of: state.status)
        // A line on an empty terminal, as in a log, needs no sign.
        let end = state.status.isEmpty ? "\n" : Self.clearingLine + "\n"
        var text = state.status.isEmpty && lines.isEmpty ? "" : "\r"
        if rows > 1 { text += "\u{1B}[\(rows - 1)A" }
        text += state.waiting.map { $0 + end }.joined()
        text += lines.joined(separator: Self.clearingLine + "\n")
        // Clearing comes last, so that nothing flickers.
        if rows > max(lines.count, 1) {
            text += Self.clearingBelow
        } else if !text.isEmpty, !(state.status.isEmpty && lines.isEmpty) {
            text += Self.clearingLine
        }
        // What is as high as before may be dropped: the next is drawn over the same place.
        self.sink.send(text, isSpare: state.waiting.isEmpty && !lines.isEmpty && lines.count == state.status.count)
        state.status = lines
        state.waiting = []
    }

    /// The rows that lines take: those drawn for a wider terminal wrap in one that was made narrower.
    private func rows(of lines: [String]) -> Int {
        let columns = max(self.columns(), 1)
        return lines.reduce(0) { $0 + max(($1.columns + columns - 1) / columns, 1) }
    }
}
