import SegmentedDownloadCore

/// A manifest as it is written anew: the header and the records of a log at one moment.
struct ManifestDraft: Hashable, Sendable {
    let bytes: [UInt8]
    let recordCount: Int
    let claimCount: Int
    let durableCount: Int
    /// The generation of the log it was made from; see ``ManifestLog/generation``.
    let generation: Int

    /// Encodes a log.
    ///
    /// - Parameter durableCount: The number of claims that are recorded as durable. More than there are stands for all.
    init(of log: ManifestLog, durableCount: Int) {
        let durableCount = min(durableCount, log.claims.count)
        let records =
            (log.isRejected ? [.rejected] : []) + log.claims.map { Manifest.Record.claim($0) }
            + log.digestStates.flatMap(\.pieces).map { .digest($0) }
            + [.checkpoint(claims: Int64(durableCount))]
        var bytes = ManifestCodec.encode(log.header)
        for (sequence, record) in records.enumerated() {
            bytes += ManifestCodec.encode(record, sequence: UInt32(truncatingIfNeeded: sequence), of: log.header.id)
        }
        self.bytes = bytes
        self.recordCount = records.count
        self.claimCount = log.claims.count
        self.durableCount = durableCount
        self.generation = log.generation
    }
}
