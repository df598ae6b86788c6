import SegmentedDownloadCore
import Testing

@Suite("Manifest codec")
struct ManifestCodecTests {
    private static let block = BlockLayout.blockLength

    private static func header(id: UInt64 = 7, length: Int64 = 100 << 20) -> Manifest.Header {
        Manifest.Header(
            id: id,
            resource: RemoteResource(
                completeLength: length,
                validator: Validator(
                    entityTag: EntityTag(fieldValue: "\"ä b\"".replacing(" ", with: "-")),
                    lastModified: HTTPDate(secondsSinceEpoch: 1_700_000_000)),
                contentEncoding: "gzip"),
            completeLength: length, device: .max, inode: 0, bootID: "boot", sources: ["https://a/ü", ""],
            digests: ["sha-256=00"],
            label: Manifest.Label(
                id: "ü 1", priority: 0.25, userInfo: ["title": "A\u{0}\n", "": "", "é": "x"],
                options: #"{"segments":4}"#))
    }

    @Test("A weak date survives the manifest, and one of an earlier version is strong", arguments: [false, true])
    func weakDate(isDateWeak: Bool) throws {
        var header = Self.header()
        for tag in ["\"a\"", "W/\"a\"", nil] {
            header.resource.validator = Validator(
                entityTag: tag.flatMap { EntityTag(fieldValue: $0) },
                lastModified: HTTPDate(secondsSinceEpoch: 1_700_000_000), isDateWeak: isDateWeak)
            let bytes = ManifestCodec.encode(header)
            #expect(try ManifestCodec.decode(bytes).header.resource.validator == header.resource.validator)
            // A strong date is written as it always was.
            let date = Array("Tue, 14 Nov 2023 22:13:20 GMT".utf8)
            let length = [UInt8(date.count + (isDateWeak ? 5 : 0)), 0, 0, 0]
            #expect(bytes.firstRange(of: length + (isDateWeak ? Array("weak\n".utf8) : []) + date) != nil)
        }
    }

    private static func claim(_ offset: Int64, _ length: Int64) -> Claim {
        Claim(offset: offset, length: length, crc: CRC32(value: UInt32(truncatingIfNeeded: offset &* 31 &+ length)))
    }

    private static let records: [Manifest.Record] = [
        .claim(claim(0, block)), .claim(claim(5 * block, 100)), .checkpoint(claims: 1), .claim(claim(block, block)),
        .claim(claim(5 * block + 100, 7)), .pause(claims: 3, modified: 0), .claim(claim(9 * block, block)),
    ]

    private static func bytes(_ records: [Manifest.Record], id: UInt64 = 7) -> [UInt8] {
        records.enumerated().reduce(into: ManifestCodec.encode(Self.header(id: id))) {
            $0 += ManifestCodec.encode($1.element, sequence: UInt32($1.offset), of: id)
        }
    }

    /// The most that these records claim: every claim, and those that a checkpoint covered.
    private static func truth(_ records: [Manifest.Record]) -> (claims: Set<Claim>, durable: Set<Claim>) {
        var claims: [Claim] = []
        var durable: Set<Claim> = []
        for record in records {
            switch record {
            case .claim(let claim): claims.append(claim)
            case .checkpoint(let count), .pause(let count, _): durable.formUnion(claims.prefix(Int(count)))
            case .forget, .syncFailed, .digest, .stated, .rejected, .setAside: break
            }
        }
        return (Set(claims), durable)
    }

    /// Whether damaged bytes claim nothing that was not recorded.
    private static func isHonest(_ bytes: [UInt8], _ truth: (claims: Set<Claim>, durable: Set<Claim>)) -> Bool {
        guard let manifest = try? ManifestCodec.decode(bytes) else { return true }
        return manifest.header == Self.header() && Set(manifest.durable).isSubset(of: truth.durable)
            && Set(manifest.durable + manifest.pending).isSubset(of: truth.claims)
    }

    @Test("Written records are read, durable and pending ones apart")
    func roundTrip() throws {
        let manifest = try ManifestCodec.decode(Self.bytes(Self.records))
        #expect(manifest.header == Self.header())
        #expect(
            manifest.durable == [
                Self.claim(0, Self.block), Self.claim(5 * Self.block, 100), Self.claim(Self.block, Self.block),
            ])
        #expect(manifest.pending == [Self.claim(5 * Self.block + 100, 7), Self.claim(9 * Self.block, Self.block)])
    }

    @Test(
        "Digests that were stated while bytes were fetched are read, until those bytes are fetched again",
        arguments: ["crc32", "crc32c", "crc64nvme", "md5", "sha1", "sha256", "sha512"])
    func stated(name: String) throws {
        let algorithm = try #require(ExpectedDigest.Algorithm(rawValue: name))
        let digits = (0..<algorithm.length).map { UInt8($0 * 3 + 1) }.hex
        let digest = try #require(ExpectedDigest(algorithm, hex: digits))
        let statements = [StatedDigest(digest), StatedDigest(digest, of: 5..<(3 * Self.block))]
        let pieces = statements.flatMap(\.pieces).map { Manifest.Record.stated($0) }
        let manifest = try ManifestCodec.decode(Self.bytes([.claim(Self.claim(0, Self.block))] + pieces))
        #expect(manifest.header.resource.digests == Self.header().resource.digests + [digest])
        #expect(manifest.contents == [statements[1]] && manifest.pending.count == 1)
        // A torn statement says nothing, and what precedes it counts.
        let torn = try ManifestCodec.decode(Self.bytes([.claim(Self.claim(0, Self.block))] + pieces.dropLast()))
        #expect(torn.contents == [] && torn.pending.count == 1)
        // One that goes beyond the file says nothing either.
        let beyond = StatedDigest(digest, of: 0..<(Self.header().completeLength + 1))
        #expect(try ManifestCodec.decode(Self.bytes(beyond.pieces.map { .stated($0) })).contents == [])
        for (offset, isKept) in [(3 * Self.block, true), (3 * Self.block - 1, false), (0, false)] {
            let forgotten = try ManifestCodec.decode(Self.bytes(pieces + [.forget(from: offset)]))
            #expect(forgotten.contents == (isKept ? [statements[1]] : []))
            #expect(forgotten.header.resource.digests.last == digest)
        }
    }

    @Test("A header without validators, coding, sources and digests is read back")
    func emptyHeader() throws {
        let header = Manifest.Header(
            id: .max, resource: RemoteResource(completeLength: 1), completeLength: 1, device: 0, inode: .max,
            bootID: "",
            sources: [], digests: [])
        #expect(try ManifestCodec.decode(ManifestCodec.encode(header)).header == header)
    }

    /// The header of ``header(id:length:)`` in version 1: everything before the label.
    private static var firstVersion: [UInt8] {
        var header = Self.header()
        header.label = .init()
        // No name, eight bytes of priority, no keys; no locator; no options; no statements; then the checksum.
        return Self.sealed(ManifestCodec.encode(header).dropLast(1 + 8 + 4 + 1 + 1 + 4 + 4), version: 1)
    }

    /// A header of an earlier version: its bytes without the checksum, with the right length and checksum.
    private static func sealed(_ body: some Sequence<UInt8>, version: UInt8) -> [UInt8] {
        var bytes = Array(body)
        bytes[8] = version
        let length = UInt32(bytes.count + 4)
        for index in 0..<4 { bytes[10 + index] = UInt8(truncatingIfNeeded: length >> (8 * UInt32(index))) }
        let checksum = CRC32(of: bytes).value
        return bytes + (0..<4).map { UInt8(truncatingIfNeeded: checksum >> (8 * UInt32($0))) }
    }

    @Test("Versions 4 and 5, which state less, are read")
    func earlierStatements() throws {
        let header = Self.header()
        // Without the number of statements and the checksum.
        let bytes = ManifestCodec.encode(header).dropLast(4 + 4)
        #expect(try ManifestCodec.decode(Self.sealed(bytes, version: 4)).header == header)
        var part = header
        part.label.part = DownloadOptions.Part(first: 5, last: 9)
        let (first, last) = ([5, 0, 0, 0, 0, 0, 0, 0] as [UInt8], [1, 9, 0, 0, 0, 0, 0, 0, 0] as [UInt8])
        #expect(try ManifestCodec.decode(Self.sealed(bytes + first + last, version: 5)).header == part)
    }

    @Test("Everything that was stated about a file survives the codec")
    func statements() throws {
        var header = Self.header()
        header.pieces = PieceDigests(length: 60, algorithm: .crc32, hexes: ["00000000", "ffffffff"])
        header.selection = RequestSelection(["cookie": "a=b; c", RequestSelection.user: "alice"], salt: header.id)
        let names = [("http://a/f", "http://b/f?x=1"), ("http://a/f", "https://c:8443/g")].map {
            ResourceName(requested: $0, target: $1)
        }
        var before = header.resource
        before.locator = .named(names[0])
        before.validator = Validator(tagFields: ["unquoted"], dateFields: ["yesterday", "today"])
        before.begunAt = HTTPDate(secondsSinceEpoch: 1_700_000_000)
        var resource = header.resource
        resource.locator = .named(names[1])
        resource.wholeLength = 1 << 40
        resource.state([try #require(ExpectedDigest("md5=\(String(repeating: "0", count: 32))"))])
        header.resource = resource.adding(before, isSamePlace: false)
        let found = try ManifestCodec.decode(ManifestCodec.encode(header)).header
        let stored = { (name: ResourceName) in ResourceLocator.recorded(ResourceFingerprint(of: name, salt: header.id))
        }
        var expected = header
        expected.resource.locator = stored(names[1])
        expected.resource.restore([
            RemoteResource.Elsewhere(locator: stored(names[0]), validator: before.validator)
        ])
        #expect(found == expected)
        #expect(found.resource.begunAt == before.begunAt && found.resource.elsewhere.count == 1)
        // What a later version adds is skipped.
        let bytes = ManifestCodec.encode(Self.header()).dropLast(4 + 4)
        let unknown: [UInt8] = [1, 0, 0, 0, 200, 2, 0, 0, 0, 7, 7]
        #expect(try ManifestCodec.decode(Self.sealed(bytes + unknown, version: 6)).header == Self.header())
    }

    @Test("Version 1, which has no label, is read, records included")
    func versionOne() throws {
        let records = Self.records.enumerated().reduce(into: [UInt8]()) {
            $0 += ManifestCodec.encode($1.element, sequence: UInt32($1.offset), of: 7)
        }
        let manifest = try ManifestCodec.decode(Self.firstVersion + records)
        var header = Self.header()
        header.label = Manifest.Label(id: nil, priority: 0.5, userInfo: [:])
        header.resource.locator = .unrecorded
        #expect(manifest.header == header)
        #expect(manifest.durable.count == 3 && manifest.pending.count == 2)
    }

    @Test(
        "A part survives the codec",
        arguments: [DownloadOptions.Part(first: 0), .init(first: 5, last: 5), .init(first: 1, last: .max - 1)])
    func part(_ part: DownloadOptions.Part) throws {
        var header = Self.header()
        header.label.part = part
        let bytes = ManifestCodec.encode(header)
        #expect(try ManifestCodec.decode(bytes).header == header)
        #expect(bytes[8..<10] == [6, 0])
    }

    @Test("A manifest has a version that segdl without statements refuses, because it would forget them")
    func wholeFile() {
        let bytes = ManifestCodec.encode(Self.header())
        #expect(bytes[8..<10] == [6, 0])
        #expect(bytes.dropLast(4 + 4).suffix(14) == Array(#"{"segments":4}"#.utf8)[...])
    }

    @Test("An impossible part is reported as damage")
    func impossiblePart() {
        for part in [DownloadOptions.Part(first: -1), .init(first: 5, last: 4), .init(first: 0, last: .max)] {
            var header = Self.header()
            header.label.part = part
            #expect(throws: ManifestCodec.Damage.headerDamaged) {
                try ManifestCodec.decode(ManifestCodec.encode(header))
            }
        }
    }

    @Test("An impossible label is reported as damage", arguments: [0, -1, 2, Double.nan, .infinity])
    func impossibleLabel(priority: Double) {
        var header = Self.header()
        header.label.priority = priority
        #expect(throws: ManifestCodec.Damage.headerDamaged) {
            try ManifestCodec.decode(ManifestCodec.encode(header))
        }
    }

    @Test("A header with the longest allowed label is readable")
    func longestLabel() throws {
        var header = Self.header()
        header.label.userInfo = [:]
        for number in 0..<4000 { header.label.userInfo["\(number)"] = "" }
        header.label.userInfo["rest"] = String(
            repeating: "x", count: Manifest.Label.lengthMaximum - header.label.length - 12)
        #expect(header.label.length == Manifest.Label.lengthMaximum)
        #expect(try ManifestCodec.decode(ManifestCodec.encode(header)).header == header)
    }

    @Test("The longest possible resource survives the codec")
    func longest() throws {
        var header = Self.header(length: .max)
        header.id = 3
        let last = Claim(offset: .max - 10, length: 10, crc: CRC32())
        let bytes = ManifestCodec.encode(header) + ManifestCodec.encode(.claim(last), sequence: 0, of: 3)
        #expect(try ManifestCodec.decode(bytes).pending == [last])
    }

    @Test("Every flipped bit costs progress at most")
    func bitFlips() {
        let bytes = Self.bytes(Self.records)
        let truth = Self.truth(Self.records)
        for bit in 0..<(bytes.count * 8) {
            var damaged = bytes
            damaged[bit / 8] ^= 1 << (bit % 8)
            #expect(Self.isHonest(damaged, truth), "bit \(bit)")
        }
    }

    @Test("Every truncation costs progress at most")
    func truncations() {
        let bytes = Self.bytes(Self.records)
        let truth = Self.truth(Self.records)
        for count in 0..<bytes.count { #expect(Self.isHonest(Array(bytes[..<count]), truth), "first \(count) bytes") }
    }

    @Test("Zeroed heads and tails, as power cuts leave them, cost progress at most")
    func zeroed() {
        let bytes = Self.bytes(Self.records)
        let truth = Self.truth(Self.records)
        for count in 0...bytes.count {
            let zeros = [UInt8](repeating: 0, count: bytes.count - count)
            #expect(Self.isHonest(bytes[..<count] + zeros, truth), "tail from \(count)")
            #expect(Self.isHonest(zeros + bytes[(bytes.count - count)...], truth), "head up to \(bytes.count - count)")
        }
    }

    @Test("Two swapped records end the log")
    func swapped() throws {
        let headerLength = ManifestCodec.encode(Self.header()).count
        let length = ManifestCodec.recordLength
        for left in Self.records.indices {
            for right in Self.records.indices where right > left {
                var bytes = Self.bytes(Self.records)
                for byte in 0..<length {
                    bytes.swapAt(headerLength + left * length + byte, headerLength + right * length + byte)
                }
                let manifest = try ManifestCodec.decode(bytes)
                #expect(manifest.durable.count + manifest.pending.count <= left)
                #expect(Self.isHonest(bytes, Self.truth(Self.records)))
            }
        }
    }

    @Test("Records of another manifest's id are ignored")
    func otherID() throws {
        let foreign = ManifestCodec.encode(.claim(Self.claim(0, 5)), sequence: 0, of: 8)
        let manifest = try ManifestCodec.decode(ManifestCodec.encode(Self.header()) + foreign)
        #expect(manifest.pending.isEmpty && manifest.durable.isEmpty)
    }

    @Test("A repeated record ends the log")
    func repeated() throws {
        let record = ManifestCodec.encode(.claim(Self.claim(0, 5)), sequence: 0, of: 7)
        let manifest = try ManifestCodec.decode(ManifestCodec.encode(Self.header()) + record + record)
        #expect(manifest.pending.count == 1)
    }

    @Test("Claims outside the file or across a block's end are ignored, even with a right checksum")
    func impossibleClaims() throws {
        let header = Self.header(length: 10)
        let record = ManifestCodec.encode(.claim(Self.claim(5, 6)), sequence: 0, of: 7)
        #expect(try ManifestCodec.decode(ManifestCodec.encode(header) + record).pending.isEmpty)
    }

    @Test("A checkpoint of more claims than there are covers those there are")
    func checkpointBeyond() throws {
        let records: [Manifest.Record] = [
            .claim(Self.claim(0, 5)), .checkpoint(claims: .max), .claim(Self.claim(5, 5)),
        ]
        let manifest = try ManifestCodec.decode(Self.bytes(records))
        #expect(manifest.durable.count == 1 && manifest.pending.count == 1)
        #expect(manifest.isOverstated)
        #expect(try !ManifestCodec.decode(Self.bytes(Self.records)).isOverstated)
    }

    @Test("After a failed sync only durable claims remain")
    func syncFailed() throws {
        let records: [Manifest.Record] = [
            .claim(Self.claim(0, 5)), .checkpoint(claims: 1), .claim(Self.claim(5, 5)), .syncFailed,
            .claim(Self.claim(10, 5)), .checkpoint(claims: 2), .claim(Self.claim(15, 5)),
        ]
        let manifest = try ManifestCodec.decode(Self.bytes(records))
        #expect(manifest.durable == [Self.claim(0, 5), Self.claim(10, 5)])
        #expect(manifest.pending == [Self.claim(15, 5)])
    }

    @Test("Forgotten bytes are no longer claimed or durable, and may be claimed again")
    func forget() throws {
        let records: [Manifest.Record] = [
            .claim(Self.claim(0, 5)), .claim(Self.claim(20, 5)), .checkpoint(claims: 2), .claim(Self.claim(30, 5)),
            .forget(from: 10), .claim(Self.claim(20, 6)),
        ]
        let manifest = try ManifestCodec.decode(Self.bytes(records))
        #expect(manifest.durable == [Self.claim(0, 5)])
        #expect(manifest.pending == [Self.claim(20, 6)])
    }

    @Test("A newer version and foreign data are distinguished from damage")
    func versions() {
        var bytes = Self.bytes(Self.records)
        bytes[8] = UInt8(ManifestCodec.version + 1)
        #expect(throws: ManifestCodec.Damage.versionUnknown(7)) { try ManifestCodec.decode(bytes) }
        #expect(throws: ManifestCodec.Damage.notAManifest) { try ManifestCodec.decode([]) }
        #expect(throws: ManifestCodec.Damage.notAManifest) { try ManifestCodec.decode(Array("{}".utf8)) }
        bytes = Self.bytes(Self.records)
        bytes[20] ^= 1
        #expect(throws: ManifestCodec.Damage.headerDamaged) { try ManifestCodec.decode(bytes) }
    }

    @Test("Random bytes after a valid beginning never trap", arguments: UInt64(0)..<8)
    func noise(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let good = Self.bytes(Self.records)
        for _ in 0..<500 {
            let kept = Int.random(in: 0...good.count, using: &generator)
            let noise = (0..<Int.random(in: 0...200, using: &generator)).map { _ in
                UInt8.random(in: .min ... .max, using: &generator)
            }
            #expect(Self.isHonest(good[..<kept] + noise, Self.truth(Self.records)), "replay with \(seed)")
        }
    }

    @Test("A finished file's record survives its attribute, and other data is rejected")
    func finishedRecord() {
        let record = FinishedRecord(
            resource: Self.header().resource, length: 100 << 20, crc: CRC32(value: .max), modified: -5)
        #expect(FinishedRecord(decoding: record.encoded) == record)
        let bytes = record.encoded
        for count in 0..<bytes.count { _ = FinishedRecord(decoding: Array(bytes[..<count])) }
        for damaged in [
            "", "segdl 2\nlength 1", "segdl 1\nlength -1\ncrc32 1\nmodified 1", "segdl 1\nlength 1\nlength 1",
        ] {
            #expect(FinishedRecord(decoding: Array(damaged.utf8)) == nil)
        }
        #expect(FinishedRecord(decoding: [0xFF, 0xFE]) == nil)
    }

    @Test("The mark of a part that was set aside changes nothing else, and is removed again")
    func setAside() throws {
        let claim = Manifest.Record.claim(Self.claim(0, 10))
        for records in [Self.records, [claim, .pause(claims: 1, modified: 77)], [claim, .rejected], []] {
            let bytes = Self.bytes(records)
            let plain = try ManifestCodec.decode(bytes)
            let marked = try #require(ManifestCodec.encoded(bytes, setAside: true))
            #expect(marked.starts(with: bytes) && marked.count == bytes.count + ManifestCodec.recordLength)
            let read = try ManifestCodec.decode(marked)
            #expect(read.isSetAside && !plain.isSetAside && read.header == plain.header)
            #expect(read.durable == plain.durable && read.pending == plain.pending)
            #expect(read.pausedModified == plain.pausedModified && read.isRejected == plain.isRejected)
            // Once is enough, and a torn tail is dropped.
            #expect(ManifestCodec.encoded(marked + [1, 2, 3], setAside: true) == marked)
            #expect(ManifestCodec.encoded(marked, setAside: false) == bytes)
            #expect(ManifestCodec.encoded(bytes, setAside: false) == bytes)
        }
    }

    @Test("Only the last record says that a part was set aside, and what follows an earlier one is kept")
    func setAsideBefore() throws {
        let records: [Manifest.Record] = [
            .claim(Self.claim(0, 10)), .pause(claims: 1, modified: 77), .setAside, .claim(Self.claim(10, 10)),
        ]
        let manifest = try ManifestCodec.decode(Self.bytes(records))
        #expect(!manifest.isSetAside && manifest.pausedModified == nil)
        #expect(manifest.durable.count == 1 && manifest.pending.count == 1)
        let unmarked = try #require(ManifestCodec.encoded(Self.bytes(records), setAside: false))
        let others = records.filter { $0 != .setAside }
        #expect(unmarked == Self.bytes(others))
    }

    @Test("What is not a readable manifest gets no mark")
    func noMark() {
        let bytes = Self.bytes(Self.records)
        for count in 0..<ManifestCodec.encode(Self.header()).count {
            #expect(ManifestCodec.encoded(Array(bytes[..<count]), setAside: true) == nil)
        }
        var later = bytes
        later[8] = UInt8(ManifestCodec.version + 1)
        #expect(ManifestCodec.encoded(later, setAside: true) == nil)
    }

    @Test("A pause with anything behind it is none: the part was changed since")
    func brokenPause() throws {
        let pause = Manifest.Record.pause(claims: 1, modified: 77)
        let claim = Manifest.Record.claim(Self.claim(0, 10))
        #expect(try ManifestCodec.decode(Self.bytes([claim, pause])).pausedModified == 77)
        for record in [.claim(Self.claim(10, 10)), .checkpoint(claims: 1), .forget(from: 5), .rejected]
            as [Manifest.Record]
        {
            #expect(try ManifestCodec.decode(Self.bytes([claim, pause, record])).pausedModified == nil)
        }
    }

    @Test("A record that speaks of more claims than there are is found out, and makes no others durable")
    func overstated() throws {
        for (count, isOverstated) in [(1, false), (2, true)] as [(Int64, Bool)] {
            let records: [Manifest.Record] = [
                .claim(Self.claim(0, 10)), .checkpoint(claims: count), .claim(Self.claim(10, 10)),
            ]
            let manifest = try ManifestCodec.decode(Self.bytes(records))
            #expect(manifest.isOverstated == isOverstated)
            #expect(manifest.durable == [Self.claim(0, 10)] && manifest.pending == [Self.claim(10, 10)])
        }
    }
}
