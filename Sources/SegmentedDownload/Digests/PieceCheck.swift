import SegmentedDownloadCore

extension PieceDigests {
    /// Whether the pieces of a file agree, as many as it must have.
    ///
    /// - Parameter interruption: Once raised, reading ends with a failure of code `cancelled`.
    func compared(
        with file: any StorageFile, length: Int64, unless interruption: Latch
    ) throws -> VerifiedFile.Content.Pieces {
        guard self.count(for: length) == self.hexes.count else { return .differ(at: 0) }
        var check = PieceCheck(self, length: length)
        _ = try file.read(length: length, unless: interruption) { check.update($0) }
        return check.damage.first.map { .differ(at: $0.lowerBound) } ?? .agree
    }
}

/// Verifies a file's bytes, given in order, against the digests of its pieces.
struct PieceCheck {
    private let pieces: Metalink.PieceDigests
    /// The expected length in bytes. Bytes beyond it belong to no piece.
    private let length: Int64
    private var running: RunningDigest
    /// The number of pieces read.
    private var count = 0
    private var start: Int64 = 0
    private var offset: Int64 = 0
    private var damaged: [Range<Int64>] = []

    /// - Parameter length: The expected length in bytes; `nil` if it is unknown.
    init(_ pieces: Metalink.PieceDigests, length: Int64?) {
        self.pieces = pieces
        self.length = length ?? .max
        self.running = RunningDigest(pieces.algorithm)
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        var rest = bytes.prefix(Int(clamping: self.length - self.offset))
        while !rest.isEmpty {
            let taken = rest.prefix(Int(clamping: self.pieces.length - (self.offset - self.start)))
            self.running.update(UnsafeRawBufferPointer(rebasing: taken))
            self.offset += Int64(taken.count)
            rest = rest.dropFirst(taken.count)
            if self.offset - self.start == self.pieces.length { self.close() }
        }
    }

    private mutating func close() {
        guard self.offset > self.start else { return }
        let isRight = self.count < self.pieces.hexes.count && self.running.hex == self.pieces.hexes[self.count]
        if !isRight { self.damaged.append(self.start..<self.offset) }
        self.count += 1
        self.start = self.offset
        self.running = RunningDigest(self.pieces.algorithm)
    }

    /// The pieces that differ, in order, including what is missing at the end.
    var damage: [Range<Int64>] {
        var closed = self
        closed.close()
        if self.length != .max, self.offset < self.length { closed.damaged.append(self.offset..<self.length) }
        return closed.damaged.merged()
    }
}
