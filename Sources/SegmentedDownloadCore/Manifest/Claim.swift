/// The statement that a run of bytes within one block has been written, and what its CRC-32 is.
package struct Claim: Hashable, Sendable {
    package let offset: Int64
    package let length: Int64
    package let crc: CRC32

    /// - Precondition: the run is not empty and lies within one block.
    package init(offset: Int64, length: Int64, crc: CRC32) {
        precondition(Self.isWithinBlock(offset: offset, length: length))
        self.offset = offset
        self.length = length
        self.crc = crc
    }

    static func isWithinBlock(offset: Int64, length: Int64) -> Bool {
        guard offset >= 0, length > 0, length <= BlockLayout.blockLength else { return false }
        let (end, overflow) = offset.addingReportingOverflow(length)
        return !overflow && end <= BlockLayout.blockEnd(after: offset)
    }

    package var range: Range<Int64> { self.offset..<self.offset + self.length }
}

extension [Claim] {
    /// Withdraws the claims that reach behind `offset`; returns how many of the first `durableCount` are left.
    package mutating func forget(from offset: Int64, durableCount: Int) -> Int {
        let kept = self[..<durableCount].count { $0.range.upperBound <= offset }
        self.removeAll { $0.range.upperBound > offset }
        return kept
    }

    /// In order of offset, without those that overlap: of two claims to one byte neither is believed.
    package func settled() -> [Claim] {
        let ordered = self.sorted { $0.offset < $1.offset }
        var settled: [Claim] = []
        var reached: Int64 = 0
        var isTainted = false
        for claim in ordered {
            if claim.offset < reached {
                if !isTainted { settled.removeLast() }
                isTainted = true
            } else {
                settled.append(claim)
                isTainted = false
            }
            reached = Swift.max(reached, claim.range.upperBound)
        }
        return settled
    }

    /// Neighbours within one block joined, their CRCs combined; of ordered, disjoint claims.
    package func joined() -> [Claim] {
        var joined: [Claim] = []
        for claim in self {
            if let last = joined.last, last.range.upperBound == claim.offset,
                Claim.isWithinBlock(offset: last.offset, length: last.length + claim.length)
            {
                var crc = last.crc
                crc.append(claim.crc, length: claim.length)
                joined[joined.count - 1] = Claim(offset: last.offset, length: last.length + claim.length, crc: crc)
            } else {
                joined.append(claim)
            }
        }
        return joined
    }

    /// What `0..<completeLength` has besides these ordered, disjoint claims.
    package func missing(of completeLength: Int64) -> [Range<Int64>] {
        var missing: [Range<Int64>] = []
        var offset: Int64 = 0
        for claim in self {
            if claim.offset > offset { missing.append(offset..<claim.offset) }
            offset = claim.range.upperBound
        }
        if offset < completeLength { missing.append(offset..<completeLength) }
        return missing
    }

    /// The CRC-32 of the whole, if these ordered, disjoint claims cover exactly that; nothing is read again.
    package func combinedCRC(of completeLength: Int64) -> CRC32? {
        guard self.missing(of: completeLength).isEmpty, (self.last?.range.upperBound ?? 0) == completeLength else {
            return nil
        }
        return self.reduce(into: CRC32()) { $0.append($1.crc, length: $1.length) }
    }
}
