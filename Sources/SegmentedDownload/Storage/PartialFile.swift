package import SegmentedDownloadCore
import Synchronization

/// The part file of a download, together with its manifest.
///
/// The order of the steps ensures that a crash costs only progress: bytes are claimed after they were written, and
/// claims are recorded as durable after the data was synced. All methods may be called from any task. One process at a
/// time holds the part's lock.
///
/// What the engine's loop asks for is never behind a system call: ``header``, ``claimedLength``, ``durableLength`` and
/// ``reader`` are those after the last change of the log that was written.
package final class PartialFile: Sendable {
    struct State {
        // What the log had after its last change.
        fileprivate(set) var header: Manifest.Header
        fileprivate(set) var claimedLength: Int64
        fileprivate(set) var durableLength: Int64
        /// When bytes and claims are made durable.
        var syncPolicy = SyncPolicy.checkpoint
        /// The reader that takes the bytes in order; `nil` if there is none.
        var reader: InOrderReader?
        /// Whether the part was renamed to the destination.
        var isPlaced = false
        /// Whether a part that began in memory got a file with its name.
        var isStored = false
    }

    package let paths: DestinationPaths
    let file: any StorageFile
    let storage: any Storage
    /// The log, locked by the one thread at a time that changes it and writes its records.
    ///
    /// It stays locked while a record, or what it claims, is written: if that fails, the next record takes its place. Only threads that
    /// wait for the disk anyway lock it, and the thread of the connections while the part is in memory. They lock
    /// `state` within.
    let log: Mutex<ManifestLog>
    /// Never locked during a system call.
    let state: Mutex<State>
    /// What a part needs that begins in memory; `nil` for one that begins on disk.
    let inMemory: InMemory?
    /// The reading of an earlier run's bytes; `nil` if there are none that the survey has not read.
    let readBack: ReadBack?

    /// - Parameter unread: The claims of an earlier run whose bytes were not read back.
    package init(
        paths: DestinationPaths, file: any StorageFile, storage: any Storage, header: Manifest.Header, claims: [Claim],
        durableCount: Int = 0, digestStates: [DigestState] = [], contents: [StatedDigest] = [],
        isRejected: Bool = false, unread: [Claim] = [], inMemory: InMemory? = nil
    ) {
        self.readBack = unread.isEmpty ? nil : ReadBack(unread, of: file)
        self.inMemory = inMemory
        self.paths = paths
        self.file = file
        self.storage = storage
        let log = ManifestLog(
            header: header, claims: claims, durableCount: durableCount, digestStates: digestStates,
            contents: contents, isRejected: isRejected)
        self.state = Mutex(
            State(header: header, claimedLength: log.claimedLength, durableLength: log.durableLength))
        self.log = Mutex(log)
    }

    /// Closes the manifest and the part, which releases its lock. Blocks the thread.
    package func close() {
        // A record that is being written comes first: afterwards its descriptor may be another file's.
        self.log.withLock { $0.file?.close() }
        self.reader?.close()
        self.readBack?.close()
        self.file.close()
    }

    package var header: Manifest.Header { self.state.withLock { $0.header } }

    /// The digest states that were last recorded.
    var digestStates: [DigestState] { self.log.withLock { $0.digestStates } }

    /// The number of bytes claimed so far.
    package var claimedLength: Int64 { self.state.withLock { $0.claimedLength } }

    /// The claims in order, with adjacent ones joined.
    package var settledClaims: [Claim] {
        self.log.withLock { $0.claims }.settled().joined()
    }

    /// The number of bytes that were durable at the last checkpoint.
    package var durableLength: Int64 { self.state.withLock { $0.durableLength } }

    var syncPolicy: SyncPolicy { self.state.withLock { $0.syncPolicy } }

    /// Sets when written bytes are made durable.
    func keep(_ policy: SyncPolicy) {
        self.state.withLock { $0.syncPolicy = policy }
    }

    /// What responses stated about their bodies that were not read to their end, and whose bytes were not withdrawn.
    var contentsStated: [StatedDigest] { self.log.withLock { $0.contents } }

    /// Adds what a response stated about all bytes, or about those of its body.
    func state(_ statements: [StatedDigest]) throws(StorageError) {
        try self.change { (log) throws(StorageError) in try log.state(statements) }
    }

    // MARK: While fetching

    /// Writes all of the bytes at an offset.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) {
        try self.file.writeFully(bytes, at: offset)
        self.reader?.put(bytes, at: offset)
    }

    /// Records that bytes were written. The claim survives a crash of the process at once, and a power failure after
    /// the next checkpoint.
    package func claim(_ claim: Claim) throws(StorageError) {
        let result: Result<Void, StorageError> = self.log.withLock { log in
            do throws(StorageError) {
                // While the log is locked: a part in memory may get its file, and that its manifest, at any time.
                try self.file.writeHeldBack(in: claim.range)
                guard try log.claim(claim) else { return .success(()) }
            } catch {
                return .failure(error)
            }
            let reader = self.state.withLock { state in
                // Added, not summed up: a long file has hundreds of thousands of claims.
                state.claimedLength += claim.length
                return state.reader
            }
            reader?.claim(claim.range)
            return .success(())
        }
        try result.get()
    }

    /// Withdraws the claims that extend beyond an offset, before those bytes are written again.
    package func forget(from offset: Int64) throws(StorageError) {
        try self.change { (log) throws(StorageError) in
            self.reader?.withdraw([offset..<Int64.max])
            try log.forget(from: offset)
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
            self.change { $0.failSync() }
            throw error
        }
    }

    /// Syncs the claimed bytes and records them as durable. A part that is in memory gets a file first.
    ///
    /// - Returns: The number of durable bytes.
    package func checkpoint(isPause: Bool) async throws(StorageError) -> Int64 {
        try self.store()
        let (claimed, hasManifest, isRecorded, generation, states, policy, durable) = self.log.withLock {
            // Read together with the number of claims, so that no digest state is recorded before the bytes it covers.
            (
                $0.claims.count, $0.file != nil, $0.isRecorded, $0.generation, self.reader?.states,
                self.syncPolicy, $0.durableCount
            )
        }
        let isSynced = policy == .checkpoint || policy == .end && isPause
        let count = isSynced ? claimed : durable
        if isSynced { try await self.synchronize(metadata: false) }
        guard isRecorded else { return 0 }
        if !hasManifest {
            let isCurrent = self.log.withLock { $0.generation == generation }
            try await self.writeManifest(durableCount: isCurrent ? count : 0)
        }
        let file: (any StorageFile)? = try self.change { (log) throws(StorageError) in
            guard log.generation == generation else { return nil }
            try log.checkpoint(count, states: states, pausing: isPause ? self.file : nil)
            return log.file
        }
        if isSynced { try await file?.synchronize(metadata: false) }
        // With policy `checkpoint` the directory was synced when the manifest was renamed into place.
        if isSynced, policy == .end { try await self.storage.synchronize(directory: self.paths.directory) }
        return self.durableLength
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
        let (isRecorded, durableCount) = self.change { log in
            self.reader?.withdraw(ranges)
            log.withdraw(ranges, marksRest: remarks)
            if let record {
                // A response may have stated more since the revision was made.
                let stated = log.header.resource.digests
                log.header.resource = record.resource
                log.header.resource.state(stated)
                log.header.sources = record.sources
                log.header.digests = record.digests
            }
            return (log.file != nil, log.durableCount)
        }
        // Without a manifest a crash leaves no claims that would have to be withdrawn.
        if isRecorded { try await self.writeManifest(durableCount: durableCount) }
    }

    /// Records that the complete file had the wrong digest. A later run then fetches it again unless it has a digest.
    func reject() throws(StorageError) {
        try self.change { (log) throws(StorageError) in try log.reject() }
    }

    /// Records that another program has changed the part. The next run reads every claim back.
    func distrust() {
        self.log.withLock { $0.distrust() }
    }

    // MARK: At the end

    /// Marks the part as renamed to the destination. No manifest is created after that, even if a later step fails.
    func markPlaced() {
        self.log.withLock { $0.endRecording() }
        self.state.withLock { $0.isPlaced = true }
    }

    /// Whether the part was renamed to the destination.
    var isPlaced: Bool { self.state.withLock { $0.isPlaced } }

    /// Deletes the part, its manifest and a draft of the manifest.
    package func discard() throws(StorageError) {
        guard self.ownsNames else { return self.close() }
        try self.storage.removeManifests(self.paths)
        try self.storage.remove(self.paths.part)
        self.close()
    }

    /// Closes the part of a name that is not used after all. An empty one without claims is deleted: a process that was
    /// creating it has taken another name, because this one locked it first.
    ///
    /// - Parameter removesEmpty: Whether the part is locked, so that no other process uses it.
    func leave(removesEmpty: Bool) throws(StorageError) {
        guard removesEmpty, self.claimedLength == 0, try self.file.status().length == 0,
            try !self.storage.hasManifest(self.paths)
        else { return self.close() }
        try self.discard()
    }

    /// Changes the log, and then what the engine's loop asks for.
    func change<Answer: Sendable, ChangeError: Error>(
        _ body: (inout ManifestLog) throws(ChangeError) -> Answer
    ) throws(ChangeError) -> Answer {
        let result: Result<Answer, ChangeError> = self.log.withLock { log in
            defer {
                let (header, claimed, durable) = (log.header, log.claimedLength, log.durableLength)
                self.state.withLock { state in
                    state.header = header
                    state.claimedLength = claimed
                    state.durableLength = durable
                }
            }
            do throws(ChangeError) {
                return .success(try body(&log))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
