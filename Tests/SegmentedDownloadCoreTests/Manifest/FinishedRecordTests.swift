import SegmentedDownloadCore
import Testing

@Suite("Finished record")
struct FinishedRecordTests {
    @Test("What a response said survives the attribute", arguments: [nil, "gzip", "gzip,br", "\u{301}", "a b"])
    func roundTrip(coding: String?) {
        let validator = Validator(
            entityTag: EntityTag(fieldValue: "\"ä\""), lastModified: HTTPDate(secondsSinceEpoch: 1_700_000_000))
        let record = FinishedRecord(
            resource: RemoteResource(completeLength: 5, validator: validator, contentEncoding: coding), length: 5,
            crc: CRC32(value: .max), modified: -1)
        #expect(FinishedRecord(decoding: record.encoded) == record)
    }
}
