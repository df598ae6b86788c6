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
        switch (try self.disk.entry(at: path, "open"), mode) {
        case (.file(let found), .read), (.file(let found), .update), (.file(let found), .through),
            (.file(let found), .append):
            inode = found
        // A directory may be opened for reading, and cannot be read: the error comes a call earlier here.
        case (.directory, .read), (.directory, .update), (.directory, .through), (.directory, .append):
            throw SystemError.isDirectory.of("open", path)
        case (nil, .read), (nil, .update), (nil, .through): throw SystemError.notFound.of("open", path)
        case (nil, .create), (nil, .createPrivate), (nil, .append):
            try self.disk.checkDirectory(of: path, "open")
            inode = self.disk.create(path, permissions: mode == .create ? 0o644 : 0o600)
        case (_?, .create), (_?, .createPrivate): throw SystemError.exists.of("open", path)
        }
        return SimulatedFile(disk: self.disk, inode: inode, path: path, mode: mode, epoch: self.epoch)
    }

    package func status(of path: String) throws(StorageError) -> StorageStatus? {
        try self.status("lstat", path)
    }

    package func target(of path: String) throws(StorageError) -> StorageStatus? {
        try self.status("stat", path)
    }

    private func status(_ call: String, _ path: String) throws(StorageError) -> StorageStatus? {
        try self.disk.begin(call, path, epoch: self.epoch)
        switch try self.disk.entry(at: path, call) {
        case .file(let inode): return inode.status
        case .directory(let number):
            let permissions: UInt32 = self.disk.privateDirectories.contains(number) ? 0o700 : 0o755
            return StorageStatus(
                kind: .directory, length: 0, device: Self.device, inode: number, linkCount: 2, allocated: 0,
                modified: 0, changed: 0, ownership: Ownership(owner: SimulatedDisk.user, permissions: permissions))
        case nil: return nil
        }
    }

    package func makeDirectory(_ path: String, isPrivate: Bool) throws(StorageError) {
        // Not counted as an operation where nothing is made, as in every world that replays an older seed.
        switch try self.disk.entry(at: path, "stat") {
        case .directory: return
        case .file: throw SystemError.exists.of("mkdir", path)
        case nil: break
        }
        try self.makeDirectory(DestinationPaths(path: path).directory, isPrivate: isPrivate)
        try self.disk.begin("mkdir", path, epoch: self.epoch)
        self.disk.makeDirectory(path, isPrivate: isPrivate)
    }

    package func names(in directory: String) throws(StorageError) -> [String] {
        try self.disk.begin("readdir", directory, epoch: self.epoch)
        try self.checkDirectory(directory, "opendir")
        return self.disk.names(in: directory)
    }

    package func checkWritable(directory: String) throws(StorageError) {
        try self.disk.begin("access", directory, epoch: self.epoch)
        try self.checkDirectory(directory, "access")
    }

    package func freeSpace(in directory: String) throws(StorageError) -> Int64 {
        try self.disk.begin("statvfs", directory, epoch: self.epoch)
        try self.checkDirectory(directory, "statvfs")
        return self.disk.capacity == .max ? .max : Int64(max(self.disk.capacity - self.disk.used, 0))
    }

    /// Throws unless a path names a directory.
    private func checkDirectory(_ path: String, _ call: String) throws(StorageError) {
        switch try self.disk.entry(at: path, call) {
        case .directory: return
        case .file: throw SystemError.notDirectory.of(call, path)
        case nil: throw SystemError.notFound.of(call, path)
        }
    }

    package func rename(_ path: String, to target: String, replacing: Bool) throws(StorageError) {
        try self.disk.begin("rename", target, epoch: self.epoch)
        // As in the real storage, an error names the target.
        switch try self.disk.entry(at: path, "rename") {
        case .file: break
        case .directory: preconditionFailure("the simulated disk does not rename directories")
        case nil: throw SystemError.notFound.of("rename", target)
        }
        switch try self.disk.entry(at: target, "rename") {
        case nil: try self.disk.checkDirectory(of: target, "rename")
        case _? where !replacing: throw SystemError.exists.of("rename", target)
        case .directory: throw SystemError.isDirectory.of("rename", target)
        case .file: break
        }
        // Two names of one file: nothing is to be done (rename(2)).
        if path != target { self.disk.apply(.rename(path, target)) }
    }

    package func openUnnamed(for path: String) throws(StorageError) -> (any StorageFile)? {
        guard self.disk.hasUnnamedFiles else { return nil }
        try self.disk.begin("open", path, epoch: self.epoch)
        try self.disk.checkDirectory(of: path, "open")
        let inode = self.disk.createUnnamed(permissions: 0o644)
        return SimulatedFile(disk: self.disk, inode: inode, path: path, mode: .update, epoch: self.epoch)
    }

    package func name(_ file: any StorageFile, _ path: String) throws(StorageError) {
        try self.disk.begin("linkat", path, epoch: self.epoch)
        guard let file = file as? SimulatedFile else { preconditionFailure("the file is another storage's") }
        guard try self.disk.entry(at: path, "linkat") == nil else { throw SystemError.exists.of("linkat", path) }
        try self.disk.checkDirectory(of: path, "linkat")
        file.name(path)
    }

    package func remove(_ path: String) throws(StorageError) {
        try self.disk.begin("unlink", path, epoch: self.epoch)
        switch try self.disk.entry(at: path, "unlink") {
        case .file: self.disk.apply(.unlink(path))
        case .directory: throw SystemError.isDirectory.of("unlink", path)
        case nil: break
        }
    }

    package func removeDirectory(_ path: String) throws(StorageError) {
        try self.disk.begin("rmdir", path, epoch: self.epoch)
        switch try self.disk.entry(at: path, "rmdir") {
        case .directory: self.disk.removeDirectory(path)
        case .file: throw SystemError.notDirectory.of("rmdir", path)
        case nil: break
        }
    }

    package func synchronize(directory: String) async throws(StorageError) {
        try self.disk.begin("fsync", directory, epoch: self.epoch)
        try self.checkDirectory(directory, "open")
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
            allocated: Int64(self.bytes.count), modified: self.modified, changed: self.changed,
            ownership: self.ownership)
    }
}

