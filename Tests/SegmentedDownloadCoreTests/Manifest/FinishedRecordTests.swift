import SegmentedDownloadCore
import Testing

@Suite("Finished record")
struct FinishedRecordTests {
    @Test("Values of a response survive the attribute", arguments: [nil, "gzip", "gzip,br", "\u{301}", "a b"])
    func roundTrip(coding: String?) {
        let validator = Validator(
            entityTag: EntityTag(fieldValue: "\"ä\""), lastModified: HTTPDate(secondsSinceEpoch: 1_700_000_000))
        let record = FinishedRecord(
            resource: RemoteResource(completeLength: 5, validator: validator, contentEncoding: coding), length: 5,
            crc: CRC32(value: .max), modified: -1)
        #expect(FinishedRecord(decoding: record.encoded) == record)
    }

    @Test("A weak date survives the attribute, and records of earlier versions have none")
    func weakDate() throws {
        let date = HTTPDate(secondsSinceEpoch: 1_700_000_000)
        for isDateWeak in [false, true] {
            let record = FinishedRecord(
                resource: RemoteResource(
                    completeLength: 5,
                    validator: Validator(entityTag: nil, lastModified: date, isDateWeak: isDateWeak)),
                length: 5, crc: CRC32(value: 1), modified: 2)
            let read = try #require(FinishedRecord(decoding: record.encoded))
            #expect(read == record && read.resource.validator.isDateWeak == isDateWeak)
        }
        let earlier = "segdl 1\nlength 5\ncrc32 1\nmodified 2\nlast-modified 1700000000"
        let validator = try #require(FinishedRecord(decoding: Array(earlier.utf8))).resource.validator
        #expect(validator.lastModified == date && !validator.isDateWeak)
    }

    @Test("A file has at most 256 pieces, whose length is the shortest power-of-two multiple of a block")
    func pieces() {
        let block = BlockLayout.blockLength
        for (length, pieceLength, count) in [
            (1, block, 1), (256 * block, block, 256), (256 * block + 1, 2 * block, 129), (512 * block, 2 * block, 256),
            (512 * block + 1, 4 * block, 129),
        ] {
            #expect(FinishedRecord.pieceLength(of: length) == pieceLength)
            let ranges = FinishedRecord.pieceRanges(of: length)
            #expect(ranges.count == count && ranges.last?.upperBound == length)
        }
    }

    @Test(
        "Anything that this version did not write is no record",
        arguments: [
            "", "segdl 2\nlength 5\ncrc32 1\nmodified 2", "length 5\ncrc32 1\nmodified 2",
            "segdl 1\nlength 5\ncrc32 1", "segdl 1\nlength 5\nmodified 2", "segdl 1\ncrc32 1\nmodified 2",
            "segdl 1\nlength -1\ncrc32 1\nmodified 2", "segdl 1\nlength 5\ncrc32 1\nmodified 2\n",
            "segdl 1\nlength 5\ncrc32 1\nmodified 2\nword", "segdl 1\nlength 5\nlength 5\ncrc32 1\nmodified 2",
        ])
    func foreign(text: String) {
        #expect(FinishedRecord(decoding: Array(text.utf8)) == nil)
    }

    @Test("A record of three numbers says nothing else, and pieces that are not exactly the file's are none")
    func least() throws {
        let numbers = "segdl 1\nlength 5\ncrc32 1\nmodified 2"
        let record = try #require(FinishedRecord(decoding: Array(numbers.utf8)))
        #expect(record.length == 5 && record.crc == CRC32(value: 1) && record.modified == 2)
        #expect(record.resource.validator == .none && record.resource.contentEncoding == nil && record.pieces.isEmpty)
        for (pieces, values) in [
            ("0000000a", [10]), ("0000000", []), ("0000000a0000000a", []), ("0000000g", []), ("", []),
        ] as [(String, [UInt32])] {
            let text = numbers + "\npieces " + pieces
            #expect(FinishedRecord(decoding: Array(text.utf8))?.pieces == values.map { CRC32(value: $0) })
        }
    }

    @Test("A record says whether the file was synced, and one without that line is of a synced file")
    func sync() throws {
        var record = FinishedRecord(
            resource: RemoteResource(completeLength: 5), length: 5, crc: CRC32(value: 1), modified: 2)
        let synced = record.encoded
        #expect(String(decoding: synced, as: UTF8.self) == "segdl 1\nlength 5\ncrc32 1\nmodified 2")
        #expect(FinishedRecord(decoding: synced)?.isSynced == true)
        record.isSynced = false
        #expect(record.encoded == synced + Array("\nsync none".utf8))
        #expect(FinishedRecord(decoding: record.encoded) == record)
    }

    @Test("The time of the last change survives the attribute, and records of earlier versions have none")
    func changed() throws {
        var record = FinishedRecord(
            resource: RemoteResource(completeLength: 5), length: 5, crc: CRC32(value: 1), modified: 2)
        let earlier = record.encoded
        let read = try #require(FinishedRecord(decoding: earlier))
        #expect(read.changed == nil)
        for changed in [3, 0, -1, .min, .max] as [Int64] {
            record.changed = changed
            #expect(record.encoded == earlier + Array("\nchanged \(changed)".utf8))
            #expect(FinishedRecord(decoding: record.encoded) == record)
        }
    }

    @Test("The pieces' CRC-32s survive the attribute, and a file may be empty")
    func piecesRoundTrip() {
        let length = 3 * BlockLayout.blockLength
        let record = FinishedRecord(
            resource: RemoteResource(completeLength: length), length: length, crc: CRC32(value: 7), modified: 1,
            pieces: [CRC32(value: 0), CRC32(value: 10), CRC32(value: .max)])
        #expect(FinishedRecord(decoding: record.encoded)?.pieces == record.pieces)
        let empty = FinishedRecord(
            resource: RemoteResource(completeLength: 0), length: 0, crc: CRC32(), modified: 1)
        #expect(FinishedRecord(decoding: empty.encoded)?.length == 0)
    }
}
