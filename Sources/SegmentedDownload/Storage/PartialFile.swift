package import SegmentedDownloadCore
import Synchronization

/// The part file of a download, together with its manifest.
///
/// The order of the steps ensures that a crash costs only progress: bytes are claimed after they were written, and
/// claims are recorded as durable after the data was synced. All methods may be called from any task. One process at a
/// time holds the part's lock.
package final class PartialFile: Sendable {
    /// The content of the manifest's log.
    private struct Journal {
        var header: Manifest.Header
        /// All claims in the order they were recorded.
        var claims: [Claim]
        /// The number of claims that were synced before a checkpoint was recorded.
        var durableCount: Int
        /// The open manifest; `nil` until it exists.
        var file: (any StorageFile)?
        var sequence: UInt32 = 0
        var offset: Int64 = 0
        /// Incremented when claims are withdrawn. A claim count from an earlier generation is invalid.
        var generation = 0
        /// Whether a sync failed. Earlier writes may not reach the disk then, so nothing more is claimed.
        var syncHasFailed = false
        /// Whether another program was seen to change the part. The next run then reads every claim back.
        var isDistrusted = false
        /// Whether the complete file had the wrong digest.
        var isRejected: Bool
        /// Whether there is a manifest. A stream of unknown length cannot be resumed and an empty file need not be, so
        /// they have none; nor has a part that has become the destination.
        var isRecorded: Bool
        /// Whether the part was renamed to the destination.
        var isPlaced = false
        /// When bytes and claims are made durable.
        var syncPolicy = SyncPolicy.checkpoint
        /// The reader that takes the bytes in order; `nil` if there is none.
        var reader: InOrderReader?
        /// The digest states that were last recorded.
        var digestStates: [DigestState]

        /// Removes ranges from the reader, and the digest states that were computed over them.
        mutating func withdrawDigests(of ranges: [Range<Int64>]) {
            self.reader?.withdraw(ranges)
            self.digestStates.removeAll { state in ranges.contains { $0.lowerBound < state.offset } }
        }
    }

    /// 8 MiB: longer files get their manifest at once, others with their first checkpoint. For a shorter file a crash
    /// costs less than a directory sync.
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

    /// The digest states that were last recorded.
    var digestStates: [DigestState] { self.journal.withLock { $0.digestStates } }

    /// The reader that takes the bytes in order; `nil` if there is none.
    var reader: InOrderReader? { self.journal.withLock { $0.reader } }

    /// Replaces the reader.
    ///
    /// - Parameter make: Receives the claimed ranges and the digest states computed over them.
    func read(with make: ([Range<Int64>], [DigestState]) -> InOrderReader?) {
        let before = self.journal.withLock { journal in
            defer { journal.reader = make(journal.claims.map(\.range).merged(), journal.digestStates) }
            return journal.reader
        }
        before?.close()
    }

    package var header: Manifest.Header { self.journal.withLock { $0.header } }

    /// Whether the part is a stream whose earlier bytes were written to the output, and a response has the same strong
    /// entity tag. The overlap then cannot be compared and need not be.
    package func isSame(asProvedBy response: RangeResponse) -> Bool {
        guard !self.storage.keepsFiles, let resource = response.resource,
            case .same(.etag) = self.header.resource.verdict(on: resource)
        else { return false }
        return true
    }

    /// The number of bytes claimed so far.
    package var claimedLength: Int64 {
        self.journal.withLock { $0.claims.reduce(0) { $0 + $1.length } }
    }

    /// The number of bytes that were durable at the last checkpoint.
    package var durableLength: Int64 {
        self.journal.withLock { $0.claims[..<$0.durableCount].reduce(0) { $0 + $1.length } }
    }

    // MARK: Making ready

    var syncPolicy: SyncPolicy { self.journal.withLock { $0.syncPolicy } }

    /// Sets when written bytes are made durable.
    func keep(_ policy: SyncPolicy) {
        self.journal.withLock { $0.syncPolicy = policy }
    }

    /// Sets the label. It is written by the next call of ``begin(_:id:sources:digests:allocates:)`` or
    /// ``adopt(id:resource:limit:sources:digests:)``.
    func describe(_ label: Manifest.Label) {
        self.journal.withLock { $0.header.label = label }
    }

    /// Starts over in this part file and discards its content.
    ///
    /// - Parameter hasSetAside: Whether another part was set aside for this one. If so, the manifest is written at once
    ///   even for a short file, so that a run after a crash finds it and deletes the other part.
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
        // The manifest is removed first: bytes without claims are harmless, claims without bytes are not. A damaged
        // manifest beside a part is removed too.
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

    /// Resumes the part.
    ///
    /// - Parameters:
    ///   - limit: The offset from which claims are withdrawn; `nil` to keep all.
    ///   - keepsRecord: Whether the manifest keeps its resource, sources and digests.
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
        // Some of these claims were read back only from the page cache. If writing or syncing them fails, the manifest
        // stays as it is.
        try self.rewriteUnsynced()
        do throws(StorageError) {
            try await self.synchronize(metadata: false)
        } catch {
            // The remaining claims were durable before.
            try? await self.writeManifest(durableCount: .max)
            throw error
        }
        try await self.writeManifest(durableCount: count)
    }

    /// Writes the claims again that are not known to be durable.
    ///
    /// An earlier sync may have failed in a process that could not record it. The kernel then regards the pages as
    /// clean although they never reached the disk, and syncs them only if they are written again.
    private func rewriteUnsynced() throws(StorageError) {
        for claim in self.journal.withLock({ $0.claims[$0.durableCount...] }) {
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(claim.length), alignment: 4096)
            defer { buffer.deallocate() }
            guard try self.file.readFully(into: buffer, at: claim.offset) == buffer.count else { continue }
            try self.file.writeFully(UnsafeRawBufferPointer(buffer), at: claim.offset)
        }
    }

    /// Withdraws the claims to ranges of bytes, and records the resource and its reference source.
    ///
    /// - Parameters:
    ///   - ranges: The bytes to withdraw.
    ///   - record: The new resource, sources and digests; `nil` to keep those in the manifest.
    ///   - remarks: Whether unmarked claims get a mark, because they come from another source than the new reference.
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
        // Without a manifest a crash leaves no claims that would have to be withdrawn.
        if isRecorded { try await self.writeManifest(durableCount: durableCount) }
    }

    /// Writes header and claims to a draft, syncs it, renames it into place, and appends to it from then on.
    private func writeManifest(durableCount: Int) async throws(StorageError) {
        while try await !self.tryWriteManifest(durableCount: durableCount) {
            // Claims were withdrawn meanwhile, so the draft is obsolete. This is rare.
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
        // A manifest with durable claims is replaced only by one that is durable too.
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
            // Claims that were added while the manifest was being written.
            do throws(StorageError) {
                for claim in journal.claims[claims.count...] {
                    try Self.append(.claim(claim), to: &journal)
                }
            } catch {
                // Claims are missing from this manifest; the next checkpoint writes it again.
                journal.file = nil
                draft.close()
                throw error
            }
            return true
        }
    }

    /// The encoded manifest and its number of records.
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

    /// 64 MiB: a stream without a known end leaves this much of the disk free.
    static let reserveLength: Int64 = 64 << 20

    /// Throws if a file of unknown length has filled the disk up to the reserve. For other files space was reserved.
    func keepReserve() throws(StorageError) {
        guard !self.journal.withLock({ $0.isRecorded }),
            try self.storage.freeSpace(in: self.paths.directory) < Self.reserveLength
        else { return }
        throw StorageError(
            call: "write", path: self.paths.part, errno: 0, condition: .noSpace,
            text: "the server does not state the file's length, and 64 MiB of the disk are kept free")
    }

    /// Whether the claims of a response may be held back until its end. Not if the bytes go to a descriptor and exceed
    /// half of the window.
    func mayHold(_ response: RangeResponse) -> Bool {
        guard let window = self.reader?.window, window.isStream else { return true }
        return response.bodyEnd.map { $0 - response.bodyStart <= window.length / 2 } ?? false
    }

    /// Writes all of the bytes at an offset.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) {
        try self.file.writeFully(bytes, at: offset)
        self.reader?.put(bytes, at: offset)
    }

    /// Records that bytes were written. The claim survives a crash of the process at once, and a power failure after
    /// the next checkpoint.
    package func claim(_ claim: Claim) throws(StorageError) {
        try self.withJournal { (journal) throws(StorageError) in
            guard !journal.syncHasFailed else { return }
            // The manifest first: a checkpoint counts the manifest's claims, so a claim that could not be written must
            // not be counted.
            try Self.append(.claim(claim), to: &journal)
            journal.claims.append(claim)
            journal.reader?.claim(claim.range)
        }
    }

    /// Withdraws the claims that extend beyond an offset, before those bytes are written again.
    package func forget(from offset: Int64) throws(StorageError) {
        try self.withJournal { (journal) throws(StorageError) in
            journal.durableCount = journal.claims.forget(from: offset, durableCount: journal.durableCount)
            journal.generation += 1
            journal.withdrawDigests(of: [offset..<Int64.max])
            try Self.append(.forget(from: offset), to: &journal)
        }
    }

    /// Syncs the part. If that fails, the claims since the last successful sync are withdrawn and nothing more is
    /// claimed.
    ///
    /// The kernel may have dropped those pages, and reading them back from its cache proves nothing. Source: "Can
    /// applications recover from fsync failures?", USENIX ATC 2020.
    func synchronize(metadata: Bool) async throws(StorageError) {
        do throws(StorageError) {
            try await self.file.synchronize(metadata: metadata)
        } catch {
            self.journal.withLock { journal in
                journal.claims.removeSubrange(journal.durableCount...)
                journal.digestStates = []
                journal.generation += 1
                journal.syncHasFailed = true
                // If the manifest cannot be written either, nothing more can be done.
                if journal.file != nil { try? Self.append(.syncFailed, to: &journal) }
            }
            throw error
        }
    }

    /// Syncs the claimed bytes and records them as durable.
    ///
    /// - Returns: The number of durable bytes.
    package func checkpoint(isPause: Bool) async throws(StorageError) -> Int64 {
        let (claimed, hasManifest, isRecorded, generation, states, policy, durable) = self.journal.withLock {
            // Read together with the number of claims, so that no digest state is recorded before the bytes it covers.
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
        // With policy `checkpoint` the directory was synced when the manifest was renamed into place.
        if isSynced, policy == .end { try await self.storage.synchronize(directory: self.paths.directory) }
        return self.durableLength
    }

    /// Records that the complete file had the wrong digest. A later run then fetches it again unless it has a digest.
    func reject() throws(StorageError) {
        try self.withJournal { (journal) throws(StorageError) in
            journal.isRejected = true
            try Self.append(.rejected, to: &journal)
        }
    }

    /// Records that another program has changed the part. The next run reads every claim back.
    func distrust() {
        self.journal.withLock { $0.isDistrusted = true }
    }

    // MARK: Permissions

    /// Removes write permission for group and others. A part or finished file is trusted only if no other user can have
    /// written it.
    func protect() throws(StorageError) {
        let permissions = try self.file.status().ownership.permissions
        guard permissions & Ownership.foreignWrite != 0 else { return }
        do throws(StorageError) {
            try self.file.setPermissions(permissions & ~Ownership.foreignWrite)
        } catch  where error.condition != .readOnly {
            // On FAT and some network file systems permissions depend on the mount. The file can be fetched but not
            // resumed.
        }
    }

    // MARK: At the end

    /// Marks the part as renamed to the destination. No manifest is created after that, even if a later step fails.
    func markPlaced() {
        self.journal.withLock {
            $0.isRecorded = $0.isRecorded && $0.file != nil
            $0.isPlaced = true
        }
    }

    /// Whether the part was renamed to the destination.
    var isPlaced: Bool { self.journal.withLock { $0.isPlaced } }

    /// The claims in order, with adjacent ones joined.
    package var settledClaims: [Claim] {
        self.journal.withLock { $0.claims }.settled().joined()
    }

    /// Removes the manifest that this run wrote, if it is still in place, and a leftover draft.
    func removeManifest() throws(StorageError) {
        if try self.storage.isManifest(self.paths.manifestDraft) == true {
            try self.storage.remove(self.paths.manifestDraft)
        }
        let own = try self.withJournal { (journal) throws(StorageError) in try journal.file?.status() }
        guard let own, try self.storage.status(of: self.paths.manifest)?.isSameFile(as: own) == true else { return }
        try self.storage.remove(self.paths.manifest)
    }

    /// Deletes the part, its manifest and a draft of the manifest.
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
