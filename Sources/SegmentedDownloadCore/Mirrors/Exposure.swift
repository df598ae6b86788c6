/// The bytes of a source that may be from another version than its latest accepted answer states.
///
/// An answer proves the bytes that arrived before its request, see ``Confirmation``.
struct Exposure: Hashable, Sendable {
    /// When the head of the latest accepted answer arrived.
    private var acceptedAt: Duration?
    /// When the latest byte of the file arrived.
    private var writtenAt: Duration?
    /// The number of accepted answers.
    private(set) var answers = 0
    /// The bytes of the file that arrived.
    private(set) var bytesWritten: Int64 = 0
    /// Of these, the ones that arrived before an accepted answer was requested.
    private var bytesProven: Int64 = 0

    /// How long after the latest accepted head bytes arrived.
    ///
    /// - Parameter beganAt: When bytes were first requested.
    func time(since beganAt: Duration) -> Duration {
        self.writtenAt.map { $0 - (self.acceptedAt ?? beganAt) } ?? .zero
    }

    /// Whether a change may have mixed two versions.
    func isLong(since beganAt: Duration) -> Bool {
        self.time(since: beganAt) > Confirmation.exposureMax
            || self.bytesWritten - self.bytesProven > Confirmation.exposedBytesMax
    }

    /// - Parameter bytes: ``bytesWritten`` when the answer was requested.
    mutating func noteAccepted(now: Duration?, after bytes: Int64) {
        self.answers += 1
        self.acceptedAt = now
        self.bytesProven = max(self.bytesProven, bytes)
    }

    mutating func noteWritten(_ count: Int64, now: Duration) {
        self.writtenAt = now
        self.bytesWritten += count
    }

    /// The file is begun anew.
    mutating func restart() {
        self.noteAccepted(now: nil, after: self.bytesWritten)
        self.answers = 0
        self.writtenAt = nil
    }
}
