/// The intermediate state of a digest over the bytes before `offset`. A resumed download need not read those bytes
/// again.
///
/// A state is longer than a record of the manifest, so the log stores it in pieces of 16 bytes: first the offset and
/// the length, then the state.
package struct DigestState: Hashable, Sendable {
    /// The digest algorithm, with the number that the library gives it.
    package let algorithm: UInt8
    /// The number of bytes digested, from the first byte of the resource.
    package let offset: Int64
    /// The digest's internal state between two of its blocks. The length is a multiple of 4.
    package let bytes: [UInt8]

    /// 64 bytes: the state of SHA-512.
    package static let lengthMaximum = 64

    package init(algorithm: UInt8, offset: Int64, bytes: [UInt8]) {
        precondition(bytes.count <= Self.lengthMaximum && offset >= 0)
        self.algorithm = algorithm
        self.offset = offset
        self.bytes = bytes
    }

    /// The part of a state in one record.
    package struct Piece: Hashable, Sendable {
        package let algorithm: UInt8
        /// 0 for the piece with the offset and the length, then counting up.
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

    /// Assembles states from the pieces in the log. A state that lacks a piece is dropped.
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

        /// Drops states that include bytes at or after `offset`, because those bytes are written anew.
        mutating func forget(from offset: Int64) {
            self.states.removeAll { $0.offset > offset }
            self.head = nil
        }
    }
}
