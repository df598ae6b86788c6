import SegmentedDownloadCore

/// A storage in which one path is a window of a shared file (``FileWindow``), so that engine, manifests and proofs work
/// unchanged for a range that one of several tasks fetches.
struct WindowStorage: Storage {
    let window: FileWindow
    let base: any Storage

    init(_ window: FileWindow, in base: any Storage) { (self.window, self.base) = (window, base) }

    func open(_ path: String, _ mode: StorageOpenMode) throws(StorageError) -> any StorageFile {
        guard path == self.window.part else { return try self.base.open(path, mode) }
        let own = try self.base.open(path, mode)
        do throws(StorageError) {
            // The shared file exists before any task begins.
            let data = try self.window.openData(in: self.base, mode == .read ? .read : .update)
            return WindowFile(self.window, own: own, shared: data, in: self.base)
        } catch {
            own.close()
            if mode == .create { try? self.base.remove(path) }
            throw error
        }
    }

    func status(of path: String) throws(StorageError) -> StorageStatus? {
        guard path == self.window.part, let own = try self.base.status(of: path) else {
            return try self.base.status(of: path)
        }
        guard let data = try self.base.status(of: self.window.data), self.window.isData(data) else { return nil }
        return self.window.status(own: own, data: data)
    }

    func target(of path: String) throws(StorageError) -> StorageStatus? {
        path == self.window.part ? try self.status(of: path) : try self.base.target(of: path)
    }

    func confined(to directory: String) -> any Storage {
        WindowStorage(self.window, in: self.base.confined(to: directory))
    }

    func makeDirectory(_ path: String, isPrivate: Bool) throws(StorageError) {
        try self.base.makeDirectory(path, isPrivate: isPrivate)
    }

    func names(in directory: String) throws(StorageError) -> [String] { try self.base.names(in: directory) }
    func checkWritable(directory: String) throws(StorageError) { try self.base.checkWritable(directory: directory) }
    func freeSpace(in directory: String) throws(StorageError) -> Int64 { try self.base.freeSpace(in: directory) }

    func rename(_ path: String, to target: String, replacing: Bool) throws(StorageError) {
        try self.base.rename(path, to: target, replacing: replacing)
    }

    func link(_ path: String, to target: String) throws(StorageError) { try self.base.link(path, to: target) }
    var linkFacts: LinkFacts { self.base.linkFacts }
    func remove(_ path: String) throws(StorageError) { try self.base.remove(path) }
    func removeDirectory(_ path: String) throws(StorageError) { try self.base.removeDirectory(path) }

    func synchronize(directory: String) async throws(StorageError) {
        try await self.base.synchronize(directory: directory)
    }

    var keepsFiles: Bool { self.base.keepsFiles }
    var bootID: String { self.base.bootID }
    var user: UInt32 { self.base.user }
    func lockHolder(of status: StorageStatus) -> Int32? { self.base.lockHolder(of: status) }
}
