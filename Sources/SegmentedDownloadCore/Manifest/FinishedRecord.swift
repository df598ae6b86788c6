/// The record of a finished file in its extended attribute: its identity, length and checksums, and no URL.
package struct FinishedRecord: Hashable, Sendable {
    /// The name of the extended attribute.
    package static let attribute = "user.segdl"

    package var resource: RemoteResource
    package var length: Int64
    package var crc: CRC32
    /// The modification time in nanoseconds since 1970.
    package var modified: Int64
    /// The time of the last change of content, attributes or name (`ctime`) in nanoseconds since 1970, when the file had got
    /// its name. `nil` if it is not known, as in records of earlier versions; then the content must be read.
    package var changed: Int64?
    /// Whether the content was synced before the file got its name. If not, a power cut or a removed disk may have left
    /// the name, this record and the time, but not the bytes.
    package var isSynced = true
    /// The CRC-32 of each piece, which locates damage. Empty if the attribute had no room for them.
    package var pieces: [CRC32]
    /// What the request that fetched the file selected it with; nil in records of versions that stored nothing.
    package var selection: RequestSelection?

    /// - Parameter salt: A random salt for the fingerprint of the resource.
    package init(
        resource: RemoteResource, length: Int64, crc: CRC32, modified: Int64, pieces: [CRC32] = [], salt: UInt64 = 0
    ) {
        self.resource = resource
        self.resource.locator = resource.locator?.fingerprint(salt: salt).map { .recorded($0) } ?? .unrecorded
        self.length = length
        self.crc = crc
        self.modified = modified
        self.pieces = pieces
    }

    /// How a request contradicts the one that fetched the file, as a clause for a message; nil if it does not.
    package func contradiction(by values: RequestSelection.Values) -> String? {
        self.selection?.contradiction(by: values, hasStrongTag: self.resource.validator.isStrong)
    }

    /// 256: with eight digits each, the CRCs use half of the 4 KiB that some file systems have for all attributes of a
    /// file.
    private static let piecesMax: Int64 = 256

    /// The length of a piece in a file of the given length: a block, doubled until there are at most ``piecesMax``
    /// pieces.
    package static func pieceLength(of length: Int64) -> Int64 {
        var pieceLength = BlockLayout.blockLength
        while (length - 1) / pieceLength >= Self.piecesMax { pieceLength *= 2 }
        return pieceLength
    }

    /// The pieces of a file in order. The last one may be shorter.
    package static func pieceRanges(of length: Int64) -> [Range<Int64>] {
        let pieceLength = Self.pieceLength(of: length)
        return stride(from: 0, to: length, by: Int64.Stride(pieceLength)).map { $0..<min($0 + pieceLength, length) }
    }

    /// The attribute's value: lines of `name value`.
    ///
    /// The resource's name is stored only as a fingerprint. Statements are never left out: without room for them there is no
    /// record.
    package var encoded: [UInt8] {
        var lines = [
            "segdl 1", "length \(self.length)", "crc32 \(self.crc.value)", "modified \(self.modified)",
        ]
        if let changed = self.changed { lines.append("changed \(changed)") }
        if !self.isSynced { lines.append("sync none") }
        if !self.pieces.isEmpty {
            lines.append("pieces " + self.pieces.map(\.hex).joined())
        }
        let (resource, validator) = (self.resource, self.resource.validator)
        if let tag = validator.entityTag { lines.append("etag \(tag.fieldValue)") }
        if let date = validator.lastModified { lines.append("last-modified \(date.secondsSinceEpoch)") }
        // Lines of their own: versions that lack them read the others.
        if validator.isDateWeak { lines.append("last-modified-weak 1") }
        if let tag = validator.malformedTag { lines.append("etag-malformed \(tag.digits)") }
        if let date = validator.malformedDate { lines.append("last-modified-malformed \(date.digits)") }
        if case .recorded(let fingerprint)? = resource.locator {
            lines.append("resource \(fingerprint.text)")
            if let parts = fingerprint.parts { lines.append("resource-parts \(parts.text)") }
        }
        if let coding = resource.contentEncoding { lines.append("content-encoding \(coding)") }
        if let length = resource.wholeLength { lines.append("whole-length \(length)") }
        if let begunAt = resource.begunAt { lines.append("begun \(begunAt.secondsSinceEpoch)") }
        if !resource.digests.isEmpty {
            lines.append("\(Self.digestsKey(resource)) " + resource.digests.map(\.description).joined(separator: " "))
        }
        if let selection { lines.append("request \(selection.text)") }
        return Array(lines.joined(separator: "\n").utf8)
    }

    /// Parses an attribute's value. Nil for a format that this version does not write.
    package init?(decoding bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        // Splits at bytes: a line end or space followed by a combining accent is another `Character`.
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
            lastModified: values["last-modified"].flatMap { Int64($0) }.flatMap { HTTPDate(secondsSinceEpoch: $0) },
            malformedTag: values["etag-malformed"].flatMap { MalformedFields(digits: $0) },
            malformedDate: values["last-modified-malformed"].flatMap { MalformedFields(digits: $0) },
            isDateWeak: values["last-modified-weak"] != nil
        )
        self.resource = RemoteResource(
            completeLength: length, validator: validator,
            contentEncoding: values["content-encoding"].map { String($0) },
            locator: values["resource"].flatMap { ResourceFingerprint(text: $0, parts: values["resource-parts"]) }
                .map { .recorded($0) } ?? .unrecorded,
            wholeLength: values["whole-length"].flatMap { Int64($0) }
        )
        self.resource.begunAt = values["begun"].flatMap { Int64($0) }.flatMap { HTTPDate(secondsSinceEpoch: $0) }
        self.resource.state(
            Self.split(values[Self.digestsKey(self.resource)] ?? "", at: " ").compactMap { ExpectedDigest(String($0)) })
        self.selection = values["request"].flatMap { RequestSelection(text: $0) }
        self.length = length
        self.crc = CRC32(value: crc)
        self.modified = modified
        self.changed = values["changed"].flatMap { Int64($0) }
        self.isSynced = values["sync"] != "none"
        self.pieces = values["pieces"].map { Self.pieces($0, of: length) } ?? []
    }

    /// The name of the value with the digests that were stated. Earlier versions stored those of a part itself as `digests`.
    private static func digestsKey(_ resource: RemoteResource) -> Substring {
        resource.isPart ? "whole-digests" : "digests"
    }

    /// Empty unless the digits contain exactly the pieces of a file of this length.
    private static func pieces(_ digits: Substring, of length: Int64) -> [CRC32] {
        let bytes = Array(digits.utf8)
        guard bytes.count % 8 == 0, bytes.count / 8 <= Self.piecesMax, length <= .max / 2,
            bytes.count / 8 == Self.pieceRanges(of: length).count
        else { return [] }
        let values = stride(from: 0, to: bytes.count, by: 8).compactMap { start in
            UInt32(String(decoding: bytes[start..<(start + 8)], as: UTF8.self), radix: 16)
        }
        return values.count * 8 == bytes.count ? values.map { CRC32(value: $0) } : []
    }

    private static func split(_ text: Substring, at separator: Unicode.Scalar, maxSplits: Int = .max) -> [Substring] {
        text.utf8.split(separator: UInt8(ascii: separator), maxSplits: maxSplits, omittingEmptySubsequences: false)
            .map { Substring($0) }
    }
}
