import Testing

@testable import segdl

/// How much room text takes on a terminal.
@Suite struct ColumnsTests {
    @Test(
        "The columns of a text are at least those that terminals use",
        arguments: [
            ("", 0), ("abc", 3), ("é", 1), ("e\u{301}", 1), ("日本語", 6), ("ｆｕｌｌ", 8), ("한", 2), ("…─█", 3),
            // Emoji outside of the blocks of emoji.
            ("⭐", 2), ("✅", 2), ("⚡", 2), ("❌", 2), ("⏰", 2), ("⛔", 2), ("✨", 2), ("⌚", 2), ("🀄", 2), ("🟥", 2),
            // Narrow unless a selector follows.
            ("❤", 1), ("❤\u{FE0F}", 2), ("☎\u{FE0E}", 1), ("⭐\u{FE0F}", 2), ("1\u{FE0F}\u{20E3}", 2),
            // The first and last of ranges, and their neighbours.
            ("\u{10FF}", 1), ("\u{1100}", 2), ("\u{115F}", 2), ("\u{1160}", 1), ("\u{303E}", 2), ("\u{303F}", 1),
            ("\u{231A}", 2), ("\u{231B}", 2), ("\u{231C}", 1), ("\u{23F0}", 2), ("\u{23F1}", 1), ("\u{3FFFD}", 2),
            ("\u{3FFFE}", 1), ("\u{10FFFD}", 1), ("\u{1F1E9}\u{1F1EA}", 2), ("\u{1F47D}\u{1F3FB}", 4),
            // Marks and joiners have none. Terminals show soft hyphens, and signs that enclose the next digits.
            ("\u{200D}", 0), ("a\u{AD}", 2), ("\u{600}", 1), ("न\u{94D}", 1), ("\u{1B}[31mred\u{1B}[0m", 3),
        ] as [(String, Int)])
    func columns(text: String, columns: Int) {
        #expect(text.columns == columns, "\(text.unicodeScalars.map { String($0.value, radix: 16) })")
    }

    @Test("The bounds of wide characters ascend, and ranges do not touch")
    func table() {
        let bounds = WideCharacters.bounds
        #expect(bounds.count.isMultiple(of: 2))
        for index in bounds.indices.dropFirst() {
            #expect(
                bounds[index - 1] < bounds[index] || (!index.isMultiple(of: 2) && bounds[index - 1] == bounds[index]))
        }
    }

    @Test("A name of emoji is shortened to the columns there are")
    func shortened() {
        let name = String(repeating: "⭐", count: 30) + ".mp4"
        for limit in 1...60 {
            #expect(name.shortened(to: limit).columns <= limit && name.clipped(to: limit).columns <= limit)
        }
    }
}
