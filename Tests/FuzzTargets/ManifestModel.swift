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
    /// The digests that the log states of the whole file, and those of ranges with the end of each.
    private(set) var stated: [String] = []
    private(set) var contents: [(text: String, end: Int64)] = []
    /// The records of a statement that is not complete: the number of the algorithm, the range and the bytes so far.
    private var statement: (algorithm: UInt32, first: UInt64, second: UInt64, bytes: [UInt8])?
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
        if !self.isEnded, record.kind & 0xFF == 9, let (name, length) = Self.algorithms[record.kind >> 8 & 0xFF] {
            self.pausedModified = nil
            self.isSetAside = false
            self.state(record, name, length)
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
        default:
            self.claims.removeAll { $0.claim.range.upperBound > first }
            self.contents.removeAll { $0.end > first }
        }
    }

    private static let algorithms: [UInt32: (name: String, length: Int)] = [
        1: ("crc32", 4), 2: ("crc32c", 4), 3: ("crc64nvme", 8), 4: ("md5", 16), 5: ("sha1", 20), 6: ("sha256", 32),
        7: ("sha512", 64),
    ]

    /// Handles a record of a statement: 0 begins it with its range, 1, 2 and so on have 16 bytes each of its digest.
    private mutating func state(_ record: Record, _ name: String, _ length: Int) {
        let (number, index) = (record.kind >> 8 & 0xFF, record.kind >> 16 & 0xFF)
        if index == 0 {
            self.statement = (number, record.first, record.second, [])
            return
        }
        guard var begun = self.statement, begun.algorithm == number, Int(index) == begun.bytes.count / 16 + 1 else {
            self.statement = nil
            return
        }
        for word in [record.first, record.second] {
            for shift in 0..<8 { begun.bytes.append(UInt8(word >> UInt64(8 * shift) & 0xFF)) }
        }
        self.statement = begun.bytes.count < length ? begun : nil
        guard begun.bytes.count >= length else { return }
        let digits = begun.bytes.prefix(length).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        if begun.first == 0, begun.second == 0 {
            if !self.stated.contains("\(name)=\(digits)") { self.stated.append("\(name)=\(digits)") }
        } else if begun.first < begun.second, begun.second <= UInt64(self.completeLength) {
            let text = "\(name)=\(digits) of \(begun.first)..<\(begun.second)"
            if !self.contents.contains(where: { $0.text == text }) {
                self.contents.append((text, Int64(begun.second)))
            }
        }
    }
}
