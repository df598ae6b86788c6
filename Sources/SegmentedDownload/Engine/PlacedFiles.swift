import Synchronization

/// The files that a group's downloads have put in place, so that none of them replaces another's.
final class PlacedFiles: Sendable {
    private let files = Mutex<Set<FileIdentity>>([])

    func insert(_ status: StorageStatus) {
        self.files.withLock { _ = $0.insert(status.identity) }
    }

    func contains(_ status: StorageStatus) -> Bool {
        self.files.withLock { $0.contains(status.identity) }
    }
}
