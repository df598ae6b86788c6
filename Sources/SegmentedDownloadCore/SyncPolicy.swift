/// When written bytes are made durable (`fdatasync`, `fsync`), so that a power cut does not lose them.
public enum SyncPolicy: String, Codable, Hashable, Sendable, CaseIterable {
    /// Every 5 seconds or 64 MiB, and at the end.
    case checkpoint
    /// When the file is complete or the download is paused. An earlier power cut loses the bytes fetched so far.
    case end
    /// Never. A power cut may lose bytes of a file that was reported complete. If you request the file again, its content
    /// is read and verified first.
    case none
}
