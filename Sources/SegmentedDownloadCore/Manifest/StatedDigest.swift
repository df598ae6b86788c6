/// A digest that a response stated for the whole file or for a range of its bytes.
///
/// The log stores those that were stated after the manifest was written. A statement is longer than a record, so it is stored
/// in pieces of 16 bytes: first the range, then the digest. It precedes the claims to the bytes of its response.
package struct StatedDigest: Hashable, Sendable {
    package let digest: ExpectedDigest
    /// Nil for the whole file. Never empty.
    package let range: Range<Int64>?

    package init(_ digest: ExpectedDigest, of range: Range<Int64>? = nil) {
        precondition(range?.isEmpty != true, "a digest needs a nonempty range")
        (self.digest, self.range) = (digest, range)
    }

    /// The part of a statement in one record.
    package struct Piece: Hashable, Sendable {
        package let algorithm: UInt8
        /// 0 for the piece with the range, then counting up.
        package let index: UInt8
        package let first: UInt64
        package let second: UInt64
    }

    private static let pieceLength = 16

    /// The numbers of the algorithms in the log, which never change.
    private static let algorithms: [(number: UInt8, algorithm: ExpectedDigest.Algorithm)] = [
        (1, .crc32), (2, .crc32c), (3, .crc64nvme), (4, .md5), (5, .sha1), (6, .sha256), (7, .sha512),
    ]

    private static func algorithm(_ number: UInt8) -> ExpectedDigest.Algorithm? {
        Self.algorithms.first { $0.number == number }?.algorithm
    }

    /// Whether a record with this number of an algorithm may be a piece of a statement.
    static func isKnown(algorithm number: UInt8) -> Bool { self.algorithm(number) != nil }

    package var pieces: [Piece] {
        guard let number = Self.algorithms.first(where: { $0.algorithm == self.digest.algorithm })?.number,
            let bytes = ResourceFingerprint.bytes(self.digest.hex[...])
        else { return [] }
        let range = self.range ?? 0..<0
        let head = Piece(
            algorithm: number, index: 0, first: UInt64(range.lowerBound), second: UInt64(range.upperBound))
        return [head]
            + stride(from: 0, to: bytes.count, by: Self.pieceLength).enumerated().map { index, start in
                let word = { (from: Int) in
                    bytes.dropFirst(from).prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                }
                return Piece(
                    algorithm: number, index: UInt8(index + 1), first: word(start), second: word(start + 8))
            }
    }

    /// Assembles statements from the pieces in the log. A statement that lacks a piece is dropped.
    struct Reader {
        private var head: Piece?
        private var bytes: [UInt8] = []

        /// - Parameter completeLength: The length of the file in bytes, which no range exceeds.
        /// - Returns: The statement that the piece completes.
        mutating func take(_ piece: Piece, completeLength: Int64) -> StatedDigest? {
            if piece.index == 0 {
                (self.head, self.bytes) = (piece, [])
                return nil
            }
            guard let head, head.algorithm == piece.algorithm, let algorithm = StatedDigest.algorithm(head.algorithm),
                Int(piece.index) == self.bytes.count / StatedDigest.pieceLength + 1
            else {
                self.head = nil
                return nil
            }
            for word in [piece.first, piece.second] {
                self.bytes += (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
            }
            guard self.bytes.count >= algorithm.length else { return nil }
            self.head = nil
            guard let digest = ExpectedDigest(algorithm, hex: self.bytes.prefix(algorithm.length).hex) else {
                return nil
            }
            if head.first == 0, head.second == 0 { return StatedDigest(digest) }
            guard let lowerBound = Int64(exactly: head.first), let upperBound = Int64(exactly: head.second),
                lowerBound < upperBound, upperBound <= completeLength
            else { return nil }
            return StatedDigest(digest, of: lowerBound..<upperBound)
        }
    }
}
