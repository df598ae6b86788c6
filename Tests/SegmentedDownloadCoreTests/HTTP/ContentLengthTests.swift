import SegmentedDownloadCore
import Testing

@Suite("Content-Length")
struct ContentLengthTests {
    @Test("Without a field the length is absent")
    func absent() {
        #expect(ContentLength.parse([]) == .absent)
    }

    @Test(
        "One value, however often it is repeated, is the length",
        arguments: [
            (["0"], 0), (["1000"], 1000), (["1000", "1000"], 1000), (["1000, 1000"], 1000),
            (["1000,1000", "1000"], 1000),
            (["1000 ,\t1000"], 1000), (["1000", "01000"], 1000), (["9223372036854775807"], .max),
        ] as [([String], Int64)]
    )
    func exact(fieldValues: [String], length: Int64) {
        #expect(ContentLength.parse(fieldValues) == .exact(length))
    }

    @Test(
        "Any other value is malformed",
        arguments: [
            [""], [" "], [","], ["1000,"], [",1000"], ["1000,,1000"], ["1000", ""], ["-1"], ["+1"], ["1.0"], ["0x10"],
            ["1e3"],
            ["1 000"], ["1000 bytes"], ["1000;"], ["1000\0"], ["1000\r\n"], ["١٠"], ["1000", "1001"], ["1000, 1001"],
            ["1000", "1000, 1001"], ["1000", "garbage"], ["0", "00", "1"],
        ]
    )
    func malformed(fieldValues: [String]) {
        #expect(ContentLength.parse(fieldValues) == .malformed)
    }

    @Test(
        "A length beyond Int64 is malformed and never wraps",
        arguments: ["9223372036854775808", "18446744073709551616", "18446744073709551716", "99999999999999999999999"]
    )
    func overflow(fieldValue: String) {
        #expect(ContentLength.parse([fieldValue]) == .malformed)
        #expect(ContentLength.parse([fieldValue, fieldValue]) == .malformed)
    }

    @Test("Hostile text never traps and is never a negative length", arguments: UInt64(0)..<4)
    func hostile(seed: UInt64) {
        for text in HostileText(examples: ["1000", "1000, 1000", "0"], seed: seed) {
            switch ContentLength.parse([text, "1000"]) {
            case .exact(let length): #expect(length == 1000, "\(text.debugDescription), seed \(seed)")
            case .absent: Issue.record("\(text.debugDescription), seed \(seed)")
            case .malformed: break
            }
        }
    }
}
