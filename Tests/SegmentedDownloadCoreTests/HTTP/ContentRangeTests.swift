import SegmentedDownloadCore
import Testing

@Suite("Content-Range")
struct ContentRangeTests {
    @Test(
        "A well-formed field gives the range and the complete length",
        arguments: [
            ("bytes 0-99/1000", 0..<100, 1000),
            ("bytes 0-0/1", 0..<1, 1),
            ("bytes 999-999/1000", 999..<1000, 1000),
            ("BYTES 0-99/1000", 0..<100, 1000),
            ("Bytes 0-99/*", 0..<100, nil),
            ("bytes 0000-0099/00000000000000000000001000", 0..<100, 1000),
            ("bytes 0-9223372036854775805/9223372036854775806", 0..<9_223_372_036_854_775_806, .max - 1),
            ("bytes 0-9223372036854775806/9223372036854775807", 0..<Int64.max, .max),
        ] as [(String, Range<Int64>, Int64?)]
    )
    func satisfied(fieldValue: String, bounds: Range<Int64>, completeLength: Int64?) {
        let expected = ContentRange.satisfied(ByteRange(bounds), completeLength: completeLength)
        #expect(ContentRange(fieldValue: fieldValue) == expected)
    }

    @Test(
        "An unsatisfied range gives only the complete length",
        arguments: [("bytes */0", 0), ("bytes */1000", 1000), ("bytes */9223372036854775807", .max)]
            as [(String, Int64)]
    )
    func unsatisfied(fieldValue: String, completeLength: Int64) {
        #expect(ContentRange(fieldValue: fieldValue) == .unsatisfied(completeLength: completeLength))
    }

    @Test(
        "A malformed field is rejected",
        arguments: [
            "", "bytes", "bytes ", "bytes 0", "bytes 0-", "bytes 0-99", "bytes 0-99/", "bytes -99/1000", "bytes -/*",
            "bytes */*", "bytes *", "bytes */", "bytes */-1", "bytes */+1", "bytes */1 ", "bytes */0x10",
            "bytes=0-99/1000", "bytes: 0-99/1000", "0-99/1000", "items 0-99/1000", "byte 0-99/1000", "bytess 0-99/1000",
            " bytes 0-99/1000", "bytes  0-99/1000", "bytes\t0-99/1000", "bytes 0-99/1000 ", "bytes 0 -99/1000",
            "bytes 0- 99/1000", "bytes 0-99 /1000", "bytes 0-99/ 1000", "bytes 0-99/1000\r\n", "bytes 0-99/1000\0",
            "bytes +0-99/1000", "bytes 0-+99/1000", "bytes 0-99/+1000", "bytes -0-99/1000", "bytes 0--99/1000",
            "bytes 0-99/1000/1000", "bytes 0-99/1000, bytes 0-99/1000", "bytes 0-99,200-299/1000", "bytes 0-99/**",
            "bytes 0-99/*1000", "bytes 0-99/1000*", "bytes 0x0-0x63/0x3e8", "bytes 0-99/1e3", "bytes 0-99/1_000",
            "bytes ٠-٩/١٠", "bytes 0-９９/1000", "bytes 0-9\u{301}9/1000", "bytes\u{A0}0-99/1000",
            "byte\u{17F} 0-99/1000",
        ]
    )
    func malformed(fieldValue: String) {
        #expect(ContentRange(fieldValue: fieldValue) == nil)
    }

    @Test(
        "A range that contradicts itself is rejected",
        arguments: ["bytes 100-99/1000", "bytes 0-1000/1000", "bytes 0-0/0", "bytes 1000-1099/1000", "bytes 1-0/*"]
    )
    func contradiction(fieldValue: String) {
        #expect(ContentRange(fieldValue: fieldValue) == nil)
    }

    @Test(
        "A number beyond Int64 never wraps",
        arguments: [
            "bytes 0-99/9223372036854775808", "bytes 0-99/18446744073709551616", "bytes 0-99/18446744073709551716",
            "bytes 0-9223372036854775807/*", "bytes 0-9223372036854775808/*", "bytes 0-18446744073709551616/*",
            "bytes 9223372036854775807-9223372036854775807/*", "bytes 18446744073709551616-18446744073709551715/1000",
            "bytes */9223372036854775808", "bytes */18446744073709551616", "bytes */9999999999999999999",
            "bytes */340282366920938463463374607431768211456",
        ]
    )
    func overflow(fieldValue: String) {
        #expect(ContentRange(fieldValue: fieldValue) == nil)
    }

    @Test("Hostile text never traps, and accepted values are consistent", arguments: UInt64(0)..<4)
    func hostile(seed: UInt64) {
        let examples = ["bytes 0-99/1000", "bytes 0-99/*", "bytes */1000"]
        for text in HostileText(examples: examples, seed: seed) {
            switch ContentRange(fieldValue: text) {
            case .satisfied(let range, completeLength: let completeLength?):
                #expect(range.upperBound <= completeLength, "\(text.debugDescription), seed \(seed)")
            case .unsatisfied(let completeLength):
                #expect(completeLength >= 0, "\(text.debugDescription), seed \(seed)")
            case .satisfied(_, completeLength: nil), nil:
                break
            }
        }
    }
}
