import SegmentedDownloadCore

/// The content of a manifest: what is claimed and how much of it is durable. Changes are appended to the open manifest,
/// if there is one.
///
/// It has no lock: ``PartialFile`` has one thread at a time change it, and write its records in order.
struct ManifestLog: Sendable {
    var header: Manifest.Header
    /// All claims in the order they were recorded.
    private(set) var claims: [Claim]
    /// The number of claims that were synced before a checkpoint was recorded.
    private(set) var durableCount: Int
    /// The digest states that were last recorded.
    private(set) var digestStates: [DigestState]
    /// The digests that responses stated for bodies that were not read to their end, and whose bytes were not withdrawn.
    private(set) var contents: [StatedDigest]
    /// How many statements were added.
    private(set) var statementCount = 0
    /// The open manifest; `nil` until it exists.
    private(set) var file: (any StorageFile)?
    private var sequence: UInt32 = 0
    private var offset: Int64 = 0
    /// Incremented when claims are withdrawn. A claim count from an earlier generation is invalid.
    private(set) var generation = 0
    /// Whether a sync failed. Earlier writes may not reach the disk then, so nothing more is claimed.
    private var syncHasFailed = false
    /// Whether another program was seen to change the part. The next run then reads every claim back.
    private var isDistrusted = false
    /// Whether the complete file had the wrong digest.
    private(set) var isRejected: Bool
    /// Whether there is a manifest. A stream of unknown length cannot be resumed and an empty file need not be, so they
    /// have none; nor has a part that has become the destination.
    private(set) var isRecorded = true

    init(
        header: Manifest.Header, claims: [Claim], durableCount: Int = 0, digestStates: [DigestState] = [],
        contents: [StatedDigest] = [], isRejected: Bool = false
    ) {
        self.header = header
        self.claims = claims
        self.durableCount = durableCount
        self.digestStates = digestStates
        self.contents = contents
        self.isRejected = isRejected
    }

    /// The number of bytes claimed so far.
    var claimedLength: Int64 { self.claims.reduce(0) { $0 + $1.length } }

    /// The number of bytes claimed and durable.
    var durableLength: Int64 { self.claims[..<self.durableCount].reduce(0) { $0 + $1.length } }

    // MARK: Beginning

    /// Closes the manifest, and drops all that is known of the part but its header.
    ///
    /// - Parameter isRecorded: Whether there will be a manifest.
    mutating func clear(isRecorded: Bool) {
        self.file?.close()
        self.file = nil
        self.claims = []
        self.durableCount = 0
        self.syncHasFailed = false
        self.isDistrusted = false
        self.isRejected = false
        self.isRecorded = isRecorded
        self.digestStates = []
        self.contents = []
    }

    /// Replaces the marks of claims that are numbers of an earlier run's sources.
    mutating func retireMarks() {
        self.claims.retireMarks()
    }

    // MARK: Stating

    /// Records digests that a response stated for all bytes, or for those of its body, before these are claimed.
    mutating func state(_ statements: [StatedDigest]) throws(StorageError) {
        for stated in statements {
            let isKnown =
                stated.range == nil
                ? self.header.resource.digests.contains(stated.digest) : self.contents.contains(stated)
            guard !isKnown else { continue }
            // The manifest first: what is known here is not recorded again.
            for piece in stated.pieces { try self.append(.stated(piece)) }
            if stated.range == nil {
                self.header.resource.state([stated.digest])
            } else {
                self.contents.append(stated)
            }
            self.statementCount += 1
        }
    }

    // MARK: Claiming

    /// Records a claim.
    ///
    /// - Returns: Whether it counts. After a failed sync nothing does.
    mutating func claim(_ claim: Claim) throws(StorageError) -> Bool {
        guard !self.syncHasFailed else { return false }
        // The manifest first: a checkpoint counts the manifest's claims, so a claim that could not be written must not
        // be counted.
        try self.append(.claim(claim))
        self.claims.append(claim)
        return true
    }

    /// Records that the first `count` claims are durable.
    ///
    /// - Parameters:
    ///   - states: The digest states of now, recorded if they have changed; `nil` if no digests are computed.
    ///   - part: The part, if nothing is written after this. Its modification time is recorded, unless it is
    ///     distrusted.
    mutating func checkpoint(
        _ count: Int, states: [DigestState]?, pausing part: (any StorageFile)?
    ) throws(StorageError) {
        self.durableCount = max(self.durableCount, count)
        if let states, states != self.digestStates {
            self.digestStates = states
            for piece in states.flatMap(\.pieces) { try self.append(.digest(piece)) }
        }
        if let part, !self.isDistrusted {
            let modified = try part.status().modified
            try self.append(.pause(claims: Int64(count), modified: modified))
        } else {
            try self.append(.checkpoint(claims: Int64(count)))
        }
    }

