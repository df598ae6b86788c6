import SegmentedDownloadCore
import Testing

@Suite("Byte range")
struct ByteRangeTests {
    @Test("A range is half-open inside and inclusive on the wire")
    func spelling() {
        let range = ByteRange(0..<1_048_576)
        #expect(range.fieldValue == "bytes=0-1048575")
        #expect(range.length == 1_048_576)
        #expect(range.bounds == 0..<1_048_576)
    }

    @Test("First and last position make a range of at least one byte")
    func inclusive() throws {
        let range = try #require(ByteRange(first: 5, last: 5))
        #expect(range == ByteRange(5..<6))
        #expect(range.length == 1)
        #expect(range.fieldValue == "bytes=5-5")
    }

    @Test("The largest representable range is valid")
    func largest() throws {
        let range = try #require(ByteRange(first: 0, last: .max - 1))
        #expect(range.length == .max)
        #expect(range.fieldValue == "bytes=0-9223372036854775806")
    }

    @Test(
        "Invalid or overflowing positions make no range",
        arguments: [(1, 0), (-1, 0), (-2, -1), (Int64.min, .max), (0, .max), (.max, .max), (.max, .min)]
            as [(Int64, Int64)]
    )
    func noRange(first: Int64, last: Int64) {
        #expect(ByteRange(first: first, last: last) == nil)
    }
}
