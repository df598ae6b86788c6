import SegmentedDownloadCore
import Synchronization

@testable import SegmentedDownload

/// The real disk, with every call that changes something noted in order, and with calls that fail where a test wants it.
///
/// Calls are named by a verb and the last component of a path, such as `sync file.bin.segdl-part`.
final class WatchedStorage: Storage {
    private struct State {
        var calls: [String] = []
        var openNames: [String] = []
        var failures: [String: StorageError.Condition] = [:]
        var actions: [String: @Sendable () throws -> Void] = [:]
        var user: UInt32
        var bootID: String
        var freeSpace: Int64?
        var allocates = true
        var hasUnnamedFiles = true
        var permissionsNew: UInt32?
        var keepsAttributes = true
        var lock: StorageLock?
        var links = Links.same
        var renumbersRenamed = false
    }

    /// What a file system makes of a hard link.
    enum Links: CaseIterable {
        /// A second name of the same file.
        case same
        /// A file with another inode number, as sshfs and mergerfs show it.
        case renumbered
        /// None, as on FAT.
        case refused
    }

    let linkFacts = LinkFacts()
    private let disk = POSIXStorage()
    private let state: Mutex<State>
    let keepsFiles: Bool

    init(keepsFiles: Bool = true) {
        self.keepsFiles = keepsFiles
        self.state = Mutex(State(user: self.disk.user, bootID: self.disk.bootID))
    }

    // MARK: What a test arranges

    /// Has a call fail from now on, or succeed again.
    func fail(_ call: String, _ condition: StorageError.Condition?) {
        self.state.withLock { $0.failures[call] = condition }
    }

    /// Has something happen once, immediately before a call.
    func before(_ call: String, _ action: @escaping @Sendable () throws -> Void) {
        self.state.withLock { $0.actions[call] = action }
    }

    var user: UInt32 {
        get { self.state.withLock { $0.user } }
        set { self.state.withLock { $0.user = newValue } }
    }

    var bootID: String {
        get { self.state.withLock { $0.bootID } }
        set { self.state.withLock { $0.bootID = newValue } }
    }

    /// Has another amount of space be free than there is.
    func setFreeSpace(_ bytes: Int64) { self.state.withLock { $0.freeSpace = bytes } }

    /// Has the file system be one without `fallocate`.
    func forbidAllocation() { self.state.withLock { $0.allocates = false } }

    /// Has the file system be one without files that have no name.
    func forbidUnnamedFiles() { self.state.withLock { $0.hasUnnamedFiles = false } }

    /// Has new files get these permissions, as another umask would. Files with a name are still created with the real one.
    func permitNew(_ permissions: UInt32) { self.state.withLock { $0.permissionsNew = permissions } }

    /// Has the file system be one without extended attributes.
    func forbidAttributes() { self.state.withLock { $0.keepsAttributes = false } }

    /// Has every attempt to lock a file end in this way.
    func setLock(_ lock: StorageLock) { self.state.withLock { $0.lock = lock } }

    /// Has the file system make this of hard links.
    func setLinks(_ links: Links) { self.state.withLock { $0.links = links } }

    /// Has every file get another inode number when it is renamed.
    func renumberRenamed() { self.state.withLock { $0.renumbersRenamed = true } }

    // MARK: What a test sees

    /// The calls since the last look.
    func take() -> [String] {
        self.state.withLock { state in
            defer { state.calls = [] }
            return state.calls
        }
    }

    /// The names of the files that are open.
    var openNames: [String] { self.state.withLock { $0.openNames.sorted() } }

    // MARK: Calls

