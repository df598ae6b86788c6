import SegmentedDownloadCore

/// A manifest claims exactly what its log says; damage to it can only cost progress.
enum ManifestProperties {
    private static let magic = Array("SEGDLMAN".utf8)

    /// The first byte selects the input: a manifest as on disk; a header's body and records that get correct checksums
    /// here, which is deeper than a fuzzer gets alone; or these, damaged afterwards.
    static func check(_ bytes: [UInt8]) throws(Violation) {
        var program = ByteProgram(bytes)
        let kind = program.byte()
        guard kind % 4 != 0 else {
            try Self.check(onDisk: Array(bytes.dropFirst()))
            return
        }
        let damage = kind % 4 == 1 ? nil : (place: program.byte(), mask: program.byte(), cut: program.byte())
        // Every version that was ever written is read; the next one is not.
        let version: UInt16 =
            switch kind >> 4 & 3 {
            case 0: 2
            case 1: kind & 8 == 0 ? 3 : 4
            case 2: kind & 8 == 0 ? 1 : 7
            default: kind & 8 == 0 ? 5 : 6
            }
        let body =
            kind & 0x80 == 0 ? Self.header(&program, version: version) : program.bytes(Int(program.byte()))
        var written = Self.withChecksum(of: body, version: version)
        let headerLength = written.count
        let header = (try? ManifestCodec.decode(written))?.header
        var log = ManifestModel(completeLength: header?.completeLength ?? 0)
        let id = body.prefix(8)
        var sequence: UInt32 = 0
        while !program.isAtEnd {
            for record in Self.records(&program, completeLength: header?.completeLength ?? .max) {
                log.append(record)
                written += Self.withChecksum(of: record, sequence: sequence, id: id)
                sequence += 1
            }
        }
        guard let header else {
            let isNeeded = kind & 0x80 == 0 && version <= 6
            try require(!isNeeded, "a well-formed header of version \(version) is not read")
            try Self.check(onDisk: written)
            return
        }
        try require(version <= 6, "a version that was never written is read")
        try require(
            (header.label.part != nil) == (version >= 5) || version == 6 && kind & 0x80 != 0,
            "version \(version) has the part \(header.label.part as Any)")
        try require(
            header.resource.wholeLength == nil || version == 6, "version \(version) has a length of the whole file")
        try require(version != 1 || header.label == .init(), "version 1 has no \(header.label)")
        let manifest = try Self.decode(written)
        var stated = header
        stated.resource.state(log.stated.compactMap { ExpectedDigest($0) })
        try require(manifest.header == stated, "the log changed the header \(header)")
        let contents = manifest.contents.map { "\($0.digest) of \($0.range ?? 0..<0)" }
        try require(contents == log.contents.map(\.text), "stated of ranges is \(contents)")
        try require(manifest.durable == log.durable, "durable are \(manifest.durable) and not \(log.durable)")
        try require(manifest.pending == log.pending, "pending are \(manifest.pending) and not \(log.pending)")
        try require(manifest.pausedModified == log.pausedModified, "the pause is \(manifest.pausedModified ?? -1)")
        try require(manifest.isSetAside == log.isSetAside, "the part was set aside: \(manifest.isSetAside)")
        try Self.check(manifest)
        try Self.checkMark(of: manifest, written)
        if let damage {
            try Self.check(written, headerLength, damagedBy: damage, header, log)
        }
    }

    private static func check(onDisk bytes: [UInt8]) throws(Violation) {
        guard let manifest = try? ManifestCodec.decode(bytes) else { return }
        try require(ManifestCodec.isBegun(bytes), "isBegun rejects a manifest that decodes")
        try Self.check(manifest)
        try Self.checkMark(of: manifest, bytes)
    }

    /// The mark of a part that was set aside changes nothing else, and is removed again.
    private static func checkMark(of manifest: Manifest, _ bytes: [UInt8]) throws(Violation) {
        guard let marked = ManifestCodec.encoded(bytes, setAside: true),
            let unmarked = ManifestCodec.encoded(marked, setAside: false)
        else { throw Violation(description: "a manifest gets no mark") }
        for (bytes, isSetAside) in [(marked, true), (unmarked, false)] {
            let read = try Self.decode(bytes)
            try require(read.isSetAside == isSetAside, "the mark is \(read.isSetAside)")
            try require(
                read.header == manifest.header && read.durable == manifest.durable && read.pending == manifest.pending,
                "the mark changed the claims")
            try require(
                read.digestStates == manifest.digestStates && read.contents == manifest.contents,
                "the mark changed the digests")
            try require(
                read.pausedModified == manifest.pausedModified && read.isRejected == manifest.isRejected
                    && read.isOverstated == manifest.isOverstated,
                "the mark changed \(manifest)")
        }
        try require(ManifestCodec.encoded(marked, setAside: true) == marked, "a second mark was made")
    }

