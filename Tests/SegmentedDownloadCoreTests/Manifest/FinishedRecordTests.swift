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
}
