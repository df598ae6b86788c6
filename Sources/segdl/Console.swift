import Synchronization

/// Lines for people, and below them one status line that is redrawn in place.
final class Console: Sendable {
    private static let clearing = "\r\u{1B}[K"

    private let sink: LineSink
    private let status = Mutex("")

    init(_ sink: LineSink) {
        self.sink = sink
    }

    /// Writes a line above the status line.
    func write(_ line: String) {
        self.status.withLock { status in
            self.sink.send(status.isEmpty ? "\(line)\n" : "\(Self.clearing)\(line)\n\(status)")
        }
    }

    /// Replaces the status line; an empty one takes it away.
    func show(_ text: String) {
        self.status.withLock { status in
            guard text != status else { return }
            // Clearing to the end comes last, so that nothing flickers.
            self.sink.send(text.isEmpty ? Self.clearing : "\r\(text)\u{1B}[K", isSpare: !text.isEmpty)
            status = text
        }
    }

    /// Draws the status line again, as after a change of the terminal's width.
    func forget() {
        self.status.withLock { status in
            if !status.isEmpty { self.sink.send(Self.clearing) }
            status = ""
        }
    }
}
