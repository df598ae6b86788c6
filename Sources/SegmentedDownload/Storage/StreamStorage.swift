import SegmentedDownloadCore

/// A storage that keeps nothing, for a file that is written to a descriptor.
struct StreamStorage: Storage {
    func open(_ path: String, _ mode: StorageOpenMode) throws(StorageError) -> any StorageFile {
        guard case .create = mode else { throw Self.nothing("open", path) }
        return StreamFile(path: path)
    }

    private static func nothing(_ call: String, _ path: String) -> StorageError {
        StorageError(call: call, path: path, errno: 0, condition: .notFound, text: "nothing is kept")
    }

    func status(of path: String) -> StorageStatus? { nil }
    func target(of path: String) -> StorageStatus? { nil }
    func makeDirectory(_ path: String, isPrivate: Bool) {}
    func names(in directory: String) -> [String] { [] }
    func checkWritable(directory: String) {}
    func freeSpace(in directory: String) -> Int64 { .max }
    func rename(_ path: String, to target: String, replacing: Bool) throws(StorageError) {
        throw Self.nothing("rename", path)
    }
    func remove(_ path: String) {}
    func synchronize(directory: String) async {}
    var keepsFiles: Bool { false }
    var bootID: String { "" }
    var user: UInt32 { 0 }
    func lockHolder(of status: StorageStatus) -> Int32? { nil }
}

private struct StreamFile: StorageFile {
    let path: String

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Int { bytes.count }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        throw StorageError(
            call: "read", path: self.path, errno: 0, condition: .other,
            text: "bytes already written to the output cannot be compared; save to a file to be able to resume")
    }

    func truncate(to length: Int64) {}
    func allocate(_ range: Range<Int64>) -> Bool { true }
    func firstHole(from offset: Int64) -> Int64 { .max }
    func synchronize(metadata: Bool) async {}
    func status() -> StorageStatus {
        StorageStatus(kind: .other, length: 0, device: 0, inode: 0, linkCount: 1, allocated: 0, modified: 0, changed: 0)
    }
    func tryLock() -> StorageLock { .taken }
    func attribute(_ name: String) -> [UInt8]? { nil }
    func setAttribute(_ name: String, _ value: [UInt8]) -> Bool { false }
    func removeAttribute(_ name: String) {}
    func setPermissions(_ permissions: UInt32) {}
    func setModified(_ seconds: Int64) {}
    func close() {}
}
