import Synchronization

/// Writes a group's history, a line after another, where neither the engine's loop nor a download waits for it.
///
/// Another process may hold the file's lock: a line waits for it a moment and is then given up.
final class HistoryLog: Sendable {
    /// 300 ms: a writer holds the lock for a line; a run that ends waits no longer for one that never gives it back.
    private static let patience: Duration = .milliseconds(300)
    private static let pause: Duration = .milliseconds(10)

    private let file: HistoryFile
    private let clock: any EngineClock
    /// What is still to be written, oldest first.
    private let pending = Mutex<[HistoryEntry]>([])
    private let signals: AsyncStream<Void>
    private let signal: AsyncStream<Void>.Continuation

    init(_ file: HistoryFile, clock: any EngineClock) {
        self.file = file
        self.clock = clock
        (self.signals, self.signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    /// Has a line written soon.
    func note(_ entry: HistoryEntry) {
        self.pending.withLock { $0.append(entry) }
        self.signal.yield()
    }

    /// Nothing more comes.
    func finish() { self.signal.finish() }

    /// Writes until nothing more comes and all is written or given up.
    func run() async {
        for await _ in self.signals { await self.writePending() }
        // A task that was cancelled is told of no signal any more.
        await self.writePending()
    }

    private func writePending() async {
        var patience = Self.patience
        while let entry = self.pending.withLock({ $0.first }) {
            // After one that waited in vain the others try once.
            if await !self.write(entry, within: patience) { patience = .zero }
            self.pending.withLock { _ = $0.removeFirst() }
        }
    }

    /// Whether the lock was free in time. A disk that fails costs the line.
    private func write(_ entry: HistoryEntry, within limit: Duration) async -> Bool {
        let deadline = self.clock.now + limit
        while true {
            guard (try? self.file.append(entry)) == false else { return true }
            guard self.clock.now < deadline,
                (try? await self.clock.sleep(until: self.clock.now + Self.pause)) != nil
            else { return false }
        }
    }

    /// All entries, oldest first, those included that are still to be written.
    func entries() throws(DownloadError) -> [HistoryEntry] {
        let pending = self.pending.withLock { $0 }
        let written = try self.file.entries()
        return written + pending.filter { !written.contains($0) }
    }
}
