import Synchronization

/// Writes messages, and below them a few status lines that are redrawn in place.
final class Console: Sendable {
    private struct State {
        /// The status lines on the terminal. The cursor is after the last one.
        var status: [String] = []
        /// Messages to be written with the next redrawing.
        var waiting: [String] = []
    }

    /// With several status lines, messages are written at the next redrawing, or when there are this many.
    private static let waitingMax = 256

    private static let clearingLine = "\u{1B}[K"
    private static let clearingBelow = "\u{1B}[J"

    private let sink: LineSink
    private let columns: @Sendable () -> Int
    private let state = Mutex(State())

    /// - Parameter columns: Returns the terminal's current width.
    init(_ sink: LineSink, columns: @escaping @Sendable () -> Int = { Terminal.standard.columns }) {
        self.sink = sink
        self.columns = columns
    }

    /// Writes a line above the status lines: at once if there is at most one of these.
    func write(_ line: String) { self.write([line]) }

    /// Writes lines that stay together.
    func write(_ lines: [String]) {
        self.state.withLock { state in
            state.waiting += lines
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

    /// Removes the status lines until they are shown again, such as after a change of the terminal's width.
    func forget() {
        self.show([])
    }

    private func draw(_ lines: [String], _ state: inout State) {
        let rows = self.rows(of: state.status)
        var text = state.status.isEmpty && lines.isEmpty ? "" : "\r"
        if rows > 1 { text += "\u{1B}[\(rows - 1)A" }
        // Without status lines, as in a log, no control sequence is needed.
        for line in state.waiting {
            text += line + (state.status.isEmpty || self.isFull(line) ? "\n" : Self.clearingLine + "\n")
        }
        text += lines.joined(separator: Self.clearingLine + "\n")
        // The rest is cleared last, to avoid flicker.
        if rows > max(lines.count, 1) {
            text += Self.clearingBelow
        } else if !text.isEmpty, !(state.status.isEmpty && lines.isEmpty) {
            text += Self.clearingLine
        }
        // A redrawing of the same height may be dropped, because the next one covers the same rows.
        self.sink.send(text, isSpare: state.waiting.isEmpty && !lines.isEmpty && lines.count == state.status.count)
        state.status = lines
        state.waiting = []
    }

    /// Whether the text ends in the last column. The cursor is then still on it, and clearing the line would clear it.
    private func isFull(_ line: String) -> Bool {
        let columns = line.columns
        return columns > 0 && columns.isMultiple(of: max(self.columns(), 1))
    }

    /// The rows that the lines occupy. Lines drawn for a wider terminal wrap after it was made narrower.
    private func rows(of lines: [String]) -> Int {
        let columns = max(self.columns(), 1)
        return lines.reduce(0) { $0 + max(($1.columns + columns - 1) / columns, 1) }
    }
}
