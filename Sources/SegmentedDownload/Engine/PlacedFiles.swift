import Synchronization

/// The files that the downloads of one group have put in place, so that none of them replaces another's.
final class PlacedFiles: Sendable {
    private struct File: Hashable {
        let device: UInt64
        let inode: UInt64

        init(_ status: StorageStatus) {
            self.device = status.device
            self.inode = status.inode
        }
    }

    private let files = Mutex<Set<File>>([])

    func insert(_ status: StorageStatus) {
        self.files.withLock { _ = $0.insert(File(status)) }
    }

    func contains(_ status: StorageStatus) -> Bool {
        self.files.withLock { $0.contains(File(status)) }
    }
}
