/// When written bytes are made durable (`fdatasync`, `fsync`), so that they survive a power failure.
public enum SyncPolicy: String, Hashable, Sendable, CaseIterable, Codable {
    /// Every 5 seconds and every 64 MiB, and at the end.
    case checkpoint
    /// When the file is complete or the download is paused. A power failure before that loses the fetched bytes.
    case end
    /// Never. After a power failure a completed file may have missing bytes.
    case none
}
