import SegmentedDownloadCore

/// The claims that a manifest's log implies, durable or pending: a second implementation of the codec's replay.
struct ManifestModel {
    struct Record {
        let kind: UInt32
        let first: UInt64
        let second: UInt64
        let crc: UInt32
    }

    private let completeLength: Int64
    private var claims: [(claim: Claim, isDurable: Bool)] = []
    /// Records after an invalid one are not read.
    private var isEnded = false
    private(set) var pausedModified: Int64?
    private(set) var isSetAside = false
    private(set) var everClaimed: Set<Claim> = []
    private(set) var everDurable: Set<Claim> = []

    init(completeLength: Int64) {
        self.completeLength = completeLength
    }

    var durable: [Claim] { self.claims.filter(\.isDurable).map(\.claim) }
    var pending: [Claim] { self.claims.filter { !$0.isDurable }.map(\.claim) }

    /// Whether a claim lies within the resource and within one block of 1 MiB.
    static func isPossible(_ offset: Int64, _ length: Int64, _ completeLength: Int64) -> Bool {
        guard offset >= 0, length > 0, offset < completeLength, length <= completeLength - offset else { return false }
        return offset >> 20 == (offset + (length - 1)) >> 20
    }

    mutating func append(_ record: Record) {
        // The state of a running digest: 16 arbitrary bytes, which claim nothing.
        if !self.isEnded, record.kind & 0xFF == 6 {
            self.pausedModified = nil
            self.isSetAside = false
            return
        }
        guard !self.isEnded, let first = Int64(exactly: record.first), let second = Int64(exactly: record.second),
            (1...5).contains(record.kind) || record.kind == 7 || record.kind == 8,
            record.kind != 1 || Self.isPossible(first, second, self.completeLength)
        else {
            self.isEnded = true
            return
        }
        self.isSetAside = record.kind == 8
        // That a part was set aside is not a change of it.
        if self.isSetAside { return }
        self.pausedModified = record.kind == 3 ? second : nil
        switch record.kind {
        case 1:
            let claim = Claim(offset: first, length: second, crc: CRC32(value: record.crc))
            self.claims.append((claim, false))
            self.everClaimed.insert(claim)
        case 2, 3:
            for index in self.claims.indices where Int64(index) < first {
                self.claims[index].isDurable = true
                self.everDurable.insert(self.claims[index].claim)
            }
        case 4: self.claims.removeAll { !$0.isDurable }
        // A record of a mismatching digest withdraws no claim.
        case 7: break
        default: self.claims.removeAll { $0.claim.range.upperBound > first }
        }
    }
}
