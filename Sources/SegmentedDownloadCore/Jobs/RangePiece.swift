/// A piece of a task's range, which another task may fetch if the task makes no progress.
package struct RangePiece: Hashable, Sendable {
    /// The task whose range it is of.
    package let shard: Shard
    /// From 0.
    package let index: Int

    package init(of shard: Shard, index: Int) {
        precondition(index >= 0, "pieces are numbered from 0")
        (self.shard, self.index) = (shard, index)
    }

    private static let namePrefix = "piece-"

    /// The form in names of files, such as `3-of-8.piece-2`.
    package var fileName: String { "\(self.shard.fileName).\(Self.namePrefix)\(self.index)" }

    /// Parses ``fileName``, of which the two parts around the dot are given.
    package init?(_ shard: Substring, _ piece: Substring) {
        guard let shard = Shard(fileName: shard), piece.hasPrefix(Self.namePrefix),
            let index = DecimalDigits(piece.dropFirst(Self.namePrefix.count).utf8)?.exact,
            index < Int64(FileDivision.piecesMax)
        else { return nil }
        self.init(of: shard, index: Int(index))
    }
}

extension FileDivision {
    /// 16: so many tasks can finish the range of another one together, and the pieces of a range of 16 GiB are 1 GiB each.
    package static let piecesMax = 16

    /// The pieces of a task's range, in order. All tasks divide it alike; bounds are multiples of the alignment.
    package func pieces(of shard: Shard) -> [RangePiece] {
        (0..<self.pieceCount(of: shard)).map { RangePiece(of: shard, index: $0) }
    }

    private func pieceCount(of shard: Shard) -> Int {
        let length = Int64(self.range(of: shard).count)
        return Int(min(Int64(Self.piecesMax), Shard.blockCount(in: length, alignedTo: self.alignment)))
    }

    /// The bytes of a piece, as offsets in the file.
    package func range(of piece: RangePiece) -> Range<Int64> {
        let range = self.range(of: piece.shard)
        guard let part = Shard(number: piece.index + 1, of: max(self.pieceCount(of: piece.shard), 1)) else {
            preconditionFailure("the range has fewer pieces")
        }
        let within = part.range(in: Int64(range.count), alignedTo: self.alignment)
        return range.lowerBound + within.lowerBound..<range.lowerBound + within.upperBound
    }

    /// Whether a record proves that a piece is complete, of the version of `resource`.
    package func accepts(
        _ record: FinishedRecord, of piece: RangePiece, _ resource: RemoteResource, hasDigest: Bool
    ) -> Bool {
        guard record.length == Int64(self.range(of: piece).count) else { return false }
        return self.isSameVersion(record, resource, hasDigest: hasDigest)
    }

    /// The record of a task's range, made from those of its pieces. Nil unless every piece has one that is accepted.
    package func record(
        of shard: Shard, combining records: [RangePiece: [FinishedRecord]], _ resource: RemoteResource, hasDigest: Bool
    ) -> FinishedRecord? {
        var (crc, length) = (CRC32(), Int64(0))
        var validator: Validator?
        var stated: [ExpectedDigest] = []
        for piece in self.pieces(of: shard) {
            let accepted = records[piece]?.first { self.accepts($0, of: piece, resource, hasDigest: hasDigest) }
            guard let accepted else { return nil }
            crc.append(accepted.crc, length: accepted.length)
            length += accepted.length
            validator = validator ?? accepted.resource.validator
            stated += accepted.resource.digests
        }
        guard let validator else { return nil }
        var combined = RemoteResource(completeLength: length, validator: validator)
        combined.state(stated)
        return FinishedRecord(resource: combined, length: length, crc: crc, modified: 0)
    }
}
