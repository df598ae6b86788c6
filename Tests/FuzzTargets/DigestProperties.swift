import SegmentedDownload

/// An accepted digest has all its digits, prints back to itself, and is the one in the text.
enum DigestProperties {
    /// A switch and not a table, so that a new algorithm does not compile without its length.
    private static func digitCount(of algorithm: ExpectedDigest.Algorithm) -> Int {
        switch algorithm {
        case .crc32, .crc32c: 8
        case .crc64nvme: 16
        case .md5: 32
        case .sha1: 40
        case .sha256: 64
        case .sha512: 128
        }
    }

    static func check(_ bytes: [UInt8]) throws(Violation) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let digest = ExpectedDigest(text) else { return }
        let hex = Array(digest.hex.utf8)
        try require(hex.count == Self.digitCount(of: digest.algorithm), "\(digest) has \(hex.count) digits")
        try require(
            hex.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) },
            "\(digest) is not lowercase hexadecimal")
        try require(ExpectedDigest("\(digest)") == digest, "\(digest) does not print back")
        try require(
            Reference.lowercased(text.utf8.suffix(hex.count)) == hex, "\(text.debugDescription) is not \(digest)")
        let name = Reference.lowercased(text.utf8.dropLast(hex.count + 1)).filter { $0 != 0x2D }
        try require(name == Array(digest.algorithm.rawValue.utf8), "\(text.debugDescription) is not \(digest)")
    }
}
