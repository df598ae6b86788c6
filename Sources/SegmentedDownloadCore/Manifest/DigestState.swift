/// How far a digest has come over the bytes from the first one on, so that a resumed download need not read them again.
///
/// It stands in the manifest's log in pieces, for a record is shorter than a state: first the offset, then the state, 16 bytes each.
package struct DigestState: Hashable, Sendable {
    /// Which digest it is of, as the library numbers them.
    package let algorithm: UInt8
    /// The first byte that is not in it.
    package let offset: Int64
    /// What the digest keeps between two of its blocks; its length is a multiple of 4.
    package let bytes: [UInt8]

    /// 64: the state of SHA-512.
    package static let lengthMaximum = 64

    package init(algorithm: UInt8, offset: Int64, bytes: [UInt8]) {
        precondition(bytes.count <= Self.lengthMaximum && offset >= 0)
        self.algorithm = algorithm
        self.offset = offset
        self.bytes = bytes
    }

    /// What of a state stands in one record.
    package struct Piece: Hashable, Sendable {
        package let algorithm: UInt8
        /// 0 for the one with offset and length.
        package let index: UInt8
        package let first: UInt64
        package let second: UInt64

        var words: (UInt64, UInt64) { (self.first, self.second) }

        init(algorithm: UInt8, index: UInt8, words: (UInt64, UInt64)) {
            self.algorithm = algorithm
            self.index = index
            (self.first, self.second) = words
        }
    }

    private static let pieceLength = 16

    package var pieces: [Piece] {
        let head = Piece(
            algorithm: self.algorithm, index: 0,
            words: (UInt64(bitPattern: self.offset), UInt64(self.bytes.count)))
        return [head]
            + stride(from: 0, to: self.bytes.count, by: Self.pieceLength).enumerated().map { index, start in
                let word = { (from: Int) in
                    self.bytes.dropFirst(from).prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                }
                return Piece(
                    algorithm: self.algorithm, index: UInt8(index + 1), words: (word(start), word(start + 8)))
            }
    }

    /// Puts states together from what the log has of them. One that lacks a piece is none.
    struct Reader {
        private(set) var states: [DigestState] = []
        private var head: Piece?
        private var bytes: [UInt8] = []

        mutating func take(_ piece: Piece) {
            if piece.index == 0 {
                self.head = piece
                self.bytes = []
                return
            }
            guard let head = self.head, head.algorithm == piece.algorithm, head.second <= DigestState.lengthMaximum,
                let offset = Int64(exactly: head.first),
                Int(piece.index) == self.bytes.count / DigestState.pieceLength + 1
            else {
                self.head = nil
                return
            }
            for word in [piece.first, piece.second] {
                self.bytes += (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
            }
            let length = Int(head.second)
            guard self.bytes.count >= length else { return }
            self.states.removeAll { $0.algorithm == head.algorithm }
            self.states.append(
                DigestState(algorithm: head.algorithm, offset: offset, bytes: Array(self.bytes.prefix(length))))
            self.head = nil
        }

        /// Bytes from an offset on are written anew: what was computed over them is of others.
        mutating func forget(from offset: Int64) {
            self.states.removeAll { $0.offset > offset }
            self.head = nil
        }
    }
}
