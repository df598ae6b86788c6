/// A digest a file is expected to have.
public struct ExpectedDigest: Hashable, Sendable, CustomStringConvertible {
    /// The digests that can be checked.
    public enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case crc32
        /// CRC-32C, which object stores say of what they have.
        case crc32c
        /// CRC-64/NVME, likewise.
        case crc64nvme
        case md5, sha1, sha256, sha512

        /// The digest's length in bytes.
        var length: Int {
            switch self {
            case .crc32, .crc32c: 4
            case .crc64nvme: 8
            case .md5: 16
            case .sha1: 20
            case .sha256: 32
            case .sha512: 64
            }
        }
    }

    public let algorithm: Algorithm
    /// Lower-case hexadecimal digits.
    public let hex: String

    /// Reads `ALGORITHM=HEX`, such as `sha256=9f86…`; absent if it is neither.
    public init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2,
            let algorithm = Algorithm(rawValue: parts[0].lowercased().filter { $0 != "-" })
        else { return nil }
        self.init(algorithm, hex: String(parts[1]))
    }

    /// Absent if there are not exactly as many hexadecimal digits as the algorithm has.
    public init?(_ algorithm: Algorithm, hex: String) {
        let hex = hex.lowercased()
        guard hex.utf8.count == algorithm.length * 2, hex.utf8.allSatisfy({ Self.isHexDigit($0) }) else { return nil }
        self.algorithm = algorithm
        self.hex = hex
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// Whether two files that somebody made differ in it, as far as anybody knows; CRCs are by accident, or wish, the same.
    var isOfContent: Bool {
        switch self.algorithm {
        case .crc32, .crc32c, .crc64nvme, .md5, .sha1: false
        case .sha256, .sha512: true
        }
    }

    public var description: String { "\(self.algorithm.rawValue)=\(self.hex)" }
}