    private static func name(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

    private func check(_ verb: String, _ path: String, isNoted: Bool = true) throws(StorageError) {
        let call = verb + " " + Self.name(path)
        let (condition, action) = self.state.withLock { state in
            if isNoted { state.calls.append(call) }
            return (state.failures[call], state.actions.removeValue(forKey: call))
        }
        do {
            try action?()
        } catch {
            preconditionFailure("what happens before \(call) failed: \(error)")
        }
        guard let condition else { return }
        throw StorageError(call: verb, path: path, errno: 0, condition: condition, text: "as the test wants it")
    }

    func open(_ path: String, _ mode: StorageOpenMode) throws(StorageError) -> any StorageFile {
        switch mode {
        case .read, .update, .through: try self.check("open", path, isNoted: false)
        case .create: try self.check("create", path)
        case .createPrivate: try self.check("create privately", path)
        case .append: try self.check("open to append", path, isNoted: false)
        }
        let file = try self.disk.open(path, mode)
        self.state.withLock { $0.openNames.append(Self.name(path)) }
        return File(storage: self, path: path, file: file)
    }

    func status(of path: String) throws(StorageError) -> StorageStatus? {
        try self.check("look at", path, isNoted: false)
        return try self.disk.status(of: path)
    }

    func target(of path: String) throws(StorageError) -> StorageStatus? { try self.disk.target(of: path) }
    func makeDirectory(_ path: String, isPrivate: Bool) throws(StorageError) {
        try self.disk.makeDirectory(path, isPrivate: isPrivate)
    }

    func names(in directory: String) throws(StorageError) -> [String] {
        try self.check("list", directory, isNoted: false)
        return try self.disk.names(in: directory)
    }
    func checkWritable(directory: String) throws(StorageError) { try self.disk.checkWritable(directory: directory) }

    func freeSpace(in directory: String) throws(StorageError) -> Int64 {
        if let bytes = self.state.withLock({ $0.freeSpace }) { return bytes }
        return try self.disk.freeSpace(in: directory)
    }

    func rename(_ path: String, to target: String, replacing: Bool) throws(StorageError) {
        try self.check("\(replacing ? "rename over" : "rename") \(Self.name(path)) to", target)
        try self.disk.rename(path, to: target, replacing: replacing)
        guard self.state.withLock({ $0.renumbersRenamed }) else { return }
        try self.copy(target, to: target + ".copy")
        try self.disk.rename(target + ".copy", to: target, replacing: true)
    }

    func link(_ path: String, to target: String) throws(StorageError) {
        try self.check("link \(Self.name(path)) to", target)
        switch self.state.withLock({ $0.links }) {
        case .same: try self.disk.link(path, to: target)
        case .renumbered: try self.copy(path, to: target)
        case .refused:
            throw StorageError(call: "link", path: target, errno: 1, condition: .permission, text: "as on FAT")
        }
    }

    /// Creates a file with the bytes and permissions of another one.
    private func copy(_ path: String, to target: String) throws(StorageError) {
        let (file, copy) = (try self.disk.open(path, .read), try self.disk.open(target, .create))
        defer {
            file.close()
            copy.close()
        }
        try copy.writeFully(try file.contents(limit: 1 << 20), at: 0)
        try copy.setPermissions(try file.status().ownership.permissions)
    }

    func openUnnamed(for path: String) throws(StorageError) -> (any StorageFile)? {
        try self.check("create unnamed", path)
        guard self.state.withLock({ $0.hasUnnamedFiles }), let file = self.disk.openUnnamed(for: path) else {
            return nil
        }
        if let permissions = self.permissionsOfNewFile(at: path) { try file.setPermissions(permissions) }
        self.state.withLock { $0.openNames.append(Self.name(path)) }
        return File(storage: self, path: path, file: file)
    }

    func permissionsOfNewFile(at path: String) -> UInt32? { self.state.withLock { $0.permissionsNew } }

    func name(_ file: any StorageFile, _ path: String) throws(StorageError) {
        try self.check("name", path)
        guard let file = file as? File else { preconditionFailure("the file is another storage's") }
        try self.disk.name(file.file, path)
    }

    func remove(_ path: String) throws(StorageError) {
        try self.check("remove", path)
        try self.disk.remove(path)
    }

    func synchronize(directory: String) async throws(StorageError) {
        try self.check("sync", "names")
        try await self.disk.synchronize(directory: directory)
    }

    func lockHolder(of status: StorageStatus) -> Int32? { self.disk.lockHolder(of: status) }

    // MARK: Files

    private final class File: StorageFile {
        private let storage: WatchedStorage
        private let path: String
        let file: any StorageFile
        private let isClosed = Latch()

        init(storage: WatchedStorage, path: String, file: any StorageFile) {
            self.storage = storage
            self.path = path
            self.file = file
        }

        func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
            try self.storage.check("write", self.path)
            return try self.file.write(bytes, at: offset)
        }

        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
            try self.storage.check("read", self.path, isNoted: false)
            return try self.file.read(into: buffer, at: offset)
        }

        func truncate(to length: Int64) throws(StorageError) {
            try self.storage.check("truncate to \(length)", self.path)
            try self.file.truncate(to: length)
        }

        func allocate(_ range: Range<Int64>) throws(StorageError) -> Bool {
            try self.storage.check("allocate \(range.count)", self.path)
            guard self.storage.state.withLock({ $0.allocates }) else { return false }
            return try self.file.allocate(range)
        }

        func firstHole(from offset: Int64) throws(StorageError) -> Int64 {
            try self.file.firstHole(from: offset)
        }

        func synchronize(metadata: Bool) async throws(StorageError) {
            try self.storage.check(metadata ? "sync all of" : "sync", self.path)
            try await self.file.synchronize(metadata: metadata)
        }

        func status() throws(StorageError) -> StorageStatus { try self.file.status() }

        func tryLock() throws(StorageError) -> StorageLock {
            try self.storage.check("lock", self.path, isNoted: false)
            if let lock = self.storage.state.withLock({ $0.lock }) { return lock }
            return try self.file.tryLock()
        }

        func attribute(_ name: String) -> [UInt8]? { self.file.attribute(name) }

        func setAttribute(_ name: String, _ value: [UInt8]) throws(StorageError) -> Bool {
            try self.storage.check("describe", self.path)
            guard self.storage.state.withLock({ $0.keepsAttributes }) else { return false }
            return try self.file.setAttribute(name, value)
        }

        func removeAttribute(_ name: String) throws(StorageError) {
            try self.storage.check("clear", self.path)
            guard self.storage.state.withLock({ $0.keepsAttributes }) else { return }
            try self.file.removeAttribute(name)
        }

        func setPermissions(_ permissions: UInt32) throws(StorageError) {
            try self.storage.check("permit \(String(permissions, radix: 8))", self.path)
            try self.file.setPermissions(permissions)
        }

        func setModified(_ seconds: Int64) throws(StorageError) {
            try self.storage.check("date \(seconds)", self.path)
            try self.file.setModified(seconds)
        }

        func close() {
            guard self.isClosed.raise() else { return }
            try? self.storage.check("close", self.path, isNoted: false)
            let name = WatchedStorage.name(self.path)
            self.storage.state.withLock { state in
                if let index = state.openNames.firstIndex(of: name) { state.openNames.remove(at: index) }
            }
            self.file.close()
        }
    }
}
