package import SegmentedDownloadCore

/// Where a job looks for the file of an entry, and what is stated of the file outside the entry's text.
package struct EntryFile: Hashable, Sendable {
    /// The path that is likely before any response; nil for a stream.
    package let path: String?
    /// The length that a list states; nil if none does.
    let length: Int64?
    /// What selects the representation, and the digests of pieces.
    let statements: [UInt8]

    package init(path: String?, length: Int64? = nil, statements: [UInt8] = []) {
        (self.path, self.length, self.statements) = (path, length, statements)
    }

    package init(of request: DownloadRequest) {
        var statements = request.selection(salt: [])
        if let pieces = request.pieceDigests {
            var digest = RunningDigest(.sha256)
            for text in ["\(pieces.algorithm) \(pieces.length)"] + pieces.hexes {
                Array("\(text)\n".utf8).withUnsafeBytes { digest.update($0) }
            }
            statements += [0] + digest.bytes
        }
        self.init(path: request.likelyPath, length: request.lengthExpected, statements: statements)
    }

    /// What is recorded of an entry once its file is complete: the entry's share, so that the same task finds it, and 64 bits of a
    /// SHA-256 of the entry, of the file as it was then, and of what is stated.
    ///
    /// The record therefore does not count once the file is gone, changed or replaced, or once another representation is
    /// requested. Path and device are not part of it: machines that share the files may have other names and numbers for them,
    /// and the entry and ``JobSettings`` say where the file is.
    ///
    /// - Parameter status: Nil for a stream, of which nothing is left.
    package func record(of entry: EntryFingerprint, _ status: StorageStatus?) -> EntryFingerprint {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64 + self.statements.count)
        // A program can restore the modification time, but not the time of the last change.
        let state =
            status.map {
                [$0.length, $0.modified, $0.changed].map { UInt64(bitPattern: $0) } + [$0.inode]
            } ?? []
        for number in [entry.high, UInt64(entry.share)] + state {
            withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
        }
        bytes.append(status == nil ? 0 : 1)
        bytes += self.statements
        var digest = RunningDigest(.sha256)
        bytes.withUnsafeBytes { digest.update($0) }
        let high = digest.bytes.withUnsafeBytes { EntryFingerprint($0).high }
        return EntryFingerprint(high: high, share: entry.share)
    }
}

extension EntryFingerprint {
    /// A second record of a finished entry whose file has no ``FinishedRecord``: the next run does not load what ``PlacingLog``
    /// recorded of it. It is the complement of the entry's bits.
    var withoutPlacing: EntryFingerprint { EntryFingerprint(high: ~self.high, share: self.share) }
}
