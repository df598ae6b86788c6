import CNettle

/// A salted hash of a ``ResourceName``, which can be stored without revealing the URL.
package struct ResourceFingerprint: Hashable, Sendable {
    /// Random, so that the same resource has different fingerprints in different files.
    package let salt: UInt64
    /// The first 16 bytes of SHA-256 over the salt and the name.
    package let hash: [UInt8]

    /// 16 bytes: names do not collide by accident, and the extended attribute has room for it.
    package static let hashLength = 16

    /// Restores a stored fingerprint. Nil if the hash has another length.
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
    /// The salt and the hash in hexadecimal digits, as stored in the extended attribute.
    package var text: String {
        ((0..<8).map { UInt8(truncatingIfNeeded: self.salt >> (8 * $0)) } + self.hash).hex
    }

    /// Parses ``text``. Nil for any other form.
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
