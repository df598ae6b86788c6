import Synchronization

/// Writes a group's history line by line, without delaying the engine's loop or a download.
///
/// If another process holds the file's lock for more than a moment, lines are dropped.
final class HistoryLog: Sendable {
    /// 300 ms: a writer holds the lock for one line. The end of a run waits no longer for a process that never releases
    /// it.
    private static let patience: Duration = .milliseconds(300)
    private static let pause: Duration = .milliseconds(10)

    private let file: HistoryFile
    let clock: any EngineClock
    /// The entries still to be written, oldest first.
    private let pending = Mutex<[HistoryEntry]>([])
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    init(_ file: HistoryFile, clock: any EngineClock) {
        self.file = file
        self.clock = clock
        (self.signals, self.signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Queues an entry.
    func note(_ entry: HistoryEntry) {
        self.pending.withLock { $0.append(entry) }
        self.signal.yield()
    }

    /// Ends the log: no entry follows.
    func finish() { self.signal.finish() }

    /// Writes entries until the log has ended and all are written or dropped.
    func run() async {
        for await _ in self.signals { await self.writePending() }
        // A cancelled task receives no further signals.
        await self.writePending()
    }

    private func writePending() async {
        var patience = Self.patience
        while let entry = self.pending.withLock({ $0.first }) {
            // After an entry that timed out, the others are tried once each.
            if await !self.write(entry, within: patience) { patience = .zero }
            self.pending.withLock { _ = $0.removeFirst() }
        }
    }

    /// Writes an entry. An I/O error drops it.
    ///
    /// - Returns: Whether the lock was obtained in time.
    private func write(_ entry: HistoryEntry, within limit: Duration) async -> Bool {
        let deadline = self.clock.now + limit
        while true {
            guard (try? self.file.append(entry)) == false else { return true }
            guard self.clock.now < deadline,
                (try? await self.clock.sleep(until: self.clock.now + Self.pause)) != nil
            else { return false }
        }
    }

    /// All entries, oldest first, including those still to be written. Blocks the thread.
    func entries() throws(DownloadError) -> [HistoryEntry] {
        let pending = self.pending.withLock { $0 }
        let written = try self.file.entries()
        return written + pending.filter { !written.contains($0) }
    }
}
