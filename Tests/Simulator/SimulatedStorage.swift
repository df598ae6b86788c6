package import SegmentedDownload
import SegmentedDownloadCore

/// The storage of one simulated process.
package struct SimulatedStorage: Storage {
    let disk: SimulatedDisk
    let epoch: Int

    static let device: UInt64 = 1

    package var bootID: String { self.disk.bootID }

    package func open(_ path: String, _ mode: StorageOpenMode) throws(StorageError) -> any StorageFile {
        try self.disk.begin("open", path, epoch: self.epoch)
        let inode: SimulatedDisk.Inode
        switch (self.disk.names[path], mode) {
        case (let found?, .read), (let found?, .update): inode = found
        case (nil, .read), (nil, .update):
            throw SimulatedDisk.error("open", path, .notFound, "No such file or directory")
        case (nil, .create), (nil, .createPrivate): inode = self.disk.create(path)
        case (_?, .create), (_?, .createPrivate): throw SimulatedDisk.error("open", path, .exists, "File exists")
        }
        return SimulatedFile(disk: self.disk, inode: inode, path: path, epoch: self.epoch)
    }

    package func status(of path: String) throws(StorageError) -> StorageStatus? {
        try self.disk.begin("lstat", path, epoch: self.epoch)
        if path == "." { return Self.directory }
        return self.disk.names[path].map { $0.status }
    }

    package func target(of path: String) throws(StorageError) -> StorageStatus? { try self.status(of: path) }

    private static let directory = StorageStatus(
        kind: .directory, length: 0, device: Self.device, inode: 2, linkCount: 2, allocated: 0, modified: 0)

    package func makeDirectory(_ path: String) throws(StorageError) {}

    package func names(in directory: String) throws(StorageError) -> [String] {
        try self.disk.begin("readdir", directory, epoch: self.epoch)
        return self.disk.names.keys.sorted()
    }

    package func checkWritable(directory: String) throws(StorageError) {
        try self.disk.begin("access", directory, epoch: self.epoch)
    }

    package func freeSpace(in directory: String) throws(StorageError) -> Int64 {
        try self.disk.begin("statvfs", directory, epoch: self.epoch)
        return self.disk.capacity == .max ? .max : Int64(max(self.disk.capacity - self.disk.used, 0))
    }

    package func rename(_ path: String, to target: String, replacing: Bool) throws(StorageError) {
        try self.disk.begin("rename", target, epoch: self.epoch)
        guard self.disk.names[path] != nil else {
            throw SimulatedDisk.error("rename", path, .notFound, "No such file or directory")
        }
        guard replacing || self.disk.names[target] == nil else {
            throw SimulatedDisk.error("rename", target, .exists, "File exists")
        }
        self.disk.apply(.rename(path, target))
    }

    package func remove(_ path: String) throws(StorageError) {
        try self.disk.begin("unlink", path, epoch: self.epoch)
        if self.disk.names[path] != nil { self.disk.apply(.unlink(path)) }
    }

    package func synchronize(directory: String) async throws(StorageError) {
        try self.disk.begin("fsync", directory, epoch: self.epoch)
        try await self.disk.synchronizeNames(epoch: self.epoch)
    }

    package var user: UInt32 { SimulatedDisk.user }

    package func lockHolder(of status: StorageStatus) -> Int32? { nil }
}

extension SimulatedDisk.Inode {
    fileprivate var status: StorageStatus {
        StorageStatus(
            kind: .file, length: Int64(self.bytes.count), device: SimulatedStorage.device, inode: self.number,
            linkCount: self.linkCount,
            allocated: Int64(self.bytes.count), modified: self.modified, ownership: self.ownership)
    }
}

/// An open file of a simulated disk.
private final class SimulatedFile: StorageFile, @unchecked Sendable {
    // Unchecked: the whole simulation runs on one thread.
    private let disk: SimulatedDisk
    private let inode: SimulatedDisk.Inode
    private let path: String
    private let epoch: Int
    private let id: Int

    init(disk: SimulatedDisk, inode: SimulatedDisk.Inode, path: String, epoch: Int) {
        self.disk = disk
        self.inode = inode
        self.path = path
        self.epoch = epoch
        self.id = disk.nextOpen()
    }

