package import HTTPTypes

/// What a server says in `Link` fields of where else a file is to be had (RFC 6249), by the syntax of RFC 8288.
///
/// Targets are as the server wrote them, relative ones too, and not to be trusted. A field that breaks the grammar counts as far as
/// it is understood; links of other relations, or of another resource than the one that was asked for, do not count.
package struct LinkFields: Hashable, Sendable {
    /// Other places of the same bytes (`rel=duplicate`), the best one first, none twice.
    package let duplicates: [String]
    /// A metalink of the file (`rel=describedby` of type `application/metalink4+xml`).
    package let metalink: String?

    /// 1000: mirror networks name some dozens; the limit bounds the search for duplicates.
    package static let linksMax = 1000
    /// In bytes; servers take no URL of that length.
    private static let targetLengthMax = 1 << 13
    /// RFC 8288 and RFC 6249 define nine between them.
    private static let parametersMax = 32

    package init(_ fields: HTTPFields) {
        self.init(fieldValues: Self.link.map { fields[values: $0] } ?? [])
    }

    /// - Parameter fieldValues: In the order received.
    package init(fieldValues: [String]) {
        var found: [(priority: Int64, target: String)] = []
        var metalink: String?
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
            }
        }
        var known: Set<String> = []
        self.duplicates = found.enumerated()
            .sorted { ($0.element.priority, $0.offset) < ($1.element.priority, $1.offset) }
            .map(\.element.target).filter { known.insert($0).inserted }
        self.metalink = metalink
    }

    private static let link = HTTPField.Name("Link")

    /// One link: `<target>; name=value; name="value"`.
    private struct Link {
        let target: String
        /// Names in lower case; of those that come twice the first counts (RFC 8288 §3.3).
        var parameters: [(name: String, value: String)] = []

        subscript(name: String) -> String? { self.parameters.first { $0.name == name }?.value }

        /// The relation types, in lower case (RFC 8288 §3.3).
        var relations: [[UInt8]] {
            self["rel"]?.asciiLowercased.split { $0.isFieldWhitespace }.map { Array($0) } ?? []
        }

        /// 1 is the best, and 999999 the default (RFC 6249 §3.1).
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

    /// The next link of a field; nil where there is none, or none that is understood.
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
            guard let name = reader.takeParameterName() else { continue }  // A stray semicolon.
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

extension FieldValueReader {
    /// A token in lower case; nil where there is none.
    fileprivate mutating func takeParameterName() -> String? {
        let name = self.take { $0.isTokenCharacter }
        return name.isEmpty ? nil : String(decoding: name.map(\.asciiLowercased), as: UTF8.self)
    }

    /// A quoted string (RFC 9110 §5.6.4), or what stands for itself: also without quotation marks where there should be some, as in
    /// `type=application/metalink4+xml`. Nil for a quoted string that does not end.
    fileprivate mutating func takeParameterValue() -> String? {
        if self.next == UInt8(ascii: "\"") { return self.takeQuotedString() }
        return String(Substring(self.take { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",") && $0 > 0x20 }))
    }
}