/// An open file of a simulated disk.
///
/// Once it is closed, every call fails. On a real disk the descriptor may by then be that of another file.
private final class SimulatedFile: StorageFile, @unchecked Sendable {
    // Unchecked: the whole simulation runs on one thread.
    private let disk: SimulatedDisk
    private let inode: SimulatedDisk.Inode
    private let path: String
    private let mode: StorageOpenMode
    private let epoch: Int
    private let id: Int
    private var isClosed = false

    init(disk: SimulatedDisk, inode: SimulatedDisk.Inode, path: String, mode: StorageOpenMode, epoch: Int) {
        self.disk = disk
        self.inode = inode
        self.path = path
        self.mode = mode
        self.epoch = epoch
        self.id = disk.nextOpen()
    }

    deinit { self.close() }

    /// Gives an unnamed file a name.
    func name(_ path: String) {
        self.inode.linkCount = 1
        self.disk.apply(.link(path, self.inode))
    }

    /// Notes an operation, and decides whether it fails.
    private func begin(_ call: String) throws(StorageError) {
        try self.disk.begin(call, self.path, epoch: self.epoch)
        guard !self.isClosed else { throw SystemError.badDescriptor.of(call, self.path) }
    }

    /// The same for an operation that changes the bytes.
    ///
    /// - Parameter refusal: The error for a file that is open for reading only.
    private func beginChange(_ call: String, or refusal: SystemError = .badDescriptor) throws(StorageError) {
        try self.begin(call)
        guard self.mode != .read else { throw refusal.of(call, self.path) }
    }

    func write(_ bytes: UnsafeRawBufferPointer, at stated: Int64) throws(StorageError) -> Int {
        try self.beginChange("pwrite")
        // A write of no bytes does not lengthen the file.
        guard !bytes.isEmpty else { return 0 }
        let offset = self.mode == .append ? Int64(self.inode.bytes.count) : stated
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
        self.disk.apply(.write(offset: Int(offset), bytes: taken), to: self.inode, epoch: self.epoch)
        return count
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        try self.begin("pread")
        guard Int(offset) < self.inode.bytes.count else { return 0 }
        let end = min(Int(offset) + buffer.count, self.inode.bytes.count)
        self.inode.bytes.withUnsafeBytes { bytes in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[Int(offset)..<end]))
        }
        return end - Int(offset)
    }

    func truncate(to length: Int64) throws(StorageError) {
        try self.beginChange("ftruncate", or: .invalid)
        self.disk.apply(.resize(Int(length)), to: self.inode, epoch: self.epoch)
    }

    func allocate(_ range: Range<Int64>) throws(StorageError) -> Bool {
        try self.beginChange("fallocate")
        let growth = Int(range.upperBound) - self.inode.bytes.count
        guard self.disk.capacity == .max || self.disk.used + growth <= self.disk.capacity else {
            throw self.disk.full("fallocate", self.path)
        }
        if growth > 0 { self.disk.apply(.resize(Int(range.upperBound)), to: self.inode, epoch: self.epoch) }
        return true
    }

    func firstHole(from offset: Int64) throws(StorageError) -> Int64 {
        try self.begin("lseek")
        return Int64(self.inode.bytes.count)
    }

    func synchronize(metadata: Bool) async throws(StorageError) {
        try self.begin("fsync")
        try await self.disk.synchronize(self.inode, metadata: metadata, epoch: self.epoch)
    }

    func status() throws(StorageError) -> StorageStatus {
        try self.begin("fstat")
        return self.inode.status
    }

    func tryLock() throws(StorageError) -> StorageLock {
        try self.begin("flock")
        guard self.inode.lockHolder == nil || self.inode.lockHolder?.open == self.id else { return .busy }
        self.inode.lockHolder = (self.id, self.epoch)
        return .taken
    }

    func attribute(_ name: String) -> [UInt8]? { self.isClosed ? nil : self.inode.attributes[name] }

    func setAttribute(_ name: String, _ value: [UInt8]) throws(StorageError) -> Bool {
        try self.begin("fsetxattr")
        guard self.disk.hasAttributes else { return false }
        self.change(name, to: value)
        return true
    }

    func removeAttribute(_ name: String) throws(StorageError) {
        // Without the attribute the call changes nothing.
        guard self.inode.attributes[name] != nil else { return }
        try self.begin("fremovexattr")
        self.change(name, to: nil)
    }

    private func change(_ attribute: String, to value: [UInt8]?) {
        let modified = self.inode.modified
        self.disk.apply(.attribute(attribute, value), to: self.inode, epoch: self.epoch)
        // Attributes change the status time, not the modification time.
        self.inode.modified = modified
    }

    func setPermissions(_ permissions: UInt32) throws(StorageError) {
        try self.begin("fchmod")
        self.inode.ownership = Ownership(owner: self.inode.ownership.owner, permissions: permissions)
        self.inode.changed = self.disk.stamp()
    }

    func setModified(_ seconds: Int64) throws(StorageError) {
        try self.begin("futimens")
        self.inode.modified = seconds &* 1_000_000_000
        self.inode.changed = self.disk.stamp()
    }

    func close() {
        guard !self.isClosed else { return }
        self.isClosed = true
        guard self.disk.isRunning(self.epoch), self.inode.lockHolder?.open == self.id else { return }
        self.inode.lockHolder = nil
    }
}
