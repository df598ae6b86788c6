import SegmentedDownload

/// The result of verifying a finished file, as a JSON object.
struct CheckRecord: Encodable {
    /// A half-open range of bytes.
    struct Piece: Encodable {
        let start: Int64
        let end: Int64
    }

    let v = 1
    let event = "checked"
    let path: String
    let good: Bool
    let bytes: Int64
    /// The length that the file's attribute records; nil if it has no attribute.
    let bytesExpected: Int64?
    let damage: [Piece]
    let digests: [String]
    /// The digests found, in the order of ``digests``.
    let digestsFound: [String]

    init(_ check: FileCheck) {
        self.path = check.path.string
        self.good = check.isGood
        self.bytes = check.length
        self.bytesExpected = check.lengthFetched
        self.damage = check.damage.map { Piece(start: $0.lowerBound, end: $0.upperBound) }
        self.digests = check.digests.map(\.expected.description)
        self.digestsFound = check.digests.map { "\($0.expected.algorithm.rawValue)=\($0.found)" }
    }
}
