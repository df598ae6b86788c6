/// The encoding of a locator: a byte for its kind, then the salt and hash of a fingerprint. Names are stored as
/// fingerprints.
extension ByteWriter {
    mutating func write(_ locator: ResourceLocator?, salt: UInt64) {
        guard let locator else { return self.write(UInt8(0)) }
        guard let fingerprint = locator.fingerprint(salt: salt) else { return self.write(UInt8(2)) }
        self.write(UInt8(1))
        self.write(fingerprint.salt)
        for byte in fingerprint.hash { self.write(byte) }
    }
}

extension ByteReader {
    /// Nil if the bytes are malformed; `.some(nil)` if there is no locator.
    mutating func readLocator() -> ResourceLocator?? {
        guard let kind: UInt8 = self.read() else { return nil }
        switch kind {
        case 0: return .some(nil)
        case 1:
            guard let salt: UInt64 = self.read() else { return nil }
            var hash: [UInt8] = []
            for _ in 0..<ResourceFingerprint.hashLength {
                guard let byte: UInt8 = self.read() else { return nil }
                hash.append(byte)
            }
            return ResourceFingerprint(salt: salt, hash: hash).map { .recorded($0) }
        case 2: return .unrecorded
        default: return nil
        }
    }
}
