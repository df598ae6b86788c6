/// When the written bytes of a download are made durable.
package struct Checkpoints: Hashable, Sendable {
    /// 64 MiB: the number of written bytes after which a checkpoint is due, and so the most that a power failure can
    /// cost.
    package static let length: Int64 = 64 << 20

    /// The longest time that written bytes stay unsynced.
    package static let interval: Duration = .seconds(5)

    /// The number of checkpoints and revisions without an answer. They are performed in order.
    private var pending = 0
    private var dueAt: Duration = .zero
    /// The bytes on disk at the last one.
    private var bytes: Int64 = 0

    /// Whether all have been answered.
    var areDone: Bool { self.pending == 0 }

    /// Begins to count, with the bytes of an earlier run.
    mutating func begin(bytesDone: Int64, now: Duration) {
        self.bytes = bytesDone
        self.dueAt = now + Self.interval
    }

    /// Whether one is due, which is then counted as requested.
    mutating func request(bytesDone: Int64, now: Duration) -> Bool {
        // Fewer bytes may be on disk than before, because some were withdrawn.
        self.bytes = min(self.bytes, bytesDone)
        guard self.pending == 0, bytesDone > self.bytes, bytesDone - self.bytes >= Self.length || now >= self.dueAt
        else { return false }
        self.begin(bytesDone: bytesDone, now: now)
        self.request()
        return true
    }

    /// Counts a request.
    mutating func request() { self.pending += 1 }

    /// Counts an answer.
    mutating func end() { self.pending = max(self.pending - 1, 0) }
}
