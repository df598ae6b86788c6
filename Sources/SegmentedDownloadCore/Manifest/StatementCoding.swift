/// The encoding of what a header states beside its fixed fields: a number of entries, each with a tag, a length and bytes.
///
/// An entry of an unknown tag is skipped, so that a later version can add some without a version of its own.
extension ByteWriter {
    mutating func write(statementsOf header: Manifest.Header) {
        let resource = header.resource
        var entries: [(StatementTag, ByteWriter)] = []
        func add(_ tag: StatementTag, _ write: (inout ByteWriter) -> Void) {
            var bytes = ByteWriter()
            write(&bytes)
            entries.append((tag, bytes))
        }
        if let part = header.label.part { add(.part) { $0.write(part) } }
        if let length = resource.wholeLength { add(.wholeLength) { $0.write(length) } }
        if let date = resource.begunAt { add(.begunAt) { $0.write(date.secondsSinceEpoch) } }
        if let parts = resource.locator?.fingerprint(salt: header.id)?.parts {
            add(.resourceParts) { $0.write(parts.text) }
        }
        for place in resource.elsewhere {
            guard let fingerprint = place.locator.fingerprint(salt: header.id) else { continue }
            add(.elsewhere) { bytes in
                bytes.write(fingerprint.text)
                bytes.write(fingerprint.parts?.text)
                bytes.write(place.validator.entityTag?.fieldValue)
                bytes.write(place.validator.malformedTag?.stored)
                bytes.write(place.validator.lastModified?.fieldValue)
                bytes.write(place.validator.malformedDate?.stored)
                bytes.write(UInt8(place.validator.isDateWeak ? 1 : 0))
            }
        }
        if let selection = header.selection { add(.selection) { $0.write(selection.text) } }
        if let pieces = header.pieces {
            add(.pieces) { bytes in
                bytes.write(pieces.algorithm.rawValue)
                bytes.write(pieces.length)
                bytes.write(pieces.hexes.joined())
            }
        }
        self.write(UInt32(entries.count))
        for (tag, bytes) in entries {
            self.write(tag.rawValue)
            self.write(UInt32(bytes.bytes.count))
            self.bytes += bytes.bytes
        }
    }
}

/// What an entry states.
enum StatementTag: UInt8 {
    case part = 1
    case wholeLength = 2
    case begunAt = 3
    case resourceParts = 4
    case elsewhere = 5
    case selection = 6
    case pieces = 7
}

extension ByteReader {
    /// Returns false if the bytes are malformed.
    mutating func readStatements(into header: inout Manifest.Header) -> Bool {
        guard let count: UInt32 = self.read() else { return false }
        var elsewhere: [RemoteResource.Elsewhere] = []
        for _ in 0..<count {
            guard let tag: UInt8 = self.read(), let length: UInt32 = self.read(),
                let bytes = self.read(count: Int(length))
            else { return false }
            guard let known = StatementTag(rawValue: tag) else { continue }
            var entry = ByteReader(bytes[...])
            guard entry.read(known, into: &header, &elsewhere), entry.isAtEnd else { return false }
        }
        header.resource.restore(elsewhere)
        return true
    }

    private mutating func read(
        _ tag: StatementTag, into header: inout Manifest.Header, _ elsewhere: inout [RemoteResource.Elsewhere]
    ) -> Bool {
        switch tag {
        case .part:
            return self.readPart(into: &header.label.part)
        case .wholeLength:
            guard let length: Int64 = self.read(), length >= 0 else { return false }
            header.resource.wholeLength = length
        case .begunAt:
            guard let seconds: Int64 = self.read(), let date = HTTPDate(secondsSinceEpoch: seconds) else {
                return false
            }
            header.resource.begunAt = date
        case .resourceParts:
            guard let text = self.readString(), let parts = ResourceFingerprint.Parts(text: text[...]),
                case .recorded(let stored)? = header.resource.locator
            else { return false }
            header.resource.locator = ResourceFingerprint(salt: stored.salt, hash: stored.hash, parts: parts).map {
                .recorded($0)
            }
        case .elsewhere:
            guard let place = self.readElsewhere() else { return false }
            elsewhere.append(place)
        case .selection:
            guard let selection = self.readString().flatMap({ RequestSelection(text: $0) }) else { return false }
            header.selection = selection
        case .pieces:
            guard let name = self.readString(), let algorithm = ExpectedDigest.Algorithm(rawValue: name),
                let length: Int64 = self.read(), let digits = self.readString(),
                let pieces = PieceDigests(length: length, algorithm: algorithm, joined: digits)
            else { return false }
            header.pieces = pieces
        }
        return true
    }

    private mutating func readElsewhere() -> RemoteResource.Elsewhere? {
        guard let text = self.readString(), let parts = self.readOptionalString(),
            let fingerprint = ResourceFingerprint(text: text[...], parts: parts?[...]),
            let tag = self.readOptionalString(), let malformedTag = self.readOptionalString(),
            let date = self.readOptionalString(), let malformedDate = self.readOptionalString(),
            let isWeak: UInt8 = self.read()
        else { return nil }
        return RemoteResource.Elsewhere(
            locator: .recorded(fingerprint),
            validator: Validator(
                entityTag: tag.flatMap { EntityTag(fieldValue: $0) },
                lastModified: date.flatMap { HTTPDate(fieldValue: $0) },
                malformedTag: malformedTag.map { MalformedFields(stored: $0) },
                malformedDate: malformedDate.map { MalformedFields(stored: $0) }, isDateWeak: isWeak != 0))
    }
}
