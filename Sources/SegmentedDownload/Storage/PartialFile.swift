package import SegmentedDownloadCore
import Synchronization

/// The part file of one download and the manifest that says what of it is written.
///
/// The order of its steps is what keeps a crash from costing more than progress: bytes are claimed after they were written,
/// and a claim is called durable only in a record written after the data was synced. Everything here may be called from
/// any number of tasks; one process at a time holds the part's lock.
package final class PartialFile: Sendable {
    /// What the manifest log holds, in memory and on disk.
    private struct Journal {
        var header: Manifest.Header
        /// Every claim in the order recorded.
        var claims: [Claim]
        /// How many of them were synced before that was recorded.
        var durableCount: Int
        /// Absent until the manifest exists.
        var file: (any StorageFile)?
        var sequence: UInt32 = 0
        var offset: Int64 = 0
        /// How often claims were withdrawn: what was counted before then holds no more.
        var generation = 0
        /// Whether a sync failed: nothing written before it can be trusted to reach the disk, so nothing more is claimed.
        var syncHasFailed = false
        /// Whether others were seen to have changed the part: then the next run reads everything back.
        var isDistrusted = false
        /// Whether the whole had another digest than it should.
        var isRejected: Bool
        /// A stream without a known length cannot be resumed, an empty file need not be: they keep no manifest. Nor does what is the
        /// destination by now.
        var isRecorded: Bool
        /// When bytes and claims are made durable.
        var syncPolicy = SyncPolicy.checkpoint
        /// Who reads the bytes in their order, if somebody does.
        var reader: InOrderReader?
        /// How far digests had come when that was last recorded.
        var digestStates: [DigestState]

        /// These bytes are not believed any more, nor what was computed over them.
        mutating func withdrawDigests(of ranges: [Range<Int64>]) {
            self.reader?.withdraw(ranges)
            self.digestStates.removeAll { state in ranges.contains { $0.lowerBound < state.offset } }
        }
    }

    /// A manifest is written at once for files longer than this, in bytes; shorter ones get it with their first checkpoint.
    /// Below it, a crash costs less than a directory sync.
    package static let immediateManifestLength: Int64 = 8 << 20

    package let paths: DestinationPaths
    let file: any StorageFile
    private let storage: any Storage
    private let journal: Mutex<Journal>

    package init(
        paths: DestinationPaths, file: any StorageFile, storage: any Storage, header: Manifest.Header, claims: [Claim],
        durableCount: Int = 0, digestStates: [DigestState] = [], isRejected: Bool = false
    ) {
        self.paths = paths
        self.file = file
        self.storage = storage
        self.journal = Mutex(
            Journal(
                header: header, claims: claims, durableCount: durableCount, isRejected: isRejected, isRecorded: true,
                digestStates: digestStates))
    }

    package func close() {
        let reader = self.journal.withLock { journal in
            journal.file?.close()
            return journal.reader
        }
        reader?.close()
        self.file.close()
    }

    /// How far digests had come over what is claimed, when that was last recorded.
    var digestStates: [DigestState] { self.journal.withLock { $0.digestStates } }

    /// Who reads the bytes in their order, if somebody does.
    var reader: InOrderReader? { self.journal.withLock { $0.reader } }

    /// Has the bytes read in their order from now on.
    ///
    /// - Parameter make: gets the ranges that are claimed already, and how far digests had come over them.
    func read(with make: ([Range<Int64>], [DigestState]) -> InOrderReader?) {
        let before = self.journal.withLock { journal in
            defer { journal.reader = make(journal.claims.map(\.range).merged(), journal.digestStates) }
            return journal.reader
        }
        before?.close()
    }

    package var header: Manifest.Header { self.journal.withLock { $0.header } }

    /// Whether what came before was handed on, and a response proves itself by its tag to be of the same file: then there is nothing to
    /// compare with, and no need to.
    package func isSame(asProvedBy response: RangeResponse) -> Bool {
        guard !self.storage.keepsFiles, let resource = response.resource,
            case .same(.etag) = self.header.resource.verdict(on: resource)
        else { return false }
        return true
    }

    /// Bytes claimed so far.
    package var claimedLength: Int64 {
        self.journal.withLock { $0.claims.reduce(0) { $0 + $1.length } }
    }

    // MARK: Making ready

    var syncPolicy: SyncPolicy { self.journal.withLock { $0.syncPolicy } }

    /// Makes what is written durable when the caller wants it.
    func keep(_ policy: SyncPolicy) {
        self.journal.withLock { $0.syncPolicy = policy }
    }

    /// Keeps what the caller said; to be called before ``begin(_:id:sources:digests:allocates:)`` or
    /// ``adopt(id:resource:limit:sources:digests:)``, which write it.
    func describe(_ label: Manifest.Label) {
        self.journal.withLock { $0.header.label = label }
    }

    /// Begins anew in this part file: what it held is given up.
    ///
    /// - Parameter hasSetAside: whether another part was set aside for it. The manifest is then written at once, also for a short
    ///   file: a crash between the last steps leaves it, and by it the next run sees that there is something to delete.
    package func begin(
        _ resource: RemoteResource, id: UInt64, sources: [String], digests: [String], allocates: Bool,
        hasSetAside: Bool = false
    ) async throws(StorageError) {
        self.journal.withLock { journal in
            journal.file?.close()
            journal.file = nil
            journal.claims = []
            journal.durableCount = 0
            journal.syncHasFailed = false
            journal.isDistrusted = false
            journal.isRejected = false
            journal.isRecorded = resource.completeLength ?? 0 > 0 && self.storage.keepsFiles
            journal.digestStates = []
        }
        // The manifest goes first: bytes without claims are harmless, claims without bytes are not.
        // With a part beside it, a manifest is ours however damaged it is.
        if try self.storage.status(of: self.paths.manifest) != nil { try self.storage.remove(self.paths.manifest) }
        try self.storage.removeManifest(self.paths.manifestDraft)
        try self.file.truncate(to: 0)
        if let length = resource.completeLength, length > 0 {
            if !allocates {
                try self.file.truncate(to: length)
            } else if try !self.file.allocate(length) {
                try self.file.truncate(to: length)
            }
        }
        let status = try self.file.status()
        self.journal.withLock { journal in
            journal.header = Manifest.Header(
                id: id, resource: resource, completeLength: resource.completeLength ?? 0, device: status.device,
                inode: status.inode, bootID: self.storage.bootID, sources: sources, digests: digests,
                label: journal.header.label)
        }
        if let length = resource.completeLength, length > (hasSetAside ? 0 : Self.immediateManifestLength),
            self.storage.keepsFiles
        {
            try await self.writeManifest(durableCount: 0)
        }
    }

    /// Goes on with what the part file holds; of its claims only those before `limit` stay, if there is one.
    ///
    /// - Parameter keepsRecord: whether resource and sources stay as the manifest has them.
    package func adopt(
        id: UInt64, resource: RemoteResource, limit: Int64?, sources: [String], digests: [String],
        keepsRecord: Bool = false
    ) async throws(StorageError) {
        let length = self.header.completeLength
        if try self.file.status().length != length {
            try self.file.truncate(to: length)
        }
        let status = try self.file.status()
        let count = self.journal.withLock { journal in
            if let limit {
                journal.durableCount = journal.claims.forget(from: limit, durableCount: journal.durableCount)
                journal.withdrawDigests(of: [limit..<Int64.max])
            }
            journal.claims.retireMarks()
            journal.header = Manifest.Header(
                id: id, resource: keepsRecord ? journal.header.resource : resource, completeLength: length,
                device: status.device, inode: status.inode, bootID: self.storage.bootID,
                sources: keepsRecord ? journal.header.sources : sources,
                digests: keepsRecord ? journal.header.digests : digests, label: journal.header.label)
            return journal.claims.count
        }
        guard self.syncPolicy == .checkpoint else {
            return try await self.writeManifest(durableCount: self.journal.withLock { $0.durableCount })
        }
        // Some of these claims were read back from the page cache only. Where that fails the manifest stays as it is.
        try self.rewriteUnsynced()
        do throws(StorageError) {
            try await self.synchronize(metadata: false)
        } catch {
            // What is left of the claims was durable before.
            try? await self.writeManifest(durableCount: .max)
            throw error
        }
        try await self.writeManifest(durableCount: count)
    }

    /// Writes anew what is not known to be durable. An earlier sync may have failed with nobody left to record it: then the
    /// pages are taken for clean, though they never reached the disk, and only what is written again is synced again.
    private func rewriteUnsynced() throws(StorageError) {
        for claim in self.journal.withLock({ $0.claims[$0.durableCount...] }) {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(claim.length), alignment: 4096)
            defer { buffer.deallocate() }
            guard try self.file.readFully(into: buffer, at: claim.offset) == buffer.count else { continue }
            try self.file.writeFully(UnsafeRawBufferPointer(buffer), at: claim.offset)
        }
    }

    /// Withdraws the claims to these bytes, and records who defines the resource now.
    ///
    /// - Parameter remarks: whether what was claimed without a mark is of another source than that, of which only samples
    ///   were compared.
    func revise(
        withdrawing ranges: [Range<Int64>], record: (resource: RemoteResource, sources: [String], digests: [String])?,
        remarks: Bool
    ) async throws(StorageError) {
        let (isRecorded, durableCount) = self.journal.withLock { journal in
            journal.durableCount = journal.claims.withdraw(ranges, durableCount: journal.durableCount)
            journal.generation += 1
            journal.withdrawDigests(of: ranges)
            if remarks { journal.claims.markUnmarked() }
            if let record {
                journal.header.resource = record.resource
                journal.header.sources = record.sources
                journal.header.digests = record.digests
            }
            return (journal.file != nil, journal.durableCount)
        }
        // Without a manifest a crash leaves nothing that would have to be withdrawn.
        if isRecorded { try await self.writeManifest(durableCount: durableCount) }
    }

    /// Writes header and claims aside, syncs them, renames them into place and goes on appending there.
    private func writeManifest(durableCount: Int) async throws(StorageError) {
        while try await !self.tryWriteManifest(durableCount: durableCount) {
            // Claims were withdrawn meanwhile, which happens once in a download: what was written holds no more.
        }
    }

    private func tryWriteManifest(durableCount: Int) async throws(StorageError) -> Bool {
        let (header, claims, generation, states, isRejected) = self.journal.withLock {
            ($0.header, $0.claims, $0.generation, $0.digestStates, $0.isRejected)
        }
        let durableCount = min(durableCount, claims.count)
        let (bytes, records) = Self.encode(header, claims, states, durableCount: durableCount, isRejected: isRejected)
        try self.storage.removeManifest(self.paths.manifestDraft)
        let draft = try self.storage.open(self.paths.manifestDraft, .createPrivate)
        try draft.writeFully(bytes, at: 0)
        // What replaces a record of durable bytes is as durable as that.
        let isSynced = self.syncPolicy == .checkpoint || durableCount > 0
        if isSynced { try await draft.synchronize(metadata: true) }
        try self.storage.rename(self.paths.manifestDraft, to: self.paths.manifest, replacing: true)
        if isSynced { try await self.storage.synchronize(directory: self.paths.directory) }
        return try self.withJournal { (journal) throws(StorageError) in
            guard journal.generation == generation else { return false }
            journal.file?.close()
            journal.file = draft
            journal.sequence = UInt32(truncatingIfNeeded: records)
            journal.offset = Int64(bytes.count)
            journal.durableCount = durableCount
            // Claims that came while the manifest was being written.
            do throws(StorageError) {
                for claim in journal.claims[claims.count...] {
                    try Self.append(.claim(claim), to: &journal)
                }
            } catch {
                // It lacks some of what is claimed: the next checkpoint writes it anew.
                journal.file = nil
                draft.close()
                throw error
            }
            return true
        }
    }

    /// A manifest's bytes, and how many records they are.
    private static func encode(
        _ header: Manifest.Header, _ claims: [Claim], _ states: [DigestState], durableCount: Int, isRejected: Bool
    ) -> (bytes: [UInt8], records: Int) {
        let records =
            (isRejected ? [.rejected] : []) + claims.map { Manifest.Record.claim($0) }
            + states.flatMap(\.pieces).map { .digest($0) }
            + [.checkpoint(claims: Int64(durableCount))]
        var bytes = ManifestCodec.encode(header)
        for (sequence, record) in records.enumerated() {
            bytes += ManifestCodec.encode(record, sequence: UInt32(truncatingIfNeeded: sequence), of: header.id)
        }
        return (bytes, records.count)
    }

    // MARK: While fetching

    /// 64 MiB: what a stream that may never end leaves of a disk to everybody else.
    static let reserveLength: Int64 = 64 << 20

    /// Fails once a file whose length nobody knows has filled the disk up to the reserve. For others space was reserved.
    func keepReserve() throws(StorageError) {
        guard !self.journal.withLock({ $0.isRecorded }),
            try self.storage.freeSpace(in: self.paths.directory) < Self.reserveLength
        else { return }
        throw StorageError(
            call: "write", path: self.paths.part, errno: 0, condition: .noSpace,
            text: "the server does not say how long the file is, and the last 64 MiB of a disk are left free")
    }

    /// Whether the bytes of a response may be kept back until its end: not where somebody waits for them who has no room for more.
    func mayHold(_ response: RangeResponse) -> Bool {
        guard let window = self.reader?.window, window.isStream else { return true }
        return response.bodyEnd.map { $0 - response.bodyStart <= window.length / 2 } ?? false
    }

    /// Writes all of the bytes at an offset.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) {
        try self.file.writeFully(bytes, at: offset)
        self.reader?.put(bytes, at: offset)
    }

    /// Records that bytes are written. They survive the process at once, a power cut after the next checkpoint.
    package func claim(_ claim: Claim) throws(StorageError) {
        try self.withJournal { (journal) throws(StorageError) in
            guard !journal.syncHasFailed else { return }
            // The manifest first: a checkpoint counts its records, and one that could not be written is none of them.
            try Self.append(.claim(claim), to: &journal)
            journal.claims.append(claim)
            journal.reader?.claim(claim.range)
        }
    }

    /// Withdraws the claims that reach behind an offset, before those bytes are written anew.
    package func forget(from offset: Int64) throws(StorageError) {
        try self.withJournal { (journal) throws(StorageError) in
            journal.durableCount = journal.claims.forget(from: offset, durableCount: journal.durableCount)
            journal.generation += 1
            journal.withdrawDigests(of: [offset..<Int64.max])
            try Self.append(.forget(from: offset), to: &journal)
        }
    }

    /// Syncs the part. After a failure the claims since the last good sync are withdrawn, for good: the system may have
    /// dropped those pages, and reading them back from its cache proves nothing ("Can applications recover from fsync
    /// failures?", ATC 2020).
    func synchronize(metadata: Bool) async throws(StorageError) {
        do throws(StorageError) {
            try await self.file.synchronize(metadata: metadata)
        } catch {
            self.journal.withLock { journal in
                journal.claims.removeSubrange(journal.durableCount...)
                journal.digestStates = []
                journal.generation += 1
                journal.syncHasFailed = true
                // Should the manifest be as lost as the data, there is nothing more to be done.
                if journal.file != nil { try? Self.append(.syncFailed, to: &journal) }
            }
            throw error
        }
    }

    /// Syncs what is claimed, then records it as durable. Returns the durable bytes.
    package func checkpoint(isPause: Bool) async throws(StorageError) -> Int64 {
        let (claimed, hasManifest, isRecorded, generation, states, policy, durable) = self.journal.withLock {
            // Of what is claimed by now, so that no state is recorded before the bytes that it is of.
            (
                $0.claims.count, $0.file != nil, $0.isRecorded, $0.generation, $0.reader?.states, $0.syncPolicy,
                $0.durableCount
            )
        }
        let isSynced = policy == .checkpoint || policy == .end && isPause
        let count = isSynced ? claimed : durable
        if isSynced { try await self.synchronize(metadata: false) }
        guard isRecorded else { return 0 }
        if !hasManifest {
            let isCurrent = self.journal.withLock { $0.generation == generation }
            try await self.writeManifest(durableCount: isCurrent ? count : 0)
        }
        let file: (any StorageFile)? = try self.withJournal { (journal) throws(StorageError) in
            guard journal.generation == generation else { return nil }
            journal.durableCount = max(journal.durableCount, count)
            if let states, states != journal.digestStates {
                journal.digestStates = states
                for piece in states.flatMap(\.pieces) { try Self.append(.digest(piece), to: &journal) }
            }
            if isPause, !journal.isDistrusted {
                let modified = try self.file.status().modified
                try Self.append(.pause(claims: Int64(count), modified: modified), to: &journal)
            } else {
                try Self.append(.checkpoint(claims: Int64(count)), to: &journal)
            }
            return journal.file
        }
        if isSynced { try await file?.synchronize(metadata: false) }
        // Under the other policy that was done when the names came to be.
        if isSynced, policy == .end { try await self.storage.synchronize(directory: self.paths.directory) }
        return self.journal.withLock { $0.claims[..<$0.durableCount].reduce(0) { $0 + $1.length } }
    }

    /// Records that the whole had another digest than it should: no later run believes it without a digest.
    func reject() throws(StorageError) {
        try self.withJournal { (journal) throws(StorageError) in
            journal.isRejected = true
            try Self.append(.rejected, to: &journal)
        }
    }

    /// Somebody else has changed the part: no claim is believed by the next run without being read back.
    func distrust() {
        self.journal.withLock { $0.isDistrusted = true }
    }

    // MARK: Permissions

    /// Takes the permission to write from all but the owner, whatever the umask: part and finished file are believed because only
    /// their owner can have written them.
    func protect() throws(StorageError) {
        let permissions = try self.file.status().ownership.permissions
        guard permissions & Ownership.foreignWrite != 0 else { return }
        do throws(StorageError) {
            try self.file.setPermissions(permissions & ~Ownership.foreignWrite)
        } catch  where error.condition != .readOnly {
            // On FAT and some network file systems the mount decides: the file can be fetched, and not resumed.
        }
    }

    // MARK: At the end

    /// The part has its destination's name: no manifest is begun beside it any more, whatever fails from here on.
    func markPlaced() {
        self.journal.withLock { $0.isRecorded = $0.isRecorded && $0.file != nil }
    }

    /// The claims in order, neighbours joined.
    package var settledClaims: [Claim] {
        self.journal.withLock { $0.claims }.settled().joined()
    }

    /// Removes the manifest this run wrote, if it is still the one in place, and a draft that never got there.
    func removeManifest() throws(StorageError) {
        if try self.storage.isManifest(self.paths.manifestDraft) == true {
            try self.storage.remove(self.paths.manifestDraft)
        }
        let own = try self.withJournal { (journal) throws(StorageError) in try journal.file?.status() }
        guard let own, try self.storage.status(of: self.paths.manifest)?.isSameFile(as: own) == true else { return }
        try self.storage.remove(self.paths.manifest)
    }

    /// Deletes part and manifest, and a manifest that was being drafted.
    package func discard() throws(StorageError) {
        try self.storage.removeManifests(self.paths)
        try self.storage.remove(self.paths.part)
        self.close()
    }

    // MARK: Appending

    private static func append(_ record: Manifest.Record, to journal: inout Journal) throws(StorageError) {
        guard let file = journal.file else { return }
        let bytes = ManifestCodec.encode(record, sequence: journal.sequence, of: journal.header.id)
        try file.writeFully(bytes, at: journal.offset)
        journal.sequence &+= 1
        journal.offset += Int64(bytes.count)
    }

    private func withJournal<Answer: Sendable>(
        _ body: (inout Journal) throws(StorageError) -> sending Answer
    ) throws(StorageError) -> Answer {
        let result: Result<Answer, StorageError> = self.journal.withLock { journal in
            do throws(StorageError) {
                return .success(try body(&journal))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