    private static func decode(_ bytes: [UInt8]) throws(Violation) -> Manifest {
        guard let manifest = try? ManifestCodec.decode(bytes) else {
            throw Violation(description: "an encoded manifest does not decode")
        }
        return manifest
    }

    // MARK: Properties of every manifest

    private static func check(_ manifest: Manifest) throws(Violation) {
        let header = manifest.header
        let length = header.completeLength
        try require(length > 0 && header.resource.completeLength == length, "\(header) has no length")
        let claims = manifest.durable + manifest.pending
        for claim in claims {
            try require(ManifestModel.isPossible(claim.offset, claim.length, length), "\(claim) of \(length) bytes")
        }
        let settled = claims.settled()
        let expected = claims.indices.filter { index in
            !claims.indices.contains { $0 != index && claims[$0].range.overlaps(claims[index].range) }
        }.map { claims[$0] }.sorted { $0.offset < $1.offset }
        try require(settled == expected, "\(claims) settle to \(settled) and not \(expected)")

        let kept = settled.reduce(0) { $0 + $1.length }
        let missing = settled.missing(of: length)
        let lacking = missing.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
        try require(kept + lacking == length, "\(kept) kept and \(lacking) missing do not add up to \(length)")
        try require(
            missing.allSatisfy { !$0.isEmpty && $0.upperBound <= length },
            "\(missing) is not a set of ranges in \(length)")
        let joined = settled.joined()
        try require(joined.missing(of: length) == missing, "joining \(settled) changed what is missing")
        try require(joined.combinedCRC(of: length) == settled.combinedCRC(of: length), "joining changed the checksum")

        // A manifest written again decodes to the same value.
        var bytes = ManifestCodec.encode(header)
        var sequence: UInt32 = 0
        for claim in claims {
            bytes += ManifestCodec.encode(.claim(claim), sequence: sequence, of: header.id)
            sequence += 1
        }
        let count = Int64(manifest.durable.count)
        let last: Manifest.Record =
            manifest.pausedModified.map { .pause(claims: count, modified: $0) } ?? .checkpoint(claims: count)
        bytes += ManifestCodec.encode(last, sequence: sequence, of: header.id)
        let again = try Self.decode(bytes)
        // Except that the next run's count of claims is correct.
        try require(
            again.header == manifest.header && again.durable == manifest.durable && again.pending == manifest.pending
                && again.pausedModified == manifest.pausedModified && !again.isOverstated,
            "\(manifest) does not survive encoding and decoding")
    }

    /// Changes one byte or cuts the end. Checksums always detect that, so no claim may appear that the log never made.
    private static func check(
        _ bytes: [UInt8], _ headerLength: Int, damagedBy damage: (place: UInt8, mask: UInt8, cut: UInt8),
        _ header: Manifest.Header, _ log: ManifestModel
    ) throws(Violation) {
        var damaged = bytes
        damaged[Int(damage.place) * 7 % bytes.count] ^= damage.mask
        damaged.removeLast(min(Int(damage.cut), bytes.count))
        guard let manifest = try? ManifestCodec.decode(damaged) else { return }
        var plain = manifest.header
        plain.resource.digests = header.resource.digests
        try require(plain == header, "damage changed the header")
        try require(Set(manifest.durable).isSubset(of: log.everDurable), "damage added durable claims")
        try require(Set(manifest.durable + manifest.pending).isSubset(of: log.everClaimed), "damage added claims")
        try Self.check(manifest)
    }

    // MARK: Encoding, without the codec

    private static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
        (0..<MemoryLayout.size(ofValue: value)).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    private static func withChecksum(of body: [UInt8], version: UInt16) -> [UInt8] {
        let bytes = Self.magic + Self.bytes(version) + Self.bytes(UInt32(8 + 2 + 4 + body.count + 4)) + body
        return bytes + Self.bytes(CRC32(of: bytes).value)
    }

    private static func withChecksum(
        of record: ManifestModel.Record, sequence: UInt32, id: ArraySlice<UInt8>
    ) -> [UInt8] {
        let bytes =
            Self.bytes(sequence) + Self.bytes(record.kind) + Self.bytes(record.first) + Self.bytes(record.second)
            + Self.bytes(record.crc)
        return bytes + Self.bytes(CRC32(of: id + bytes).value)
    }

