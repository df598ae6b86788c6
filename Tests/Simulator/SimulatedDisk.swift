import SegmentedDownload
package import SegmentedDownloadCore

/// A disk in memory that records what is synced. At a power cut it keeps the synced state and a random part of the
/// rest.
///
/// What processes see and what survives a power cut are separate. Any subset of the unsynced writes to a file may
/// survive, each whole or torn. Names survive as a prefix of the directory operations, as journals keep them. A failed
/// sync drops pages for good although reads still show them, as on Linux.
package final class SimulatedDisk: @unchecked Sendable {
    /// An operation on a file that is not synced yet.
    package enum Operation {
        case write(offset: Int, bytes: [UInt8])
        case resize(Int)
        /// `nil` if the attribute is removed.
        case attribute(String, [UInt8]?)

        /// Whether another result would follow if the operations changed places.
        fileprivate func isOrdered(after other: Operation) -> Bool {
            switch (self, other) {
            case (.write(let first, let bytes), .write(let second, let others)):
                first < second + others.count && second < first + bytes.count
            case (.attribute(let name, _), .attribute(let other, _)): name == other
            case (.attribute, _), (_, .attribute): false
            case (.resize, _), (_, .resize): true
            }
        }

        /// Whether a sync of the data alone leaves it as it is (`fdatasync(2)`).
        fileprivate var isMetadata: Bool {
            switch self {
            case .attribute: true
            case .write, .resize: false
            }
        }
    }

    /// The user that the program runs as.
    package static let user: UInt32 = 1000

    package final class Inode {
        package let number: UInt64
        package var bytes: [UInt8] = []
        package var attributes: [String: [UInt8]] = [:]
        package var modified: Int64
        /// The time of the last change of content, attributes, permissions or name, which no program can set.
        package var changed: Int64
        package var linkCount: UInt64 = 1
        /// The owner and the permissions.
        package var ownership = Ownership(owner: SimulatedDisk.user, permissions: 0o644)
        /// The open file that holds the lock, and its process.
        var lockHolder: (open: Int, epoch: Int)?
        // What surely survives a power cut, and what may survive.
        package var durable: [UInt8] = []
        var durableAttributes: [String: [UInt8]] = [:]
        package var pending: [(ordinal: Int, operation: Operation, epoch: Int)] = []

        init(number: UInt64, modified: Int64) {
            self.number = number
            self.modified = modified
            self.changed = modified
        }

        /// The pending operations of a process, and those before them that they may not overtake.
        fileprivate func ordinals(writtenBy epoch: Int) -> Set<Int> {
            var covered: [(ordinal: Int, operation: Operation)] = []
            for (ordinal, operation, writer) in self.pending.reversed()
            where writer == epoch || covered.contains(where: { $0.operation.isOrdered(after: operation) }) {
                covered.append((ordinal, operation))
            }
            return Set(covered.map(\.ordinal))
        }
    }

    package enum NameOperation {
        case link(String, Inode)
        case unlink(String)
        case rename(String, String)
    }

    package private(set) var names: [String: Inode] = [:]
    /// The directories and their inode numbers, without the working directory.
    var directories: [String: UInt64] = [:]
    /// The inode numbers of the directories that are accessible to their owner only.
    var privateDirectories: Set<UInt64> = []
    /// The names that survive a power cut.
    package private(set) var durableNames: [String: Inode] = [:]
    private var pendingNames: [NameOperation] = []
    package private(set) var epoch = 0
    /// The processes that end alone, by the epoch of their storage: negative numbers.
    private var processes: Set<Int> = []
    private var processNext = -1
    /// Whether these processes run on machines of their own: each syncs only what it has written itself, and what that was
    /// written over, although it reads what the others have written.
    package var hasSeparateMachines = false
    private var boot = 0
    private var inodeNext: UInt64 = 10
    private var ordinalNext = 0
    private var openNext = 0
    package var generator: SplitMix64
    let clock: SimulatedClock
    package var faults: Faults = []
    /// Failing calls per thousand.
    package var faultiness = 0
    /// The number of calls that have failed so far.
    package private(set) var failures = 0
    /// Bytes that all files together may occupy.
    package var capacity = Int.max
    /// Whether files without a name are supported (`O_TMPFILE`).
    package var hasUnnamedFiles = true
    /// Whether files have extended attributes.
    package var hasAttributes = true
    /// Called when a file becomes durable, and when a file gets its final name.
    package var onSync: (Inode) -> Void = { _ in }
    package var onName: (String, Inode) -> Void = { _, _ in }
    /// A digest of every operation so far: two runs with the same digest are the same.
    package private(set) var trace: UInt64 = 0xCBF2_9CE4_8422_2325
    package private(set) var operations = 0
    /// The number of changes so far of what a power cut may leave.
    private(set) var changes = 0
    /// Called before each operation, to crash a run at a chosen one.
    package var onOperation: (Int) -> Void = { _ in }

    /// 31 years in nanoseconds: longer than a simulation lasts.
    private static let ageOfSettled: Int64 = 1_000_000_000_000_000_000

    package init(seed: UInt64, clock: SimulatedClock) {
        self.generator = SplitMix64(seed: seed)
        self.clock = clock
    }

    package var bootID: String { "boot-\(self.boot)" }

    /// The storage of one process; it fails after that process has ended.
    package func storage() -> SimulatedStorage { SimulatedStorage(disk: self, epoch: self.epoch) }

    /// The storage of one of several processes, which ``kill(_:)`` ends alone.
    package func process() -> SimulatedStorage {
        defer { self.processNext -= 1 }
        self.processes.insert(self.processNext)
        return SimulatedStorage(disk: self, epoch: self.processNext)
    }

    /// Whether the process with this epoch has not ended.
    func isRunning(_ epoch: Int) -> Bool { epoch == self.epoch || self.processes.contains(epoch) }

    // MARK: Images

    /// The disk as a power cut now would find it.
    func image() -> DiskImage {
        var inodes = self.names.values.reduce(into: [UInt64: Inode]()) { $0[$1.number] = $1 }
        for inode in self.durableNames.values { inodes[inode.number] = inode }
        for case .link(_, let inode) in self.pendingNames { inodes[inode.number] = inode }
        let files = inodes.values.sorted { $0.number < $1.number }.map { inode in
            DiskImage.File(
                number: inode.number, bytes: inode.durable, attributes: inode.durableAttributes,
                pending: inode.pending.map(\.operation), modified: inode.modified, changed: inode.changed)
        }
        let names = self.durableNames.sorted { $0.key < $1.key }.map { ($0.key, $0.value.number) }
        let pendingNames = self.pendingNames.map { operation -> DiskImage.NameOperation in
            switch operation {
            case .link(let name, let inode): .link(name, inode.number)
            case .unlink(let name): .unlink(name)
            case .rename(let name, let target): .rename(name, target)
            }
        }
        return DiskImage(
            files: files, names: names, pendingNames: pendingNames, directories: self.directories.keys.sorted(),
            boot: self.boot)
    }

    /// A disk as a restarted machine finds it: all of it durable.
    ///
    /// - Parameter keepsTimes: Whether the files have the times that they had. Otherwise all are older than
    ///   anything on this disk.
    convenience init(
        _ settled: DiskImage.Settled, seed: UInt64, clock: SimulatedClock, keepsTimes: Bool = false
    ) {
        self.init(seed: seed, clock: clock)
        self.boot = settled.boot
        self.inodeNext = 1000
        for (name, file) in settled.files {
            // Before all that happens on this disk, whose clock begins anew.
            let inode = Inode(
                number: file.number, modified: file.modified - (keepsTimes ? 0 : Self.ageOfSettled))
            inode.changed = file.changed - (keepsTimes ? 0 : Self.ageOfSettled)
            (inode.bytes, inode.durable) = (file.bytes, file.bytes)
            (inode.attributes, inode.durableAttributes) = (file.attributes, file.attributes)
            self.names[name] = inode
            self.durableNames[name] = inode
        }
        for path in settled.directories { self.makeDirectory(path, isPrivate: false) }
        self.restoreDirectories()
    }

    // MARK: Operations

    /// Notes an operation, and decides whether it fails.
    func begin(_ call: String, _ path: String, epoch: Int) throws(StorageError) {
        if self.isRunning(epoch) {
            self.operations += 1
            self.mix(call)
            self.mix(path)
            self.onOperation(self.operations)
        }
        guard self.isRunning(epoch) else { throw SystemError.processGone.of(call, path) }
        guard self.faults.contains(.diskErrors), self.faultiness > 0 else { return }
        if Int.random(in: 0..<1000, using: &self.generator) < self.faultiness {
            self.failures += 1
            throw SystemError.inputOutput.of(call, path)
        }
    }

    private func mix(_ text: String) {
        for byte in text.utf8 { self.trace = (self.trace ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }

    func mix(_ number: Int) {
        self.trace = (self.trace ^ UInt64(bitPattern: Int64(number))) &* 0x100_0000_01B3
    }

    func nextOpen() -> Int {
        self.openNext += 1
        return self.openNext
    }

    /// Whether times are whole seconds, as on some file systems.
    package var hasWholeSeconds = false

    /// The time stamp of a change now; no two are equal, unless times are whole seconds.
    func stamp() -> Int64 {
        self.ordinalNext += 1
        return Int64(self.clock.now.components.seconds) * 1_000_000_000
            + (self.hasWholeSeconds ? 0 : Int64(self.ordinalNext))
    }

    func create(_ path: String, permissions: UInt32) -> Inode {
        let inode = Inode(number: self.inodeNext, modified: self.stamp())
        self.inodeNext += 1
        inode.ownership = Ownership(owner: Self.user, permissions: permissions)
        self.apply(.link(path, inode))
        return inode
    }

    /// Creates a file without a name. It is gone at the end of the process.
    func createUnnamed(permissions: UInt32) -> Inode {
        let inode = Inode(number: self.inodeNext, modified: self.stamp())
        self.inodeNext += 1
        inode.ownership = Ownership(owner: Self.user, permissions: permissions)
        inode.linkCount = 0
        return inode
    }

    /// Creates a file that another process made and synced.
    func plant(_ name: String, _ bytes: [UInt8], ownership: Ownership) -> Inode {
        let inode = Inode(number: self.inodeNext, modified: self.stamp())
        self.inodeNext += 1
        (inode.bytes, inode.durable, inode.ownership) = (bytes, bytes, ownership)
        self.names[name] = inode
        self.durableNames[name] = inode
        return inode
    }

    /// Deletes a file durably, as another process does.
    func unplant(_ name: String) {
        self.names[name] = nil
        self.durableNames[name] = nil
    }

    func apply(_ operation: NameOperation) {
        self.changes += 1
        self.pendingNames.append(operation)
        switch operation {
        case .link(_, let inode): inode.changed = self.stamp()
        case .rename(let name, let target): for path in [name, target] { self.names[path]?.changed = self.stamp() }
        case .unlink(let name): self.names[name]?.changed = self.stamp()
        }
        Self.apply(operation, to: &self.names, counts: true)
        switch operation {
        case .link(let name, let inode): self.onName(name, inode)
        case .rename(_, let name): if let inode = self.names[name] { self.onName(name, inode) }
        case .unlink: break
        }
    }

    private static func apply(_ operation: NameOperation, to names: inout [String: Inode], counts: Bool) {
        switch operation {
        case .link(let name, let inode): names[name] = inode
        case .unlink(let name):
            if counts { names[name]?.linkCount = 0 }
            names[name] = nil
        case .rename(let name, let target):
            if counts, names[target] !== names[name] { names[target]?.linkCount = 0 }
            names[target] = names[name]
            names[name] = nil
        }
    }

    func apply(_ operation: Operation, to inode: Inode, epoch: Int) {
        self.changes += 1
        self.ordinalNext += 1
        inode.pending.append((self.ordinalNext, operation, epoch))
        Self.apply(operation, to: &inode.bytes, &inode.attributes)
        inode.modified = self.stamp()
        inode.changed = inode.modified
        self.mix(inode.bytes.count)
    }

    package static func apply(
        _ operation: Operation, to bytes: inout [UInt8], _ attributes: inout [String: [UInt8]]
    ) {
        switch operation {
        case .write(let offset, let new):
            if bytes.count < offset + new.count {
                bytes.append(contentsOf: [UInt8](repeating: 0, count: offset + new.count - bytes.count))
            }
            bytes.withUnsafeMutableBytes { target in
                new.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: target[offset...]).copyMemory(from: $0) }
            }
        case .resize(let length):
            if length < bytes.count {
                bytes.removeLast(bytes.count - length)
            } else {
                bytes.append(contentsOf: [UInt8](repeating: 0, count: length - bytes.count))
            }
        case .attribute(let name, let value): attributes[name] = value
        }
    }

    func full(_ call: String, _ path: String) -> StorageError {
        self.failures += 1
        return SystemError.noSpace.of(call, path)
    }

    var used: Int { self.names.values.reduce(0) { $0 + $1.bytes.count } }

    // MARK: Syncs

    /// Syncs all operations before the call; operations during the sync may or may not be included.
    ///
    /// - Parameter metadata: Whether attributes are synced too, or only bytes and length.
    func synchronize(_ inode: Inode, metadata: Bool, epoch: Int) async throws(StorageError) {
        let ordinal = self.ordinalNext
        await self.clock.wait(until: self.clock.now + self.syncTime())
        guard self.isRunning(epoch) else { throw SystemError.processGone.of("fsync", "") }
        if self.faults.contains(.diskErrors), Int.random(in: 0..<1000, using: &self.generator) < self.faultiness {
            self.failures += 1
            // The kernel marks these pages clean: reads show them, and they are never written.
            inode.pending.removeAll { $0.ordinal <= ordinal && Bool.random(using: &self.generator) }
            throw SystemError.inputOutput.of("fsync", "")
        }
        let covered = self.hasSeparateMachines ? inode.ordinals(writtenBy: epoch) : nil
        let isCovered = { (pending: (ordinal: Int, operation: Operation, epoch: Int)) in
            pending.ordinal <= ordinal && (metadata || !pending.operation.isMetadata)
                && covered?.contains(pending.ordinal) ?? true
        }
        self.changes += 1
        for pending in inode.pending where isCovered(pending) {
            Self.apply(pending.operation, to: &inode.durable, &inode.durableAttributes)
        }
        inode.pending.removeAll(where: isCovered)
        self.onSync(inode)
    }

    func synchronizeNames(epoch: Int) async throws(StorageError) {
        let count = self.pendingNames.count
        await self.clock.wait(until: self.clock.now + self.syncTime())
        guard self.isRunning(epoch) else { throw SystemError.processGone.of("fsync", "") }
        let done = min(count, self.pendingNames.count)
        self.changes += 1
        for operation in self.pendingNames[..<done] {
            Self.apply(operation, to: &self.durableNames, counts: false)
        }
        self.pendingNames.removeFirst(done)
    }

    private func syncTime() -> Duration {
        let scale = self.faults.contains(.slowDisk) ? 4000 : 20
        return .milliseconds(Int.random(in: 0...scale, using: &self.generator))
    }

    // MARK: Ends of processes

    /// Ends all processes; their writes stay in the page cache.
    package func killProcess() {
        self.epoch += 1
        self.processes = []
        for inode in self.names.values { inode.lockHolder = nil }
    }

    /// Ends one of several processes; its writes stay in the page cache.
    package func kill(_ process: SimulatedStorage) {
        self.processes.remove(process.epoch)
        for inode in self.names.values where inode.lockHolder?.epoch == process.epoch { inode.lockHolder = nil }
    }

    /// Cuts the power: what was synced survives, and a random part of the rest.
    package func cutPower() {
        self.epoch += 1
        self.processes = []
        self.boot += 1
        let kept = Int.random(in: 0...self.pendingNames.count, using: &self.generator)
        for operation in self.pendingNames[..<kept] {
            Self.apply(operation, to: &self.durableNames, counts: false)
        }
        self.pendingNames = []
        self.names = self.durableNames
        self.restoreDirectories()
        // Sorted by number: the order of a dictionary differs from process to process.
        for inode in self.names.values.sorted(by: { $0.number < $1.number }) { self.settle(inode) }
    }

    private func settle(_ inode: Inode) {
        // Half of the cuts lose only a few operations: their results look most like a whole file.
        let lossiness = Bool.random(using: &self.generator) ? 2 : 10
        for (_, operation, _) in inode.pending {
            switch Int.random(in: 0..<lossiness, using: &self.generator) {
            case 0: self.lose(operation, of: inode)
            default: Self.apply(operation, to: &inode.durable, &inode.durableAttributes)
            }
        }
        inode.pending = []
        inode.bytes = inode.durable
        inode.attributes = inode.durableAttributes
        inode.modified = self.stamp()
        inode.changed = inode.modified
        inode.linkCount = 1
        inode.lockHolder = nil
    }

    /// Loses an operation, or keeps a part of it: torn at a sector, or its length without its data.
    private func lose(_ operation: Operation, of inode: Inode) {
        guard case .write(let offset, let bytes) = operation else { return }
        switch Int.random(in: 0..<4, using: &self.generator) {
        case 0:
            let sector = [1, 512, 4096].randomElement(using: &self.generator) ?? 1
            let count = Int.random(in: 0...(bytes.count / sector), using: &self.generator) * sector
            Self.apply(
                .write(offset: offset, bytes: Array(bytes[..<count])), to: &inode.durable, &inode.durableAttributes)
        case 1:
            if inode.durable.count < offset + bytes.count {
                Self.apply(.resize(offset + bytes.count), to: &inode.durable, &inode.durableAttributes)
            }
        default: break
        }
    }
}
