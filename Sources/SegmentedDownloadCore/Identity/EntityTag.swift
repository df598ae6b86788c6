/// An `ETag` field value, such as `"abc"` or `W/"abc"` (RFC 9110 §8.8.3).
///
/// Two tags are equal when they are equal byte for byte and equally strong. That is stricter than `String`, which takes
/// composed and decomposed accents for the same.
package struct EntityTag: Sendable {
    /// What stands between the quotation marks; may be empty.
    package let opaque: String
    package let isWeak: Bool

    /// Strict: quoted, no space, no control character, and `W/` in upper case.
    package init?(fieldValue: String) {
        var reader = FieldValueReader(fieldValue)
        let isWeak = reader.skip("W/")
        guard reader.skip("\"") else { return nil }
        let opaque = String(Substring(reader.take { $0.isEntityTagCharacter }))
        guard reader.skip("\""), reader.isAtEnd else { return nil }
        // Bytes that are not UTF-8 arrive here as replacement characters: different tags would look the same.
        guard !opaque.unicodeScalars.contains("\u{FFFD}") else { return nil }
        self.opaque = opaque
        self.isWeak = isWeak
    }

    package var fieldValue: String { self.isWeak ? "W/\"\(self.opaque)\"" : "\"\(self.opaque)\"" }
}

extension EntityTag: Hashable {
    package static func == (left: EntityTag, right: EntityTag) -> Bool {
        left.isWeak == right.isWeak && left.opaque.utf8.elementsEqual(right.opaque.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(self.isWeak)
        for byte in self.opaque.utf8 {
            hasher.combine(byte)
        }
    }
}

extension UInt8 {
    /// `etagc` of RFC 9110 §8.8.3: visible ASCII without the quotation mark, and anything above ASCII.
    fileprivate var isEntityTagCharacter: Bool { self == 0x21 || 0x23...0x7E ~= self || self >= 0x80 }
}
