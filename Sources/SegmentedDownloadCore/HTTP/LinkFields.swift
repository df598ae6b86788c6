package import HTTPTypes

/// The mirrors, the metalink and the next page that a response names in its `Link` fields (RFC 6249; syntax of RFC 8288).
///
/// Targets are as the server sent them, possibly relative, and untrusted. A malformed field is parsed up to the first
/// error. Links with other relation types, and links with an `anchor` parameter, which apply to another resource, are
/// ignored.
package struct LinkFields: Hashable, Sendable {
    /// URLs of the same bytes (`rel=duplicate`), best priority first, without duplicates.
    package let duplicates: [String]
    /// The URL of a metalink that describes the file (`rel=describedby`, type `application/metalink4+xml`).
    package let metalink: String?
    /// The URL of the next page of a list (`rel=next`).
    package let next: String?

    /// 1000: mirror networks list a few dozen. The limit bounds the search for duplicates.
    package static let linksMax = 1000
    /// 8 KiB: servers reject URLs of this length.
    private static let targetLengthMax = 1 << 13
    /// RFC 8288 and RFC 6249 define about a dozen parameters.
    private static let parametersMax = 32

    package init(_ fields: HTTPFields) {
        self.init(fieldValues: Self.link.map { fields[values: $0] } ?? [])
    }

    /// - Parameter fieldValues: The `Link` field values in the order received.
    package init(fieldValues: [String]) {
        var found: [(priority: Int64, target: String)] = []
        var metalink: String?
        var next: String?
        var linksCount = 0
        for value in fieldValues {
            var reader = FieldValueReader(value)
            while linksCount < Self.linksMax, let link = Self.takeLink(&reader) {
                linksCount += 1
                guard !link.target.isEmpty, link.target.utf8.count <= Self.targetLengthMax, link["anchor"] == nil else {
                    continue
                }
                if link.relations.contains(Array("duplicate".utf8)) {
                    found.append((link.priority, link.target))
                }
                if metalink == nil, link.relations.contains(Array("describedby".utf8)), link.isMetalink {
                    metalink = link.target
                }
                if next == nil, link.relations.contains(Array("next".utf8)) { next = link.target }
            }
        }
        var known: Set<String> = []
        self.duplicates = found.enumerated()
            .sorted { ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset) }
            .map(\.element.target).filter { known.insert($0).inserted }
        self.metalink = metalink
        self.next = next
    }

    private static let link = HTTPField.Name("Link")

    /// One link, such as `<target>; name=value; name="value"`.
    private struct Link {
        let target: String
        /// Names are in lower case. If a name is repeated, the first value counts (RFC 8288 §3.3).
        var parameters: [(name: String, value: String)] = []

        subscript(name: String) -> String? { self.parameters.first { $0.name == name }?.value }

        /// The relation types, in lower case (RFC 8288 §3.3).
        var relations: [[UInt8]] {
            self["rel"]?.asciiLowercased.split { $0.isFieldWhitespace }.map { Array($0) } ?? []
        }

        /// 1 (best) to 999999, which is the default (RFC 6249 §3.1).
        var priority: Int64 {
            guard let text = self["pri"], let number = DecimalDigits(text.utf8)?.exact, (1...999_999).contains(number)
            else { return 999_999 }
            return number
        }

        var isMetalink: Bool {
            guard let type = self["type"]?.asciiLowercased else { return false }
            let essence = type[...].prefix { $0 != UInt8(ascii: ";") }.trimmingFieldWhitespace
            return essence.elementsEqual("application/metalink4+xml".utf8)
        }
    }

    /// Reads the next link of a field. Nil at the end of the field or at the first syntax error.
    private static func takeLink(_ reader: inout FieldValueReader) -> Link? {
        // A list may have empty elements (RFC 9110 §5.6.1.2).
        _ = reader.take { $0 == UInt8(ascii: ",") || $0.isFieldWhitespace }
        guard reader.skip("<") else { return nil }
        let target = reader.take { $0 != UInt8(ascii: ">") && $0 > 0x20 && $0 != 0x7F }
        guard reader.skip(">") else { return nil }
        var link = Link(target: String(Substring(target)))
        while true {
            reader.skipWhitespace()
            guard reader.skip(";") else { break }
            reader.skipWhitespace()
            guard let name = reader.takeParameterName() else { continue }  // Skips a stray semicolon.
            reader.skipWhitespace()
            var value = ""
            if reader.skip("=") {
                reader.skipWhitespace()
                guard let taken = reader.takeParameterValue() else { return nil }
                value = taken
            }
            guard link.parameters.count < Self.parametersMax else { return nil }
            link.parameters.append((name, value))
        }
        guard reader.isAtEnd || reader.next == UInt8(ascii: ",") else { return nil }
        return link
    }
}