    // MARK: Withdrawing

    /// Withdraws the claims that extend beyond an offset, and records that.
    mutating func forget(from offset: Int64) throws(StorageError) {
        self.durableCount = self.claims.forget(from: offset, durableCount: self.durableCount)
        self.generation += 1
        self.withdrawDigests(of: [offset..<Int64.max])
        try self.append(.forget(from: offset))
    }

    /// Withdraws the claims that extend beyond an offset, before the manifest is written.
    mutating func keep(upTo limit: Int64) {
        self.durableCount = self.claims.forget(from: limit, durableCount: self.durableCount)
        self.withdrawDigests(of: [limit..<Int64.max])
    }

    /// Withdraws the claims to ranges of bytes. The manifest must be written again.
    ///
    /// - Parameters:
    ///   - marksRest: Whether the unmarked claims that remain get a mark.
    ///   - keepsStatements: Whether what was stated about the bytes holds for those that replace them, because they are of the
    ///     same version. A survey drops what was stated about bytes of which none is left.
    mutating func withdraw(_ ranges: [Range<Int64>], marksRest: Bool, keepsStatements: Bool = false) {
        self.durableCount = self.claims.withdraw(ranges, durableCount: self.durableCount)
        self.generation += 1
        self.withdrawDigests(of: ranges, keepsStatements: keepsStatements)
        if marksRest { self.claims.markUnmarked() }
    }

    /// Withdraws the claims that are not durable. Nothing is claimed any more.
    mutating func failSync() {
        self.claims.removeSubrange(self.durableCount...)
        self.digestStates = []
        self.generation += 1
        self.syncHasFailed = true
        // If the manifest cannot be written either, nothing more can be done.
        if self.file != nil { try? self.append(.syncFailed) }
    }

    /// Removes the digest states that were computed over ranges of bytes, and what was stated about these: they are fetched
    /// again, and the next response states its own digest.
    private mutating func withdrawDigests(of ranges: [Range<Int64>], keepsStatements: Bool = false) {
        self.digestStates.removeAll { state in ranges.contains { $0.lowerBound < state.offset } }
        guard !keepsStatements else { return }
        self.contents.removeAll { stated in
            ranges.contains { stated.range.map($0.overlaps) ?? false }
        }
    }

    // MARK: At the end

    /// Records that the complete file had the wrong digest.
    mutating func reject() throws(StorageError) {
        self.isRejected = true
        try self.append(.rejected)
    }

    /// Has the next run read every claim back.
    mutating func distrust() {
        self.isDistrusted = true
    }

    /// Has no manifest be created any more. One that exists is continued.
    mutating func endRecording() {
        self.isRecorded = self.isRecorded && self.file != nil
    }

    // MARK: The manifest's file

    /// Continues in a manifest that was written from a draft.
    ///
    /// - Returns: Whether the draft is still valid. If claims were withdrawn or statements added since it was made, nothing
    ///   changes.
    mutating func move(to file: any StorageFile, from draft: ManifestDraft) throws(StorageError) -> Bool {
        guard self.generation == draft.generation, self.statementCount == draft.statementCount else { return false }
        self.file?.close()
        self.file = file
        self.sequence = UInt32(truncatingIfNeeded: draft.recordCount)
        self.offset = Int64(draft.bytes.count)
        self.durableCount = draft.durableCount
        // Claims that were added while the manifest was being written.
        do throws(StorageError) {
            for claim in self.claims[draft.claimCount...] {
                try self.append(.claim(claim))
            }
        } catch {
            // Claims are missing from this manifest; the next checkpoint writes it again.
            self.file = nil
            file.close()
            throw error
        }
        return true
    }

    private mutating func append(_ record: Manifest.Record) throws(StorageError) {
        guard let file = self.file else { return }
        let bytes = ManifestCodec.encode(record, sequence: self.sequence, of: self.header.id)
        try file.writeFully(bytes, at: self.offset)
        self.sequence &+= 1
        self.offset += Int64(bytes.count)
    }
}
