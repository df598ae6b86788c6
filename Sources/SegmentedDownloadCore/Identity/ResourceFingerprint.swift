import CNettle

/// Salted hashes of a ``ResourceName``, which can be stored without revealing the URL.
package struct ResourceFingerprint: Hashable, Sendable {
    /// Random, so that the same resource has different fingerprints in different files.
    package let salt: UInt64
    /// The first 16 bytes of SHA-256 over the salt and the name.
    package let hash: [UInt8]
    /// What is stored of the parts of the name; nil in files of versions that stored none.
    package let parts: Parts?

    /// Hashes of the parts of a name.
    package struct Parts: Hashable, Sendable {
        /// The first 16 bytes of SHA-256 over the salt and the requested URL.
        package let requested: [UInt8]
        /// The first 2 bytes of SHA-256 over the salt and the target's origin. So short because a list of host names would
        /// reveal it otherwise. Of 65,536 other origins one looks like the same, which only refuses to resume.
        package let origin: UInt16

        package init?(requested: [UInt8], origin: UInt16) {
            guard requested.count == ResourceFingerprint.hashLength else { return nil }
            self.requested = requested
            self.origin = origin
        }
    }

    /// 16 bytes: names do not collide by accident, and the extended attribute has room for it.
    package static let hashLength = 16

    /// Restores a stored fingerprint. Nil if the hash has another length.
    package init?(salt: UInt64, hash: [UInt8], parts: Parts? = nil) {
        guard hash.count == Self.hashLength else { return nil }
        self.salt = salt
        self.hash = hash
        self.parts = parts
    }

    package init(of name: ResourceName, salt: UInt64) {
        self.salt = salt
        self.hash = Self.hash(of: [name.requested, name.target], salt: salt)
        let origin = Self.hash(of: ["origin", String(name.origin)], salt: salt)
        self.parts = Parts(
            requested: Self.hash(of: ["requested", name.requested], salt: salt),
            origin: UInt16(origin[0]) | UInt16(origin[1]) << 8)
    }

    /// The first 16 bytes of SHA-256 over the salt and the texts.
    package static func hash(of texts: [String], salt: UInt64) -> [UInt8] {
        var bytes = ByteWriter()
        bytes.write(salt)
        for text in texts { bytes.write(text) }
        var context = sha256_ctx()
        nettle_sha256_init(&context)
        nettle_sha256_update(&context, bytes.bytes.count, bytes.bytes)
        var hash = [UInt8](repeating: 0, count: Self.hashLength)
        nettle_sha256_digest(&context, hash.count, &hash)
        return hash
    }
}

extension ResourceFingerprint {
    /// The salt and the hash in hexadecimal digits, as stored in the extended attribute.
    package var text: String {
        ((0..<8).map { UInt8(truncatingIfNeeded: self.salt >> (8 * $0)) } + self.hash).hex
    }

    /// Parses ``text`` and ``Parts/text``. Nil for any other form.
    package init?(text: Substring, parts: Substring? = nil) {
        guard let bytes = Self.bytes(text), bytes.count == 8 + Self.hashLength else { return nil }
        let salt = bytes.prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        self.init(salt: salt, hash: Array(bytes.dropFirst(8)), parts: parts.flatMap { Parts(text: $0) })
    }

    static func bytes(_ text: Substring) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index].hexDigitValue, let low = digits[index + 1].hexDigitValue else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}

extension ResourceFingerprint.Parts {
    /// Both hashes in hexadecimal digits, as stored in the extended attribute.
    package var text: String {
        (self.requested + [UInt8(truncatingIfNeeded: self.origin), UInt8(self.origin >> 8)]).hex
    }

    /// Parses ``text``. Nil for any other form.
    package init?(text: Substring) {
        guard let bytes = ResourceFingerprint.bytes(text), bytes.count == ResourceFingerprint.hashLength + 2 else {
            return nil
        }
        self.init(requested: Array(bytes.dropLast(2)), origin: UInt16(bytes[16]) | UInt16(bytes[17]) << 8)
    }
}
