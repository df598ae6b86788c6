/// A record that a run of bytes within one block has been written, with the CRC-32 of those bytes.
package struct Claim: Hashable, Sendable {
    package let offset: Int64
    package let length: Int64
    package let crc: CRC32
    /// The source of the bytes, if they are not proven.
    ///
    /// 0 for bytes of the source in the manifest's header or of one proven equal. Otherwise the bytes are from a source
    /// of which only samples were compared, and all bytes with the same mark are from the same source.
    package let mark: UInt8

    /// The mark of bytes that another program fetched and that were compared before they were claimed. They are not
    /// compared again while a validator proves that the server's file is the same.
    package static let adoptedMark: UInt8 = .max

    /// - Precondition: The run is not empty and lies within one block.
    package init(offset: Int64, length: Int64, crc: CRC32, mark: UInt8 = 0) {
        precondition(Self.isWithinBlock(offset: offset, length: length))
        self.offset = offset
        self.length = length
        self.crc = crc
        self.mark = mark
    }

    static func isWithinBlock(offset: Int64, length: Int64) -> Bool {
        guard offset >= 0, length > 0, length <= BlockLayout.blockLength else { return false }
        let (end, overflow) = offset.addingReportingOverflow(length)
        return !overflow && end <= BlockLayout.blockEnd(after: offset)
    }

    package var range: Range<Int64> { self.offset..<self.offset + self.length }
}

extension [Claim] {
    /// Removes the claims that end after `offset`. Returns how many of the first `durableCount` remain.
    package mutating func forget(from offset: Int64, durableCount: Int) -> Int {
        let kept = self[..<durableCount].count { $0.range.upperBound <= offset }
        self.removeAll { $0.range.upperBound > offset }
        return kept
    }

    /// Removes the claims that overlap any of the ranges. Returns how many of the first `durableCount` remain.
    package mutating func withdraw(_ ranges: [Range<Int64>], durableCount: Int) -> Int {
        let isKept = { (claim: Claim) in !ranges.contains { $0.overlaps(claim.range) } }
        let kept = self[..<durableCount].count(where: isKept)
        self.removeAll { !isKept($0) }
        return kept
    }

    /// Marks up to this one are numbers of this run's sources. Higher ones stand for sources of earlier runs.
    private static var sourceMarkMax: UInt8 { 200 }

    /// An unused mark above ``sourceMarkMax``, or the highest mark of a source if all are used.
    private var freeMark: UInt8 {
        let taken = Set(self.map(\.mark))
        return (Self.sourceMarkMax + 1..<Claim.adoptedMark).first { !taken.contains($0) } ?? Claim.adoptedMark - 1
    }

    private mutating func replace(mark: UInt8, by other: UInt8) {
        self = self.map {
            $0.mark == mark ? Claim(offset: $0.offset, length: $0.length, crc: $0.crc, mark: other) : $0
        }
    }

    /// Gives all unmarked claims the same unused mark.
    package mutating func markUnmarked() {
        self.replace(mark: 0, by: self.freeMark)
    }

    /// Replaces marks that are numbers of sources, because the next run may have other sources, in another order.
    package mutating func retireMarks() {
        for mark in Set(self.map(\.mark)).sorted() where mark > 0 && mark <= Self.sourceMarkMax {
            self.replace(mark: mark, by: self.freeMark)
        }
    }

    /// The bytes with each mark above 0, in ascending order of marks. The claims must be ordered and disjoint.
    package var marked: [MarkedRanges] {
        var groups: [MarkedRanges] = []
        for claim in self where claim.mark > 0 {
            let index = groups.firstIndex { $0.mark == claim.mark } ?? groups.count
            if index == groups.count { groups.append(MarkedRanges(mark: claim.mark, ranges: [])) }
            groups[index].ranges = (groups[index].ranges + [claim.range]).merged()
        }
        return groups.sorted { $0.mark < $1.mark }
    }

    /// The claims in order of offset, without those that overlap. Of two claims to the same byte neither is trusted.
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

    /// The claims with neighbors in the same block and with the same mark merged and their CRCs combined. The claims
    /// must be ordered and disjoint.
    package func joined() -> [Claim] {
        var joined: [Claim] = []
        for claim in self {
            if let last = joined.last, last.range.upperBound == claim.offset, last.mark == claim.mark,
                Claim.isWithinBlock(offset: last.offset, length: last.length + claim.length)
            {
                var crc = last.crc
                crc.append(claim.crc, length: claim.length)
                joined[joined.count - 1] = Claim(
                    offset: last.offset, length: last.length + claim.length, crc: crc, mark: claim.mark)
            } else {
                joined.append(claim)
            }
        }
        return joined
    }

    /// The parts of `0..<completeLength` that these ordered, disjoint claims do not cover.
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

    /// The CRC-32 of each of several consecutive ranges, combined from these ordered, disjoint claims.
    ///
    /// Nil unless the claims cover exactly these ranges and none of them crosses a range's end.
    package func combinedCRCs(of ranges: [Range<Int64>]) -> [CRC32]? {
        var claims = self[...]
        var crcs: [CRC32] = []
        for range in ranges {
            var crc = CRC32()
            var offset = range.lowerBound
            while offset < range.upperBound {
                guard let claim = claims.popFirst(), claim.offset == offset, claim.range.upperBound <= range.upperBound
                else { return nil }
                crc.append(claim.crc, length: claim.length)
                offset = claim.range.upperBound
            }
            crcs.append(crc)
        }
        return claims.isEmpty ? crcs : nil
    }

    /// The CRC-32 of the whole resource, combined without reading it. Nil unless these ordered, disjoint claims cover
    /// exactly `0..<completeLength`.
    package func combinedCRC(of completeLength: Int64) -> CRC32? {
        guard self.missing(of: completeLength).isEmpty, (self.last?.range.upperBound ?? 0) == completeLength else {
            return nil
        }
        return self.reduce(into: CRC32()) { $0.append($1.crc, length: $1.length) }
    }
}

/// The bytes with one mark: those of one source of which only samples were compared.
package struct MarkedRanges: Hashable, Sendable {
    package let mark: UInt8
    /// Ordered and disjoint.
    package var ranges: [Range<Int64>]

    package init(mark: UInt8, ranges: [Range<Int64>]) {
        self.mark = mark
        self.ranges = ranges
    }
}

extension [Range<Int64>] {
    /// The ranges in order, with adjacent and overlapping ones merged.
    package func merged() -> [Range<Int64>] {
        self.sorted { $0.lowerBound < $1.lowerBound }.reduce(into: []) { merged, next in
            if let last = merged.last, last.upperBound >= next.lowerBound {
                merged[merged.count - 1] = last.lowerBound..<Swift.max(last.upperBound, next.upperBound)
            } else {
                merged.append(next)
            }
        }
    }

    /// The bytes of these ranges that none of `others` contains. Both must be ordered and disjoint.
    package func subtracting(_ others: [Range<Int64>]) -> [Range<Int64>] {
        self.flatMap { range in
            others.complement(in: range.upperBound).map { $0.clamped(to: range) }.filter { !$0.isEmpty }
        }
    }

    /// The parts of `0..<length` that these ordered, disjoint ranges do not cover.
    package func complement(in length: Int64) -> [Range<Int64>] {
        var rest: [Range<Int64>] = []
        var offset: Int64 = 0
        for range in self {
            if Swift.min(range.lowerBound, length) > offset {
                rest.append(offset..<Swift.min(range.lowerBound, length))
            }
            offset = Swift.max(offset, range.upperBound)
        }
        if offset < length { rest.append(offset..<length) }
        return rest
    }
}
