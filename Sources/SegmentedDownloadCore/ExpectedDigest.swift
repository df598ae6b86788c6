/// A digest that a file must have.
public struct ExpectedDigest: Hashable, Sendable, CustomStringConvertible {
    /// The digests that can be checked.
    public enum Algorithm: String, Codable, Hashable, Sendable, CaseIterable {
        case crc32
        /// CRC-32C (RFC 3720 §12.1), as object stores state it.
        case crc32c
        /// CRC-64/NVME, as object stores state it.
        case crc64nvme
        case md5, sha1, sha256, sha512

        /// The digest's length in bytes.
        package var length: Int {
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
    /// The field in which a server has stated it, such as `Content-MD5`; nil for any other digest. Digests that differ in it
    /// alone are equal.
    package var field: String?

    /// Reads `ALGORITHM=HEX`, such as `sha256=9f86…`. Nil if the algorithm is unknown or the digits do not fit it.
    public init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2,
            let algorithm = Algorithm(rawValue: parts[0].lowercased().filter { $0 != "-" })
        else { return nil }
        self.init(algorithm, hex: String(parts[1]))
    }

    /// Nil unless `hex` has exactly as many hexadecimal digits as the algorithm.
    public init?(_ algorithm: Algorithm, hex: String) {
        let hex = hex.lowercased()
        guard hex.utf8.count == algorithm.length * 2, hex.utf8.allSatisfy({ Self.isHexDigit($0) }) else { return nil }
        self.algorithm = algorithm
        self.hex = hex
    }

    public static func == (lhs: ExpectedDigest, rhs: ExpectedDigest) -> Bool {
        lhs.algorithm == rhs.algorithm && lhs.hex == rhs.hex
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.algorithm)
        hasher.combine(self.hex)
    }

    /// The same digest, stated in a field of a response.
    package func stated(in field: String) -> ExpectedDigest {
        var stated = self
        stated.field = field
        return stated
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    /// Whether no two different files are known to have the same one. CRCs collide by accident, MD5 and SHA-1 on purpose.
    package var isCollisionResistant: Bool {
        switch self.algorithm {
        case .crc32, .crc32c, .crc64nvme, .md5, .sha1: false
        case .sha256, .sha512: true
        }
    }

    public var description: String { "\(self.algorithm.rawValue)=\(self.hex)" }
}

/// As text, such as `sha256=9f86…`.
extension ExpectedDigest: Codable {
    public init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        let text = try value.decode(String.self)
        guard let digest = Self(text) else {
            throw DecodingError.dataCorruptedError(in: value, debugDescription: "not ALGORITHM=HEX")
        }
        self = digest
    }

    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        try value.encode(self.description)
    }
}
