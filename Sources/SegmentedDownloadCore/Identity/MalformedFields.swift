/// The values of an `ETag` or `Last-Modified` field that do not parse: unquoted tags, other date formats, repeated
/// fields.
///
/// They are compared byte for byte. `String` would treat composed and decomposed accents as equal.
package struct MalformedFields: Sendable {
    /// Empty if only ``digits`` are known.
    private let bytes: [UInt8]
    /// The values in hexadecimal digits, or the digits of their hash after `#`.
    package let digits: String

    /// Separates the values of repeated fields. No field value can contain it.
    private static let separator = "\n"

    /// 128 bytes: longer values are stored as their hash, because the extended attribute of a file has little room.
    private static let lengthStored = 128

    /// Nil if there is no such field.
    init?(_ values: [String]) {
        guard !values.isEmpty else { return nil }
        self.init(stored: values.joined(separator: Self.separator))
    }

    /// Restores values from the text that ``stored`` returned.
    package init(stored text: String) {
        self.bytes = Array(text.utf8)
        self.digits =
            self.bytes.count > Self.lengthStored
            ? "#" + ResourceFingerprint.hash(of: [text], salt: 0).hex : self.bytes.hex
    }

    /// Restores values from ``digits``. Nil for any other form.
    package init?(digits: Substring) {
        guard digits.first != "#" else {
            (self.bytes, self.digits) = ([], String(digits))
            return
        }
        guard let bytes = ResourceFingerprint.bytes(digits) else { return nil }
        (self.bytes, self.digits) = (bytes, String(digits))
    }

    package var stored: String { String(decoding: self.bytes, as: UTF8.self) }
}

extension MalformedFields: Hashable {
    package static func == (left: MalformedFields, right: MalformedFields) -> Bool {
        left.digits.utf8.elementsEqual(right.digits.utf8)
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(self.digits) }
}

extension MalformedFields: CustomStringConvertible {
    package var description: String { self.bytes.isEmpty ? "that is longer" : self.stored.printable }
}
