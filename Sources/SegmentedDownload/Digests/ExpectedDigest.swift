/// A digest that a file is expected to have.
public struct ExpectedDigest: Hashable, Sendable, CustomStringConvertible {
    /// The supported digest algorithms.
    public enum Algorithm: String, Hashable, Sendable, CaseIterable {
        case crc32
        /// CRC-32C, which object stores report.
        case crc32c
        /// CRC-64/NVME, which object stores report.
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
    /// The digest in lower-case hexadecimal.
    public let hex: String

    /// Parses `ALGORITHM=HEX`, such as `sha256=9f86…`; `nil` if the text is malformed.
    public init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2,
            let algorithm = Algorithm(rawValue: parts[0].lowercased().filter { $0 != "-" })
        else { return nil }
        self.init(algorithm, hex: String(parts[1]))
    }

    /// Creates a digest; `nil` unless `hex` has exactly the algorithm's number of hexadecimal digits.
    public init?(_ algorithm: Algorithm, hex: String) {
        let hex = hex.lowercased()
        guard hex.utf8.count == algorithm.length * 2, hex.utf8.allSatisfy({ Self.isHexDigit($0) }) else { return nil }
        self.algorithm = algorithm
        self.hex = hex
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// Whether the algorithm is collision-resistant (SHA-256 and SHA-512). Another file with the same CRC, MD5 or SHA-1
    /// can be made on purpose.
    var isOfContent: Bool {
        switch self.algorithm {
        case .crc32, .crc32c, .crc64nvme, .md5, .sha1: false
        case .sha256, .sha512: true
        }
    }

    public var description: String { "\(self.algorithm.rawValue)=\(self.hex)" }
}
