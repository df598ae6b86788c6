import SegmentedDownload

/// What a finished file was found to be, as an object.
struct CheckRecord: Encodable {
    /// A run of bytes; the end is past the last one.
    struct Piece: Encodable {
        let start: Int64
        let end: Int64
    }

    let v = 1
    let event = "checked"
    let path: String
    let good: Bool
    let bytes: Int64
    /// Absent where the file does not say what was fetched.
    let bytesExpected: Int64?
    let damage: [Piece]
    let digests: [String]
    /// In the same order.
    let digestsFound: [String]

    init(_ check: FileCheck) {
        self.path = check.path
        self.good = check.isGood
        self.bytes = check.length
        self.bytesExpected = check.lengthFetched
        self.damage = check.damage.map { Piece(start: $0.lowerBound, end: $0.upperBound) }
        self.digests = check.digests.map(\.expected.description)
        self.digestsFound = check.digests.map { "\($0.expected.algorithm.rawValue)=\($0.found)" }
    }
}
