import SegmentedDownloadCore
import Testing

@Suite("Printable text")
struct PrintableTextTests {
    @Test(
        "Ordinary text is unchanged",
        arguments: ["", "Not Found", "grün €", "日本語", "😀", "e\u{301}", "a\\b", "\u{FFFD}", "❤\u{FE0F}"])
    func unchanged(text: String) {
        #expect(text.printable.utf8.elementsEqual(text.utf8))
    }

    @Test(
        "Control characters and invisible characters are escaped",
        arguments: [
            ("\u{1B}[2J", "\\u{1B}[2J"), ("\u{7}", "\\u{7}"), ("a\0b", "a\\u{0}b"), ("a\r\nb", "a\\u{D}\\u{A}b"),
            ("\t", "\\u{9}"), ("\u{7F}", "\\u{7F}"), ("\u{9B}2J", "\\u{9B}2J"), ("\u{85}", "\\u{85}"),
            ("\u{61C}", "\\u{61C}"), ("\u{200B}", "\\u{200B}"), ("\u{200D}", "\\u{200D}"), ("\u{200E}", "\\u{200E}"),
            ("\u{200F}", "\\u{200F}"), ("\u{2028}", "\\u{2028}"), ("\u{2029}", "\\u{2029}"), ("\u{202A}", "\\u{202A}"),
            ("\u{202E}", "\\u{202E}"), ("\u{2060}", "\\u{2060}"), ("\u{2066}", "\\u{2066}"), ("\u{2069}", "\\u{2069}"),
            ("\u{FEFF}", "\\u{FEFF}"), ("\u{AD}", "\\u{AD}"), ("\u{3164}", "\\u{3164}"),
            ("\u{E0041}", "\\u{E0041}"), ("\u{E0100}", "\\u{E0100}"), ("a\u{200B}\u{301}", "a\\u{200B}\u{301}"),
        ]
    )
    func escaped(text: String, printable: String) {
        #expect(text.printable == printable)
    }

    @Test(
        "A long text is cut before the first character that does not fit",
        arguments: [
            ("abc", 3, "abc"), ("abcd", 3, "abc…"), ("a\u{1B}", 7, "a\\u{1B}"), ("a\u{1B}", 6, "a…"), ("abc", 0, "…"),
            ("", 0, ""),
            ("äöü", 2, "äö…"),
        ]
    )
    func cut(text: String, limit: Int, printable: String) {
        #expect(text.printable(limit: limit) == printable)
    }

    @Test("Two hundred scalars are printed; one character with a thousand accents is too long")
    func limit() {
        let long = String(repeating: "a", count: 200)
        #expect(long.printable == long)
        #expect((long + "a").printable == long + "…")
        #expect(("e" + String(repeating: "\u{301}", count: 1_000)).printable.unicodeScalars.count == 201)
    }

    @Test("Hostile text never traps, and the result is printable and short", arguments: UInt64(0)..<4)
    func hostile(seed: UInt64) {
        for text in HostileText(examples: ["Not Found", "Moved\u{1B}[31m", "a\u{202E}b"], seed: seed) {
            let printable = text.printable
            #expect(printable.unicodeScalars.count <= 201, "\(text.debugDescription), seed \(seed)")
            #expect(printable.printable(limit: .max) == printable, "\(text.debugDescription), seed \(seed)")
        }
    }

    @Test(
        "What cannot be shown is known to the last scalar of each range, and no further",
        arguments: [
            0x00...0x1F, 0x7F...0x9F, 0xAD...0xAD, 0x034F...0x034F, 0x061C...0x061C, 0x115F...0x1160, 0x17B4...0x17B5,
            0x180B...0x180F, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0x3164...0x3164, 0xFEFF...0xFEFF,
            0xFFA0...0xFFA0, 0xFFF0...0xFFF8, 0x1BCA0...0x1BCA3, 0x1D173...0x1D17A, 0xE0000...0xE0FFF,
        ] as [ClosedRange<UInt32>])
    func ranges(hidden: ClosedRange<UInt32>) {
        let before = max(hidden.lowerBound, 1) - 1
        for value in [before, hidden.lowerBound, hidden.upperBound, hidden.upperBound + 1] {
            #expect(Unicode.Scalar(value)?.isPrintable == !hidden.contains(value))
        }
    }
}
