import SegmentedDownloadCore

extension VerifiedFile.Content {
    /// Computes from a file what is to be compared and is not known yet, so that it can be judged.
    ///
    /// - Parameters:
    ///   - others: Algorithms whose digests are wanted without a comparison.
    ///   - pieces: Not read if the digests differ anyway.
    ///   - interruption: Once raised, reading ends with a failure of code `cancelled`.
    mutating func complete(
        from file: any StorageFile, for digests: [ExpectedDigest], others: [ExpectedDigest.Algorithm] = [],
        pieces: PieceDigests? = nil, unless interruption: Latch
    ) throws {
        let unknown = Set(digests.map(\.algorithm) + others).filter { self.hexes[$0] == nil }
        if !unknown.isEmpty {
            let algorithms = Array(unknown)
            let hexes = try file.digests(algorithms, length: self.length, unless: interruption)
            for (algorithm, hex) in zip(algorithms, hexes) { self.hexes[algorithm] = hex }
        }
        guard let pieces, digests.allSatisfy({ self.hexes[$0.algorithm] == $0.hex }) else { return }
        self.pieces = try pieces.compared(with: file, length: self.length, unless: interruption)
    }
}