    deinit { self.close() }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        try self.disk.begin("pwrite", self.path, epoch: self.epoch)
        var count = bytes.count
        if self.disk.faults.contains(.shortWrites), count > 1, Int.random(in: 0..<8, using: &self.disk.generator) == 0 {
            count = Int.random(in: 1...count, using: &self.disk.generator)
        }
        let growth = max(Int(offset) + count - self.inode.bytes.count, 0)
        guard growth == 0 || self.disk.capacity == .max || self.disk.used + growth <= self.disk.capacity else {
            throw self.disk.full("pwrite", self.path)
        }
        self.disk.mix(Int(offset))
        self.disk.mix(count)
        let taken = Array(UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        self.disk.apply(.write(offset: Int(offset), bytes: taken), to: self.inode)
        return count
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        try self.disk.begin("pread", self.path, epoch: self.epoch)
        guard Int(offset) < self.inode.bytes.count else { return 0 }
        let end = min(Int(offset) + buffer.count, self.inode.bytes.count)
        self.inode.bytes.withUnsafeBytes { bytes in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[Int(offset)..<end]))
        }
        return end - Int(offset)
    }

    func truncate(to length: Int64) throws(StorageError) {
        try self.disk.begin("ftruncate", self.path, epoch: self.epoch)
        self.disk.apply(.resize(Int(length)), to: self.inode)
    }

    func allocate(_ length: Int64) throws(StorageError) -> Bool {
        try self.disk.begin("fallocate", self.path, epoch: self.epoch)
        let growth = Int(length) - self.inode.bytes.count
        guard self.disk.capacity == .max || self.disk.used + growth <= self.disk.capacity else {
            throw self.disk.full("fallocate", self.path)
        }
        if growth > 0 { self.disk.apply(.resize(Int(length)), to: self.inode) }
        return true
    }

    func firstHole() throws(StorageError) -> Int64 {
        try self.disk.begin("lseek", self.path, epoch: self.epoch)
        return Int64(self.inode.bytes.count)
    }

    func synchronize(metadata: Bool) async throws(StorageError) {
        try self.disk.begin("fsync", self.path, epoch: self.epoch)
        try await self.disk.synchronize(self.inode, epoch: self.epoch)
    }

    func status() throws(StorageError) -> StorageStatus {
        try self.disk.begin("fstat", self.path, epoch: self.epoch)
        return self.inode.status
    }

    func tryLock() throws(StorageError) -> StorageLock {
        try self.disk.begin("flock", self.path, epoch: self.epoch)
        guard self.inode.lockHolder == nil || self.inode.lockHolder == self.id else { return .busy }
        self.inode.lockHolder = self.id
        return .taken
    }

    func attribute(_ name: String) -> [UInt8]? { self.inode.attributes[name] }

    func setAttribute(_ name: String, _ value: [UInt8]) throws(StorageError) -> Bool {
        try self.disk.begin("fsetxattr", self.path, epoch: self.epoch)
        let modified = self.inode.modified
        self.disk.apply(.attribute(name, value), to: self.inode)
        // Attributes change the status time, not the modification time.
        self.inode.modified = modified
        return true
    }

    func removeAttribute(_ name: String) throws(StorageError) {
        // Without the attribute the call changes nothing.
        guard self.inode.attributes[name] != nil else { return }
        try self.disk.begin("fremovexattr", self.path, epoch: self.epoch)
        self.inode.attributes[name] = nil
    }

    func setPermissions(_ permissions: UInt32) throws(StorageError) {
        try self.disk.begin("fchmod", self.path, epoch: self.epoch)
        self.inode.ownership = Ownership(owner: self.inode.ownership.owner, permissions: permissions)
    }

    func setModified(_ seconds: Int64) throws(StorageError) {
        try self.disk.begin("futimens", self.path, epoch: self.epoch)
        self.inode.modified = seconds &* 1_000_000_000
    }

    func close() {
        guard self.epoch == self.disk.epoch, self.inode.lockHolder == self.id else { return }
        self.inode.lockHolder = nil
    }
}
