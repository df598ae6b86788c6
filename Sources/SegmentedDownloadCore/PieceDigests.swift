/// The digests of a file's pieces, which say where a file is damaged.
public struct PieceDigests: Hashable, Codable, Sendable {
    /// The length of each piece but the last, in bytes.
    public let length: Int64
    public let algorithm: ExpectedDigest.Algorithm
    /// The pieces' digests in order, in lower-case hexadecimal.
    public let hexes: [String]

    package init(length: Int64, algorithm: ExpectedDigest.Algorithm, hexes: [String]) {
        precondition(length > 0, "a piece has bytes")
        (self.length, self.algorithm, self.hexes) = (length, algorithm, hexes)
    }

    /// Restores digests from their joined digits. Nil if these are not digests of pieces.
    package init?(length: Int64, algorithm: ExpectedDigest.Algorithm, joined digits: String) {
        let (all, count) = (Array(digits.utf8), algorithm.length * 2)
        guard length > 0, all.count.isMultiple(of: count) else { return nil }
        var hexes: [String] = []
        for start in stride(from: 0, to: all.count, by: count) {
            let hex = String(decoding: all[start..<(start + count)], as: UTF8.self)
            guard let digest = ExpectedDigest(algorithm, hex: hex) else { return nil }
            hexes.append(digest.hex)
        }
        self.init(length: length, algorithm: algorithm, hexes: hexes)
    }

    /// - Throws: `DecodingError` if these are not digests of pieces.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let length = try values.decode(Int64.self, forKey: .length)
        let algorithm = try values.decode(ExpectedDigest.Algorithm.self, forKey: .algorithm)
        let digests = try values.decode([String].self, forKey: .hexes).map { ExpectedDigest(algorithm, hex: $0) }
        guard length > 0, !digests.contains(nil) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "these are not digests of pieces"))
        }
        self.init(length: length, algorithm: algorithm, hexes: digests.compactMap { $0?.hex })
    }
}
