import SegmentedDownloadCore
import Testing

@Suite("HTTP date")
struct HTTPDateTests {
    @Test(
        "All three forms give the same time",
        arguments: [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "Sun Nov 06 08:49:37 1994",
        ]
    )
    func forms(fieldValue: String) throws {
        let date = try #require(HTTPDate(fieldValue: fieldValue))
        #expect(date.secondsSinceEpoch == 784_111_777)
        #expect(date.fieldValue == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    @Test(
        "Known times are read and written",
        arguments: [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Tue, 14 Nov 2023 22:13:20 GMT", 1_700_000_000), ("Tue, 19 Jan 2038 03:14:08 GMT", 2_147_483_648),
            ("Sun, 07 Feb 2106 06:28:16 GMT", 4_294_967_296), ("Tue, 29 Feb 2000 00:00:00 GMT", 951_782_400),
            ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000), ("Mon, 01 Jan 0001 00:00:00 GMT", -62_135_596_800),
            ("Sat, 01 Jan 0000 00:00:00 GMT", -62_167_219_200), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ] as [(String, Int64)]
    )
    func known(fieldValue: String, seconds: Int64) throws {
        #expect(HTTPDate(fieldValue: fieldValue)?.secondsSinceEpoch == seconds)
        #expect(HTTPDate(secondsSinceEpoch: seconds)?.fieldValue == fieldValue)
    }

    @Test("Every day from 1896 to 2104 matches a count of days")
    func everyDay() throws {
        let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let first = try #require(HTTPDate(fieldValue: "Wed, 01 Jan 1896 00:00:00 GMT"))
        #expect(first.secondsSinceEpoch == -27_028 * 86_400)
        var seconds = first.secondsSinceEpoch
        var wrong: [String] = []
        for year in 1896...2104 {
            let isLeap = year.isMultiple(of: 400) || (year.isMultiple(of: 4) && !year.isMultiple(of: 100))
            for (month, length) in zip(months, lengths) {
                for day in 1...(month == "Feb" && isLeap ? 29 : length) {
                    let asctime = "Sun \(month) \(day < 10 ? " " : "")\(day) 00:00:00 \(year)"
                    if HTTPDate(fieldValue: asctime)?.secondsSinceEpoch != seconds { wrong.append(asctime) }
                    seconds += 86_400
                }
            }
        }
        #expect(wrong.isEmpty)
    }

    @Test("A written date is read as the same time", arguments: UInt64(0)..<4)
    func roundTrip(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        for _ in 0..<2_500 {
            let seconds = Int64.random(in: -62_167_219_200...253_402_300_799, using: &generator)
            let date = try #require(HTTPDate(secondsSinceEpoch: seconds))
            #expect(HTTPDate(fieldValue: date.fieldValue) == date, "\(seconds), seed \(seed)")
        }
    }

    @Test(
        "A two-digit year below 70 is in this century, others are in the last",
        arguments: [
            ("Thursday, 01-Jan-70 00:00:00 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ("Friday, 31-Dec-99 00:00:00 GMT", "Fri, 31 Dec 1999 00:00:00 GMT"),
            ("Saturday, 01-Jan-00 00:00:00 GMT", "Sat, 01 Jan 2000 00:00:00 GMT"),
            ("Tuesday, 31-Dec-69 23:59:59 GMT", "Tue, 31 Dec 2069 23:59:59 GMT"),
        ]
    )
    func pivot(fieldValue: String, expected: String) {
        #expect(HTTPDate(fieldValue: fieldValue)?.fieldValue == expected)
    }

    @Test("A wrong weekday is accepted, and the leap second is the next second")
    func lenient() {
        #expect(HTTPDate(fieldValue: "Mon, 06 Nov 1994 08:49:37 GMT")?.secondsSinceEpoch == 784_111_777)
        #expect(HTTPDate(fieldValue: "Sat, 31 Dec 2016 23:59:60 GMT")?.fieldValue == "Sun, 01 Jan 2017 00:00:00 GMT")
        #expect(HTTPDate(fieldValue: "Fri, 31 Dec 9999 23:59:60 GMT")?.secondsSinceEpoch == 253_402_300_799)
    }

    @Test(
        "A date that does not exist is rejected",
        arguments: [
            "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 32 Dec 1994 08:49:37 GMT",
            "Sun, 29 Feb 2023 08:49:37 GMT", "Sun, 29 Feb 1900 08:49:37 GMT", "Sun, 30 Feb 2024 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:60 GMT",
            "Sun, 06 Nov 1994 23:59:61 GMT", "Sun Nov  0 08:49:37 1994", "Sun Nov 31 08:49:37 1994",
            "Sunday, 31-Nov-94 08:49:37 GMT",
        ]
    )
    func impossible(fieldValue: String) {
        #expect(HTTPDate(fieldValue: fieldValue) == nil)
    }

    @Test(
        "Malformed text is rejected",
        arguments: [
            "", "0", "784111777", "1994-11-06T08:49:37Z", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 06 Nov 1994 08:49:37 gmt", "sun, 06 nov 1994 08:49:37 GMT",
            " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun,06 Nov 1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06  Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 Nov 19944 08:49:37 GMT", "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 +8:49:37 GMT", "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov -994 08:49:37 GMT",
            "Xxx, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Xxx 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "Sun, 06 Nov 1994 08:49:37 GMT\0", "Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun Nov   6 08:49:37 1994",
            "Sun Nov  6 08:49:37 1994 GMT", "Sun, ٠٦ Nov 1994 08:49:37 GMT", "Sun, 06\u{A0}Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 18446744073709551616 08:49:37 GMT",
        ]
    )
    func malformed(fieldValue: String) {
        #expect(HTTPDate(fieldValue: fieldValue) == nil)
    }

    @Test(
        "Seconds outside the years 0000 to 9999 make no date",
        arguments: [Int64.min, -62_167_219_201, 253_402_300_800, .max]
    )
    func outside(seconds: Int64) {
        #expect(HTTPDate(secondsSinceEpoch: seconds) == nil)
    }

    @Test("Later dates are greater, and differences are in seconds")
    func order() throws {
        let earlier = try #require(HTTPDate(secondsSinceEpoch: -62_167_219_200))
        let later = try #require(HTTPDate(secondsSinceEpoch: 253_402_300_799))
        #expect(earlier < later)
        #expect(later.seconds(since: earlier) == 315_569_519_999)
        #expect(earlier.seconds(since: later) == -315_569_519_999)
    }

    @Test("Hostile text never traps, and accepted dates can be written", arguments: UInt64(0)..<4)
    func hostile(seed: UInt64) {
        let examples = [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "Fri, 31 Dec 9999 23:59:60 GMT",
        ]
        for text in HostileText(examples: examples, seed: seed) {
            guard let date = HTTPDate(fieldValue: text) else { continue }
            #expect(HTTPDate(fieldValue: date.fieldValue) == date, "\(text.debugDescription), seed \(seed)")
        }
    }

    @Test(
        "A date with another separator in any place, or without its weekday, is none",
        arguments: [
            "Sunday, 06 Nov-94 08:49:37 GMT", "Sunday, 06-Nov 94 08:49:37 GMT", "Sunday 06-Nov-94 08:49:37 GMT",
            "Sunday, 06-Nov-94-08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37", "Sunday, 06-Nov-94 08:49:37 GMT ",
            "Sun, 06-Nov 1994 08:49:37 GMT", "Sun, 06 Nov-1994 08:49:37 GMT", "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08.49:37 GMT", "Sun, 06 Nov 1994 08:49.37 GMT", "Sun Nov  6 08:49:37-1994",
            "Sun-Nov  6 08:49:37 1994", "Sun Nov-06 08:49:37 1994", ", 06-Nov-94 08:49:37 GMT",
            ", 06 Nov 1994 08:49:37 GMT",
            " Nov  6 08:49:37 1994",
        ])
    func separators(text: String) {
        #expect(HTTPDate(fieldValue: text) == nil)
    }

    @Test(
        "A date without any one of its separators is none",
        arguments: [
            "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        ])
    func missingSeparators(text: String) {
        #expect(HTTPDate(fieldValue: text) != nil)
        for index in text.indices where !text[index].isLetter && !text[index].isNumber {
            var shorter = text
            shorter.remove(at: index)
            #expect(HTTPDate(fieldValue: shorter) == nil, "\(shorter)")
        }
    }
}
