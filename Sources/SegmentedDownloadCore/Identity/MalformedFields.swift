/// The values of a validator field that cannot be read as one: unquoted tags, other date formats, repeated fields.
///
/// Compared byte for byte. `String` would take composed and decomposed accents for the same.
package struct MalformedFields: Hashable, Sendable {
    private let bytes: [UInt8]

    /// Between the values of repeated fields: no field value contains it.
    private static let separator = "\n"

    /// Nil if there was no such field.
    init?(_ values: [String]) {
        guard !values.isEmpty else { return nil }
        self.bytes = Array(values.joined(separator: Self.separator).utf8)
    }

    /// The values as they are stored.
    package init(stored text: String) {
        self.bytes = Array(text.utf8)
    }

    package var stored: String { String(decoding: self.bytes, as: UTF8.self) }
}

extension MalformedFields: CustomStringConvertible {
    package var description: String { self.stored.printable }
}
