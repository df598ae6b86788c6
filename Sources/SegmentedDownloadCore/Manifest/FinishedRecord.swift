/// What a finished file says about itself in its extended attribute: enough to know it again, and no URL.
package struct FinishedRecord: Hashable, Sendable {
    /// The attribute's name.
    package static let attribute = "user.segdl"

    package var resource: RemoteResource
    package var length: Int64
    package var crc: CRC32
    /// When the content was last changed, in nanoseconds since 1970: if it still is, nothing need be read.
    package var modified: Int64
    /// The CRC-32 of each of its pieces, by which damage is found where it is; none if there was no room for them.
    package var pieces: [CRC32]

    /// - Parameter salt: Random, for the fingerprint of the resource.
    package init(
        resource: RemoteResource, length: Int64, crc: CRC32, modified: Int64, pieces: [CRC32] = [], salt: UInt64 = 0
    ) {
        self.resource = resource
        self.resource.validator = Validator(
            entityTag: resource.validator.entityTag, lastModified: resource.validator.lastModified)
        self.resource.locator = resource.locator?.fingerprint(salt: salt).map { .recorded($0) } ?? .unrecorded
        self.length = length
        self.crc = crc
        self.modified = modified
        self.pieces = pieces
    }

    /// 256: with eight digits each they leave half of the 4 KiB that a file system may have for all attributes of a file.
    private static let piecesMax: Int64 = 256

    /// The length of the pieces of a file of some length: a block's, or twice that, and so on, for as few as there is room for.
    package static func pieceLength(of length: Int64) -> Int64 {
        var pieceLength = BlockLayout.blockLength
        while (length - 1) / pieceLength >= Self.piecesMax { pieceLength *= 2 }
        return pieceLength
    }

    /// The pieces of a file, in order; the last one may be shorter.
    package static func pieceRanges(of length: Int64) -> [Range<Int64>] {
        let pieceLength = Self.pieceLength(of: length)
        return stride(from: 0, to: length, by: Int64.Stride(pieceLength)).map { $0..<min($0 + pieceLength, length) }
    }

    /// Lines of `name value`, as the attribute holds them. Of validators only those are stored that can prove sameness,
    /// and of the resource's name only its fingerprint.
    package var encoded: [UInt8] {
        var lines = [
            "segdl 1", "length \(self.length)", "crc32 \(self.crc.value)", "modified \(self.modified)",
        ]
        if !self.pieces.isEmpty {
            lines.append("pieces " + self.pieces.map(\.hex).joined())
        }
        if let tag = self.resource.validator.entityTag { lines.append("etag \(tag.fieldValue)") }
        if let date = self.resource.validator.lastModified { lines.append("last-modified \(date.secondsSinceEpoch)") }
        if case .recorded(let fingerprint)? = self.resource.locator {
            lines.append("resource \(fingerprint.text)")
        }
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
            completeLength: length, validator: validator,
            contentEncoding: values["content-encoding"].map { String($0) },
            locator: values["resource"].flatMap { ResourceFingerprint(text: $0) }.map { .recorded($0) } ?? .unrecorded
        )
        self.length = length
        self.crc = CRC32(value: crc)
        self.modified = modified
        self.pieces = values["pieces"].map { Self.pieces($0, of: length) } ?? []
    }

    /// What is not exactly the pieces of a file of that length says nothing.
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
