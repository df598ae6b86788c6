/// What a request selects the representation with besides its URL: header fields, credentials, and the address of the host.
///
/// A response depends on all of them (RFC 9110 §12), so the same URL may have other bytes for another request. Only salted
/// hashes of the values are stored. Names are stored as they are, so that a message can say what is missing.
package struct RequestSelection: Hashable, Sendable {
    /// The values by name: the name of a header field in lower case, or one of those below, which no field can have.
    package typealias Values = [String: String]

    /// The user name of credentials. A password may change without selecting another representation.
    package static let user = ":user name"
    /// The address that connections to the URL's host are made to.
    package static let address = ":address"

    /// Random, so that equal values of different files have different hashes.
    package let salt: UInt64
    /// The first 16 bytes of SHA-256 over salt, name and value, by name.
    package let hashes: [String: [UInt8]]

    package init(_ values: Values, salt: UInt64) {
        self.salt = salt
        self.hashes = Dictionary(
            uniqueKeysWithValues: values.map { ($0, ResourceFingerprint.hash(of: [$0, $1], salt: salt)) })
    }

    package init(salt: UInt64, hashes: [String: [UInt8]]) {
        self.salt = salt
        self.hashes = hashes
    }

    /// How another request contradicts this one, as a clause for a message; nil if it does not.
    ///
    /// - Parameters:
    ///   - values: The other request's values.
    ///   - hasStrongTag: Whether a strong tag identifies the bytes. It then decides about other cookies and tokens: they
    ///     change from login to login.
    package func contradiction(by values: Values, hasStrongTag: Bool) -> String? {
        let other = RequestSelection(values, salt: self.salt).hashes
        let matters = { (name: String) in !(hasStrongTag && Self.changing.contains(name)) }
        let missing = self.hashes.keys.filter { other[$0] == nil }
        let changed = self.hashes.filter { other[$0.key] != nil && other[$0.key] != $0.value }.keys.filter(matters)
        let added = other.keys.filter { self.hashes[$0] == nil && matters($0) }
        let parts = [("without its", missing), ("with another", changed), ("with a", added)].compactMap {
            words, names in
            names.isEmpty ? nil : "\(words) \(names.sorted().map(Self.shown).joined(separator: ", "))"
        }
        return parts.isEmpty ? nil : parts.joined(separator: " and ")
    }

    /// Fields whose values change from login to login.
    private static let changing: Set = ["authorization", "cookie"]

    private static func shown(_ name: String) -> String {
        name.first == ":" ? String(name.dropFirst()) : name.printable
    }

    /// What must be given again to resume, for a message; empty if nothing was given.
    package var names: [String] { self.hashes.keys.sorted().map(Self.shown) }
}

extension RequestSelection {
    /// The salt, and each name with its hash in hexadecimal digits, as stored in the extended attribute.
    package var text: String {
        let salt = (0..<8).map { UInt8(truncatingIfNeeded: self.salt >> (8 * $0)) }.hex
        let selectors = self.hashes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.hex)" }
        return ([salt] + selectors).joined(separator: ";")
    }

    /// Parses ``text``. Nil for any other form.
    package init?(text: some StringProtocol) {
        let words = Substring(text).split(separator: ";")
        guard let first = words.first, let salt = ResourceFingerprint.bytes(first), salt.count == 8 else { return nil }
        var hashes: [String: [UInt8]] = [:]
        for word in words.dropFirst() {
            let fields = word.split(separator: "=", maxSplits: 1)
            guard fields.count == 2, let hash = ResourceFingerprint.bytes(fields[1]),
                hash.count == ResourceFingerprint.hashLength,
                hashes.updateValue(hash, forKey: String(fields[0])) == nil
            else { return nil }
        }
        self.init(salt: salt.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }, hashes: hashes)
    }
}
