/// The encoding of a manifest: a checksummed header, then an append-only log of fixed-size records.
///
/// All integers are little-endian. Decoding is total: any bytes give either a manifest with only recorded claims or the
/// reason why there is none. A torn log ends at the first record that does not verify.
package enum ManifestCodec {
    /// The reason why the bytes are not a readable manifest.
    package enum Damage: Error, Hashable, Sendable {
        case notAManifest
        /// The manifest was written by a newer version of segdl.
        case versionUnknown(UInt16)
        case headerDamaged
    }

    /// The version that is written. Earlier ones are read, too: version 1 had no label, 2 no fingerprint of the resource, 3 no
    /// options, 4 is for whole files and 5 for parts of files, both without ``StatementCoding``. Earlier versions of segdl
    /// refuse this one, because they would forget what was stated.
    package static let version: UInt16 = 6
    package static let recordLength = 32

    /// 64 MiB, for the digests of pieces: as long as the longest metalink. A longer header is treated as damage.
    static let headerLengthMaximum = 64 << 20

    /// The first bytes of a manifest.
    package static let magic = Array("SEGDLMAN".utf8)
    private static let prefixLength = 8 + 2 + 4

    /// Precedes a digest that a server stated.
    private static let statedMark: Character = "~"

    /// Precedes a date that is weak. Versions that lack it read two malformed fields, which prove nothing.
    private static let weakMark = "weak\n"

    // MARK: Writing

    package static func encode(_ header: Manifest.Header) -> [UInt8] {
        var body = ByteWriter()
        body.write(header.id)
        body.write(UInt64(bitPattern: header.completeLength))
        body.write(UInt32(BlockLayout.blockLength))
        body.write(header.device)
        body.write(header.inode)
        body.write(header.bootID)
        let validator = header.resource.validator
        body.write(validator.entityTag?.fieldValue ?? validator.malformedTag?.stored)
        body.write(
            validator.lastModified.map { (validator.isDateWeak ? Self.weakMark : "") + $0.fieldValue }
                ?? validator.malformedDate?.stored)
        body.write(header.resource.contentEncoding)
        body.write(header.sources)
        body.write(header.digests + header.resource.digests.map { "\(Self.statedMark)\($0)" })
        body.write(header.label)
        body.write(header.resource.locator, salt: header.id)
        body.write(header.label.options)
        body.write(statementsOf: header)
        var bytes = ByteWriter()
        bytes.bytes = Self.magic
        bytes.write(Self.version)
        bytes.write(UInt32(Self.prefixLength + body.bytes.count + 4))
        bytes.bytes += body.bytes
        bytes.write(CRC32(of: bytes.bytes).value)
        return bytes.bytes
    }

    package static func encode(_ record: Manifest.Record, sequence: UInt32, of id: UInt64) -> [UInt8] {
        var bytes = ByteWriter()
        bytes.write(sequence)
        let (kind, offset, length, crc): (UInt32, Int64, Int64, UInt32) =
            switch record {
            case .claim(let claim): (1 | UInt32(claim.mark) << 8, claim.offset, claim.length, claim.crc.value)
            case .checkpoint(let claims): (2, claims, 0, 0)
            case .pause(let claims, let modified): (3, claims, modified, 0)
            case .syncFailed: (4, 0, 0, 0)
            case .forget(let offset): (5, offset, 0, 0)
            case .rejected: (7, 0, 0, 0)
            case .setAside: (8, 0, 0, 0)
            case .digest(let piece):
                (
                    6 | UInt32(piece.algorithm) << 8 | UInt32(piece.index) << 16, Int64(bitPattern: piece.words.0),
                    Int64(bitPattern: piece.words.1), 0
                )
            case .stated(let piece):
                (
                    9 | UInt32(piece.algorithm) << 8 | UInt32(piece.index) << 16, Int64(bitPattern: piece.first),
                    Int64(bitPattern: piece.second), 0
                )
            }
        bytes.write(kind)
        bytes.write(UInt64(bitPattern: offset))
        bytes.write(UInt64(bitPattern: length))
        bytes.write(crc)
        bytes.write(Self.checksum(bytes.bytes, of: id))
        return bytes.bytes
    }

    private static func checksum(_ record: some Collection<UInt8>, of id: UInt64) -> UInt32 {
        var salted = ByteWriter()
        salted.write(id)
        salted.bytes += record
        return CRC32(of: salted.bytes).value
    }

    // MARK: Reading

    /// Whether a file that begins with these bytes may be a manifest: each byte equals the magic's or is zero, because
    /// a crash can leave zeros.
    package static func isBegun(_ bytes: [UInt8]) -> Bool {
        zip(bytes, Self.magic).allSatisfy { $0 == $1 || $0 == 0 }
    }

    package static func decode(_ bytes: [UInt8]) throws(Damage) -> Manifest {
        var reader = ByteReader(bytes[...])
        guard bytes.starts(with: Self.magic), reader.skip(Self.magic.count), let version: UInt16 = reader.read() else {
            throw .notAManifest
        }
        guard (1...Self.version).contains(version) else { throw .versionUnknown(version) }
        guard let length: UInt32 = reader.read(), length <= Self.headerLengthMaximum,
            Int(length) >= Self.prefixLength + 4, bytes.count >= Int(length)
        else { throw .headerDamaged }
        let end = Int(length)
        var trailer = ByteReader(bytes[(end - 4)..<end])
        guard let checksum: UInt32 = trailer.read(), CRC32(of: bytes[..<(end - 4)]).value == checksum,
            let header = Self.header(ByteReader(bytes[Self.prefixLength..<(end - 4)]), version: version)
        else { throw .headerDamaged }
        var manifest = Manifest(header: header, durable: [], pending: [])
        Self.replay(bytes[end...], into: &manifest)
        return manifest
    }

    private static func header(_ fields: ByteReader, version: UInt16) -> Manifest.Header? {
        var reader = fields
        guard let id: UInt64 = reader.read(), let completeLength: UInt64 = reader.read(),
            let length = Int64(exactly: completeLength), length > 0, let blockLength: UInt32 = reader.read(),
            Int64(blockLength) == BlockLayout.blockLength, let device: UInt64 = reader.read(),
            let inode: UInt64 = reader.read(), let bootID = reader.readString(),
            let entityTag = reader.readOptionalString(), let lastModified = reader.readOptionalString(),
            let contentEncoding = reader.readOptionalString(), let sources = reader.readStrings(),
            let digests = reader.readStrings(),
            var label = version == 1 ? Manifest.Label() : reader.readLabel(),
            let locator = version <= 2 ? .some(.unrecorded) : reader.readLocator(),
            let options = version <= 3 ? .some(nil) : reader.readOptionalString(),
            version != 5 || reader.readPart(into: &label.part)
        else { return nil }
        label.options = options
        let isDateWeak = lastModified?.utf8.starts(with: Self.weakMark.utf8) == true
        let dateText = lastModified.map { isDateWeak ? String($0.utf8.dropFirst(Self.weakMark.utf8.count)) ?? $0 : $0 }
        let (tag, date) = (
            entityTag.flatMap { EntityTag(fieldValue: $0) }, dateText.flatMap { HTTPDate(fieldValue: $0) }
        )
        let validator = Validator(
            entityTag: tag, lastModified: date,
            malformedTag: tag == nil ? entityTag.map { MalformedFields(stored: $0) } : nil,
            malformedDate: date == nil ? lastModified.map { MalformedFields(stored: $0) } : nil,
            isDateWeak: isDateWeak)
        var resource = RemoteResource(
            completeLength: length, validator: validator, contentEncoding: contentEncoding, locator: locator)
        resource.state(
            digests.filter { $0.first == Self.statedMark }.compactMap { ExpectedDigest(String($0.dropFirst())) })
        var header = Manifest.Header(
            id: id, resource: resource, completeLength: length, device: device, inode: inode, bootID: bootID,
            sources: sources, digests: digests.filter { $0.first != Self.statedMark }, label: label)
        guard version < 6 || reader.readStatements(into: &header), reader.isAtEnd else { return nil }
        return header
    }

    private static func replay(_ log: ArraySlice<UInt8>, into manifest: inout Manifest) {
        var claims: [Claim] = []
        var durableCount = 0
        var states = DigestState.Reader()
        var statements = StatedDigest.Reader()
        Self.forEachRecord(of: log, manifest.header) { record in
            manifest.isSetAside = record == .setAside
            if case .pause(_, let modified) = record {
                manifest.pausedModified = modified
            } else if !manifest.isSetAside {
                manifest.pausedModified = nil
            }
            switch record {
            case .claim(let claim): claims.append(claim)
            case .checkpoint(let count), .pause(let count, _):
                if count > Int64(claims.count) { manifest.isOverstated = true }
                durableCount = min(max(durableCount, Int(count)), claims.count)
            case .digest(let piece): states.take(piece)
            case .stated(let piece):
                guard let stated = statements.take(piece, completeLength: manifest.header.completeLength) else { break }
                manifest.add(stated)
            case .syncFailed:
                claims.removeSubrange(durableCount...)
                states.forget(from: -1)
            case .rejected: manifest.isRejected = true
            case .setAside: break
            case .forget(let offset):
                durableCount = claims.forget(from: offset, durableCount: durableCount)
                states.forget(from: offset)
                manifest.contents.removeAll { $0.range.map { $0.upperBound > offset } ?? false }
            }
        }
        manifest.digestStates = states.states.filter { $0.offset <= manifest.header.completeLength }
        manifest.durable = Array(claims[..<durableCount])
        manifest.pending = Array(claims[durableCount...])
    }

    /// Calls `body` with each record, up to the first one that does not verify.
    private static func forEachRecord(
        of log: ArraySlice<UInt8>, _ header: Manifest.Header, _ body: (Manifest.Record) -> Void
    ) {
        var sequence: UInt32 = 0
        var rest = log
        while rest.count >= Self.recordLength,
            let record = Self.record(rest.prefix(Self.recordLength), sequence: sequence, header: header)
        {
            body(record)
            rest = rest.dropFirst(Self.recordLength)
            sequence &+= 1
        }
    }

    private static func record(
        _ bytes: ArraySlice<UInt8>, sequence expected: UInt32, header: Manifest.Header
    ) -> Manifest.Record? {
        var reader = ByteReader(bytes)
        guard let sequence: UInt32 = reader.read(), sequence == expected, let kind: UInt32 = reader.read(),
            let offset: UInt64 = reader.read(), let length: UInt64 = reader.read(), let crc: UInt32 = reader.read(),
            let checksum: UInt32 = reader.read(), checksum == Self.checksum(bytes.dropLast(4), of: header.id)
        else { return nil }
        if kind & 0xFF == 6 {
            return .digest(
                DigestState.Piece(
                    algorithm: UInt8(truncatingIfNeeded: kind >> 8), index: UInt8(truncatingIfNeeded: kind >> 16),
                    words: (offset, length)))
        }
        let algorithm = UInt8(truncatingIfNeeded: kind >> 8)
        if kind & 0xFF == 9, StatedDigest.isKnown(algorithm: algorithm) {
            return .stated(
                StatedDigest.Piece(
                    algorithm: algorithm, index: UInt8(truncatingIfNeeded: kind >> 16), first: offset, second: length))
        }
        guard let offset = Int64(exactly: offset), let length = Int64(exactly: length) else { return nil }
        switch kind {
        case let kind where kind & 0xFF == 1 && kind >> 8 <= UInt8.max:
            guard Claim.isWithinBlock(offset: offset, length: length), offset + length <= header.completeLength else {
                return nil
            }
            return .claim(
                Claim(
                    offset: offset, length: length, crc: CRC32(value: crc), mark: UInt8(truncatingIfNeeded: kind >> 8)))
        case 2: return .checkpoint(claims: offset)
        case 3: return .pause(claims: offset, modified: length)
        case 4: return .syncFailed
        case 5: return .forget(from: offset)
        case 7: return .rejected
        case 8: return .setAside
        default: return nil
        }
    }
}

extension ManifestCodec {
    /// The bytes of a manifest, with or without ``Manifest/Record/setAside`` at their end. A torn tail is dropped.
    ///
    /// Versions that lack the record stop reading at it, and lose nothing.
    ///
    /// - Returns: `nil` if the bytes are not a readable manifest.
    package static func encoded(_ bytes: [UInt8], setAside isSetAside: Bool) -> [UInt8]? {
        var prefix = ByteReader(bytes[...])
        // The header's length follows the version.
        guard let header = (try? Self.decode(bytes))?.header, prefix.skip(Self.magic.count + 2),
            let length: UInt32 = prefix.read()
        else { return nil }
        var encoded = Array(bytes[..<Int(length)])
        var sequence: UInt32 = 0
        func append(_ record: Manifest.Record) {
            encoded += Self.encode(record, sequence: sequence, of: header.id)
            sequence &+= 1
        }
        Self.forEachRecord(of: bytes[Int(length)...], header) { if $0 != .setAside { append($0) } }
        if isSetAside { append(.setAside) }
        return encoded
    }
}
