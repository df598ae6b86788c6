/// The values of an `ETag` or `Last-Modified` field that do not parse: unquoted tags, other date formats, repeated
/// fields.
///
/// They are compared byte for byte. `String` would treat composed and decomposed accents as equal.
package struct MalformedFields: Hashable, Sendable {
    private let bytes: [UInt8]

    /// Separates the values of repeated fields. No field value can contain it.
    private static let separator = "\n"

    /// Nil if there is no such field.
    init?(_ values: [String]) {
        guard !values.isEmpty else { return nil }
        self.bytes = Array(values.joined(separator: Self.separator).utf8)
    }

    /// Restores values from the text that ``stored`` returned.
    package init(stored text: String) {
        self.bytes = Array(text.utf8)
    }

    package var stored: String { String(decoding: self.bytes, as: UTF8.self) }
}

extension MalformedFields: CustomStringConvertible {
    package var description: String { self.stored.printable }
}
