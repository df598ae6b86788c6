import SegmentedDownloadCore
import Synchronization

/// How bytes of an earlier run that are no longer as they were written are found and withdrawn.
extension PartialFile {
    /// Reads the bytes of an earlier run that the survey accepted unread, while others are fetched.
    func readBackAlong() async {
        // The next run reads every claim, in case this one does not get as far as to withdraw those that differ.
        await self.readBack?.run { self.distrust() }
    }

    /// The claims of an earlier run whose bytes differ, in order.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` once interrupted.
    func damagedClaims(unless interruption: Latch) throws -> [Claim] {
        guard let damaged = try self.readBack?.finish(unless: interruption), !damaged.isEmpty else { return [] }
        // Claims may have been withdrawn since, and their bytes fetched again.
        let current = Set(self.log.withLock { $0.claims }.map(\.withoutMark))
        return try damaged.filter { try current.contains($0.withoutMark) && !self.file.holds($0) }
            .sorted { $0.offset < $1.offset }
    }

    /// Withdraws claims whose bytes differ, so that the next survey finds them missing.
    func withdraw(_ damaged: [Claim]) async throws(StorageError) {
        let ranges = damaged.map(\.range).merged()
        let durableCount = self.change { log in
            self.reader?.withdraw(ranges)
            log.withdraw(ranges, marksRest: false, keepsStatements: true)
            log.distrust()
            return log.durableCount
        }
        // Also if this run has no manifest open: it would find the claims of the one on disk again.
        try await self.writeManifest(durableCount: durableCount)
    }
}

extension Claim {
    fileprivate var withoutMark: Claim { Claim(offset: self.offset, length: self.length, crc: self.crc) }
}
