import CNettle

/// A salted hash of a ``ResourceName``, which can be stored without revealing a URL.
package struct ResourceFingerprint: Hashable, Sendable {
    /// Random, so that equal resources have different fingerprints in different files.
    package let salt: UInt64
    /// The first 16 bytes of the SHA-256 of salt and name.
    package let hash: [UInt8]

    /// 16: no two names collide by accident, and the extended attribute has room for it.
    package static let hashLength = 16

    /// A fingerprint as it was stored; nil if the hash has another length.
    package init?(salt: UInt64, hash: [UInt8]) {
        guard hash.count == Self.hashLength else { return nil }
        self.salt = salt
        self.hash = hash
    }

    package init(of name: ResourceName, salt: UInt64) {
        var bytes = ByteWriter()
        bytes.write(salt)
        bytes.write(name.requested)
        bytes.write(name.target)
        var context = sha256_ctx()
        nettle_sha256_init(&context)
        nettle_sha256_update(&context, bytes.bytes.count, bytes.bytes)
        var hash = [UInt8](repeating: 0, count: Self.hashLength)
        nettle_sha256_digest(&context, hash.count, &hash)
        self.salt = salt
        self.hash = hash
    }
}

extension ResourceFingerprint {
    /// Salt and hash in hexadecimal digits, as the extended attribute has them.
    package var text: String {
        ((0..<8).map { UInt8(truncatingIfNeeded: self.salt >> (8 * $0)) } + self.hash).hex
    }

    /// Nil for anything that ``text`` does not make.
    package init?(text: Substring) {
        let digits = Array(text.utf8)
        guard digits.count == 2 * (8 + Self.hashLength) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index].hexDigitValue, let low = digits[index + 1].hexDigitValue else { return nil }
            bytes.append(high << 4 | low)
        }
        let salt = bytes.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        self.init(salt: salt, hash: Array(bytes.dropFirst(8)))
    }
}