    /// The body of a well-formed header, so that the records after it are read.
    private static func header(_ program: inout ByteProgram, version: UInt16) -> [UInt8] {
        let shape = program.byte()
        let blocks: Int64 = shape & 4 == 0 ? 4 << 20 : .max - 1
        let length = 1 + program.number(upTo: blocks)
        func text(_ text: String) -> [UInt8] { Self.bytes(UInt32(text.utf8.count)) + Array(text.utf8) }
        var body = Self.bytes(program.integer()) + Self.bytes(length) + Self.bytes(UInt32(1 << 20))
        body += Self.bytes(UInt64(2)) + Self.bytes(UInt64(3)) + text("boot")
        body += shape & 1 == 0 ? [0] : [1] + text("\"tag\"")
        body += shape & 2 == 0 ? [0] : [1] + text("Sun, 06 Nov 1994 08:49:37 GMT")
        body += [0] + Self.bytes(UInt32(1)) + text("http://host/") + Self.bytes(UInt32(0))
        if version == 1 { return body }
        body += Self.label(shape)
        // The resource: none, a fingerprint, or one that was not recorded.
        if version >= 3 {
            body +=
                [[0], [1] + [UInt8](repeating: shape, count: 8 + ResourceFingerprint.hashLength), [2], [0]][
                    Int(shape >> 4 & 3)]
        }
        if version >= 4 { body += shape & 8 == 0 ? [0] : [1] + text(#"{"segments":4}"#) }
        // A part with or without a last byte.
        let part = Self.bytes(Int64(shape)) + (shape & 4 == 0 ? [0] : [1] + Self.bytes(Int64.max - 1))
        if version == 5 { body += part }
        if version >= 6 { body += Self.statements(shape, part: part) }
        return body
    }

    /// Entries: a part, the length of the whole file, and one of a tag that a later version may write, which is skipped.
    private static func statements(_ shape: UInt8, part: [UInt8]) -> [UInt8] {
        func entry(_ tag: UInt8, _ bytes: [UInt8]) -> [UInt8] { [tag] + Self.bytes(UInt32(bytes.count)) + bytes }
        let entries = [entry(1, part), entry(2, Self.bytes(Int64(shape))), entry(0xFF - (shape & 1), [shape])]
        let chosen = entries.prefix(1 + Int(shape & 2))
        return Self.bytes(UInt32(chosen.count)) + chosen.joined()
    }

    /// A well-formed label: with or without a name, and with up to three keys in order.
    private static func label(_ shape: UInt8) -> [UInt8] {
        func text(_ text: String) -> [UInt8] { Self.bytes(UInt32(text.utf8.count)) + Array(text.utf8) }
        var label = shape & 8 == 0 ? [0] : [1] + text("name")
        label += Self.bytes((Double(1 + shape >> 6) / 4).bitPattern)
        let keys = ["", "a", "b"].prefix(Int(shape >> 4 & 3))
        label += Self.bytes(UInt32(keys.count * 2))
        for key in keys { label += text(key) + text("value of " + key) }
        return label
    }

    /// One record, or those of a statement, of which some may be missing.
    private static func records(
        _ program: inout ByteProgram, completeLength: Int64
    ) -> [ManifestModel.Record] {
        let kind = program.byte()
        guard kind & 0x60 == 0x20 else { return [Self.record(kind, &program, completeLength: completeLength)] }
        let (number, shape) = (UInt32(kind & 7), program.byte())
        let count = shape & 8 == 0 ? [1, 1, 1, 1, 1, 2, 2, 4][Int(number)] : Int(shape & 7)
        // The whole file, or a range, which may be empty or longer than the file.
        let isWhole = shape & 0x10 == 0
        let range = [program.number(upTo: completeLength), program.number(upTo: completeLength)].map { UInt64($0) }
        let head = ManifestModel.Record(
            kind: 9 | number << 8, first: isWhole ? 0 : range[0], second: isWhole ? 0 : range[1], crc: 0)
        let pieces = (0..<count).map { index in
            ManifestModel.Record(
                kind: 9 | number << 8 | UInt32(index + (shape & 0x20 == 0 ? 1 : 2)) << 16,
                first: UInt64(shape) << 56 | 1,
                second: UInt64(index), crc: 0)
        }
        return [head] + pieces
    }

    private static func record(
        _ kind: UInt8, _ program: inout ByteProgram, completeLength: Int64
    ) -> ManifestModel.Record {
        guard kind & 0x40 == 0 else {
            return ManifestModel.Record(
                kind: UInt32(kind & 15), first: program.integer(), second: program.integer(), crc: UInt32(kind))
        }
        // Offsets are close together, so that claims meet and overlap; lengths reach a block and one more.
        let isClaim = kind & 7 <= 1
        let first = isClaim ? program.number(upTo: completeLength) : Int64(program.byte() & 31)
        let second = isClaim ? program.number(upTo: (1 << 20) + 1) : Int64(program.byte())
        let number: UInt32 = isClaim ? 1 : UInt32(kind & 7)
        let isForgetting = number == 5
        let offset = isForgetting ? program.number(upTo: completeLength) : first
        return ManifestModel.Record(
            kind: number, first: UInt64(bitPattern: offset), second: UInt64(bitPattern: second), crc: UInt32(kind))
    }
}
