import SegmentedDownloadCore

/// A metalink's file while its elements are being read.
struct MetalinkDraft {
    let path: String
    let line: Int
    var urlsCount = 0
    var sources: [(rank: Int, source: SourceURL)] = []
    var unsupportedSourceCount = 0
    var unsupportedHashTypes: Set<String> = []
    private var length: Int64?
    private var digests: [ExpectedDigest] = []
    /// The strongest piece digests so far.
    private var pieces: Metalink.PieceDigests?
    /// The piece digests being read.
    private var open: (length: Int64, algorithm: ExpectedDigest.Algorithm, hexes: [String])?

    init(path: String, line: Int) {
        self.path = path
        self.line = line
    }

    mutating func take(length text: String, _ line: Int) throws(ListProblem) {
        guard let length = Int64(digits: text) else {
            throw ListProblem(.line(line), "a size is a number of bytes, not \"\(text.printable)\"")
        }
        guard self.length == nil || self.length == length else {
            throw ListProblem(.line(line), "\(self.name) has two sizes")
        }
        self.length = length
    }

    mutating func take(
        digest text: String, _ algorithm: ExpectedDigest.Algorithm, _ line: Int
    ) throws(ListProblem) {
        let digest = try Self.digest(text, algorithm, line)
        switch self.digests.first(where: { $0.algorithm == algorithm }) {
        case nil: self.digests.append(digest)
        case digest: break
        case _?: throw ListProblem(.line(line), "\(self.name) has two digests of type \(algorithm.rawValue)")
        }
    }

    private static func digest(
        _ text: String, _ algorithm: ExpectedDigest.Algorithm, _ line: Int
    ) throws(ListProblem) -> ExpectedDigest {
        guard let digest = ExpectedDigest(algorithm, hex: text) else {
            throw ListProblem(
                .line(line),
                "a hash of type \(algorithm.rawValue) has \(algorithm.length * 2) hexadecimal digits: \"\(text.printable)\""
            )
        }
        return digest
    }

    // MARK: Pieces

    mutating func beginPieces(length: Int64, _ algorithm: ExpectedDigest.Algorithm) {
        self.open = (length, algorithm, [])
    }

    /// - Parameter number: The piece's number from 0, which version 3 states.
    func beginPiece(number: String?, _ line: Int) throws(ListProblem) {
        guard let number, let next = self.open?.hexes.count, Int64(digits: number) != Int64(next) else { return }
        throw ListProblem(.line(line), "expected piece \(next), found piece \"\(number.printable)\"")
    }

    mutating func take(pieceDigest text: String, _ line: Int) throws(ListProblem) {
        guard let algorithm = self.open?.algorithm else { return }
        self.open?.hexes.append(try Self.digest(text, algorithm, line).hex)
    }

    mutating func endPieces(_ line: Int) throws(ListProblem) {
        guard let (length, algorithm, hexes) = self.open else { return }
        self.open = nil
        guard !hexes.isEmpty else { throw ListProblem(.line(line), "there are pieces without a hash") }
        guard algorithm.length > self.pieces?.algorithm.length ?? 0 else { return }
        self.pieces = Metalink.PieceDigests(length: length, algorithm: algorithm, hexes: hexes)
    }

    // MARK: The whole

    /// The file, after its element has ended.
    var file: Metalink.File {
        get throws(ListProblem) {
            var known: Set<SourceURL> = []
            let sources = self.sources.enumerated()
                .sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }
                .map(\.element.source).filter { known.insert($0).inserted }
            guard !sources.isEmpty else {
                throw ListProblem(.line(self.line), "\(self.name) has no URL of http or https")
            }
            if let pieces, let length, pieces.count(for: length) != pieces.hexes.count {
                throw ListProblem(
                    .line(self.line),
                    "\(self.name) has \(length) bytes and \(pieces.hexes.count) pieces of \(pieces.length), which do not make it up"
                )
            }
            return Metalink.File(
                path: self.path, length: self.length, digests: self.digests, pieces: self.pieces, sources: sources,
                unsupportedSourceCount: self.unsupportedSourceCount,
                unsupportedHashTypes: self.unsupportedHashTypes.sorted(), line: self.line)
        }
    }

    private var name: String { "\"\(self.path.printable)\"" }
}

extension Metalink.PieceDigests {
    /// The number of pieces of a file.
    func count(for length: Int64) -> Int {
        length == 0 ? 0 : Int((length - 1) / self.length) + 1
    }
}
