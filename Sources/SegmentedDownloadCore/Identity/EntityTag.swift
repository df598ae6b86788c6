/// An `ETag` field value, such as `"abc"` or `W/"abc"` (RFC 9110 §8.8.3).
///
/// Two tags are equal if their bytes are equal and both are strong or both weak. `String` is less strict: it treats
/// composed and decomposed accents as equal.
package struct EntityTag: Sendable {
    /// The text between the quotation marks, possibly empty.
    package let opaque: String
    package let isWeak: Bool

    /// Nil unless the value is quoted, contains no space or control character, and has `W/`, if present, in upper case.
    package init?(fieldValue: String) {
        var reader = FieldValueReader(fieldValue)
        let isWeak = reader.skip("W/")
        guard reader.skip("\"") else { return nil }
        let opaque = String(Substring(reader.take { $0.isEntityTagCharacter }))
        guard reader.skip("\""), reader.isAtEnd else { return nil }
        // Bytes that are not UTF-8 arrive as replacement characters, so different tags would look equal.
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
    /// `etagc` of RFC 9110 §8.8.3: visible ASCII except the quotation mark, and all bytes above ASCII.
    fileprivate var isEntityTagCharacter: Bool { self == 0x21 || 0x23...0x7E ~= self || self >= 0x80 }
}
