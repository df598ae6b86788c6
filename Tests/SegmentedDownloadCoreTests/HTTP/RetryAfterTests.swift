import SegmentedDownloadCore
import Testing

@Suite("Retry-After")
struct RetryAfterTests {
    private static let date = HTTPDate(fieldValue: "Tue, 14 Nov 2023 22:13:20 GMT")
    private static let now = HTTPDate(fieldValue: "Tue, 14 Nov 2023 22:00:00 GMT")

    @Test(
        "Seconds are read as they are, and limited to 2^31",
        arguments: [
            ("0", 0), ("120", 120), ("0000000000000000000000120", 120), ("2147483647", 2_147_483_647),
            ("2147483648", 1 << 31), ("2147483649", 1 << 31), ("999999999999", 1 << 31),
            ("9223372036854775807", 1 << 31), ("9223372036854775808", 1 << 31), ("18446744073709551616", 1 << 31),
            ("99999999999999999999999999", 1 << 31),
        ] as [(String, Int64)]
    )
    func seconds(fieldValue: String, seconds: Int64) {
        #expect(RetryAfter(fieldValue: fieldValue, date: nil, fallbackNow: nil)?.seconds == seconds)
        #expect(RetryAfter(fieldValue: fieldValue, date: Self.date, fallbackNow: Self.now)?.seconds == seconds)
    }

    @Test(
        "A date counts from the server's date, else from the local one",
        arguments: [
            ("Tue, 14 Nov 2023 22:13:50 GMT", 30, 830), ("Tuesday, 14-Nov-23 22:13:50 GMT", 30, 830),
            ("Tue Nov 14 22:13:50 2023", 30, 830), ("Tue, 14 Nov 2023 22:13:20 GMT", 0, 800),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 1 << 31, 1 << 31),
        ] as [(String, Int64, Int64)]
    )
    func dates(fieldValue: String, sinceDate: Int64, sinceNow: Int64) {
        #expect(RetryAfter(fieldValue: fieldValue, date: Self.date, fallbackNow: Self.now)?.seconds == sinceDate)
        #expect(RetryAfter(fieldValue: fieldValue, date: Self.date, fallbackNow: nil)?.seconds == sinceDate)
        #expect(RetryAfter(fieldValue: fieldValue, date: nil, fallbackNow: Self.now)?.seconds == sinceNow)
        #expect(RetryAfter(fieldValue: fieldValue, date: nil, fallbackNow: nil) == nil)
    }

    @Test("A date in the past means now")
    func past() {
        let longAgo = "Sat, 01 Jan 0000 00:00:00 GMT"
        #expect(RetryAfter(fieldValue: longAgo, date: Self.date, fallbackNow: nil)?.seconds == 0)
    }

    @Test(
        "Any other value is ignored",
        arguments: [
            "", " ", "-1", "+1", "1.5", "1 ", " 1", "1s", "1,2", "0x10", "1e3", "soon", "∞", "１２", "1\0", "1\r\n",
            "Tue, 14 Nov 2023 22:13:50 GMT ", "Tue, 31 Nov 2023 22:13:50 GMT", "2023-11-14T22:13:50Z", "-999999999999",
        ]
    )
    func garbage(fieldValue: String) {
        #expect(RetryAfter(fieldValue: fieldValue, date: Self.date, fallbackNow: Self.now) == nil)
    }

    @Test("Hostile text never traps and is never a negative delay", arguments: UInt64(0)..<4)
    func hostile(seed: UInt64) {
        for text in HostileText(examples: ["120", "Tue, 14 Nov 2023 22:13:50 GMT"], seed: seed) {
            guard let delay = RetryAfter(fieldValue: text, date: Self.date, fallbackNow: nil) else { continue }
            #expect((0...RetryAfter.secondsMax).contains(delay.seconds), "\(text.debugDescription), seed \(seed)")
        }
    }
}
