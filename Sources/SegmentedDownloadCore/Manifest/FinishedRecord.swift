/// What a finished file says about itself in its extended attribute: enough to know it again, and no URL.
package struct FinishedRecord: Hashable, Sendable {
    /// The attribute's name.
    package static let attribute = "user.segdl"

    package var resource: RemoteResource
    package var length: Int64
    package var crc: CRC32
    /// When the content was last changed, in nanoseconds since 1970: if it still is, nothing need be read.
    package var modified: Int64

    package init(resource: RemoteResource, length: Int64, crc: CRC32, modified: Int64) {
        self.resource = resource
        self.length = length
        self.crc = crc
        self.modified = modified
    }

    /// Lines of `name value`, as the attribute holds them.
    package var encoded: [UInt8] {
        var lines = [
            "segdl 1", "length \(self.length)", "crc32 \(self.crc.value)", "modified \(self.modified)",
        ]
        if let tag = self.resource.validator.entityTag { lines.append("etag \(tag.fieldValue)") }
        if let date = self.resource.validator.lastModified { lines.append("last-modified \(date.secondsSinceEpoch)") }
        if let coding = self.resource.contentEncoding { lines.append("content-encoding \(coding)") }
        return Array(lines.joined(separator: "\n").utf8)
    }

    /// Reads an attribute's value; absent for anything this version did not write.
    package init?(decoding bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        // At bytes, not characters: a line end or space with an accent on it is another `Character`.
        var lines = Self.split(text[...], at: "\n")[...]
        guard lines.popFirst() == "segdl 1" else { return nil }
        var values: [Substring: Substring] = [:]
        for line in lines {
            let fields = Self.split(line, at: " ", maxSplits: 1)
            guard fields.count == 2, values.updateValue(fields[1], forKey: fields[0]) == nil else { return nil }
        }
        guard let length = values["length"].flatMap({ Int64($0) }), length >= 0,
            let crc = values["crc32"].flatMap({ UInt32($0) }), let modified = values["modified"].flatMap({ Int64($0) })
        else { return nil }
        let validator = Validator(
            entityTag: values["etag"].flatMap { EntityTag(fieldValue: String($0)) },
            lastModified: values["last-modified"].flatMap { Int64($0) }.flatMap { HTTPDate(secondsSinceEpoch: $0) }
        )
        self.resource = RemoteResource(
            completeLength: length, validator: validator, contentEncoding: values["content-encoding"].map { String($0) }
        )
        self.length = length
        self.crc = CRC32(value: crc)
        self.modified = modified
    }

    private static func split(_ text: Substring, at separator: Unicode.Scalar, maxSplits: Int = .max) -> [Substring] {
        text.utf8.split(separator: UInt8(ascii: separator), maxSplits: maxSplits, omittingEmptySubsequences: false)
            .map { Substring($0) }
    }
}
