/// When what is written is made durable (`fdatasync`, `fsync`), so that a power cut does not take it.
public enum SyncPolicy: String, Hashable, Sendable, CaseIterable, Codable {
    /// Every 5 seconds and every 64 MiB, and at the end.
    case checkpoint
    /// Once the file is whole or the download is paused: a power cut before costs what was fetched.
    case end
    /// Never. A file may be named complete whose bytes a power cut takes with it.
    case none
}
