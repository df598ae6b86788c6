import SegmentedDownloadCore

/// A manifest as it is written anew: the header and the records of a log at one moment.
struct ManifestDraft: Hashable, Sendable {
    let bytes: [UInt8]
    let recordCount: Int
    let claimCount: Int
    let durableCount: Int
    /// The generation of the log it was made from; see ``ManifestLog/generation``.
    let generation: Int
    /// How many statements had been added to the log.
    let statementCount: Int

    /// Encodes a log.
    ///
    /// - Parameter durableCount: The number of claims that are recorded as durable. More than there are stands for all.
    init(of log: ManifestLog, durableCount: Int) {
        let durableCount = min(durableCount, log.claims.count)
        var records: [Manifest.Record] = log.isRejected ? [.rejected] : []
        records += log.contents.flatMap(\.pieces).map { .stated($0) }
        records += log.claims.map { .claim($0) }
        records += log.digestStates.flatMap(\.pieces).map { .digest($0) }
        records.append(.checkpoint(claims: Int64(durableCount)))
        var bytes = ManifestCodec.encode(log.header)
        for (sequence, record) in records.enumerated() {
            bytes += ManifestCodec.encode(record, sequence: UInt32(truncatingIfNeeded: sequence), of: log.header.id)
        }
        self.bytes = bytes
        self.recordCount = records.count
        self.claimCount = log.claims.count
        self.durableCount = durableCount
        self.generation = log.generation
        self.statementCount = log.statementCount
    }
}
