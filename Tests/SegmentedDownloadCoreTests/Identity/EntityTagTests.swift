import SegmentedDownloadCore
import Testing

@Suite("Entity tag")
struct EntityTagTests {
    @Test(
        "A well-formed tag is read and written unchanged",
        arguments: [
            ("\"abc\"", "abc", false), ("W/\"abc\"", "abc", true), ("\"\"", "", false), ("W/\"\"", "", true),
            ("\"5f-64c!#~'/\\,;\"", "5f-64c!#~'/\\,;", false), ("\"W/\"", "W/", false), ("\"grün\"", "grün", false),
        ]
    )
    func wellFormed(fieldValue: String, opaque: String, isWeak: Bool) throws {
        let tag = try #require(EntityTag(fieldValue: fieldValue))
        #expect(tag.opaque == opaque)
        #expect(tag.isWeak == isWeak)
        #expect(tag.fieldValue == fieldValue)
    }

    @Test(
        "A malformed tag is rejected",
        arguments: [
            "", "\"", "abc", "\"abc", "abc\"", "W/", "W/abc", "W/\"", "w/\"abc\"", "W\"abc\"", "W/ \"abc\"",
            "W/W/\"abc\"",
            " \"abc\"", "\"abc\" ", "\"a c\"", "\"a\tc\"", "\"a\"c\"", "\"abc\", \"def\"", "'abc'", "*", "\"abc\"\r\n",
            "\"a\r\nb\"", "\"a\0b\"", "\"a\u{1B}b\"", "\"a\u{7F}b\"", "“abc”", "\"\u{301}abc\"\u{301}",
        ]
    )
    func malformed(fieldValue: String) {
        #expect(EntityTag(fieldValue: fieldValue) == nil)
    }

    @Test("A tag with a replacement character is rejected, because two such tags look the same")
    func replacementCharacter() {
        #expect(EntityTag(fieldValue: String(decoding: [0x22, 0xE9, 0x22], as: UTF8.self)) == nil)
    }

    @Test("Tags are compared byte for byte, not as text")
    func equality() throws {
        let composed = try #require(EntityTag(fieldValue: "\"\u{E9}\""))
        let decomposed = try #require(EntityTag(fieldValue: "\"e\u{301}\""))
        #expect(composed.opaque == decomposed.opaque)
        #expect(composed != decomposed)
        #expect(EntityTag(fieldValue: "\"abc\"") == EntityTag(fieldValue: "\"abc\""))
        #expect(EntityTag(fieldValue: "\"abc\"") != EntityTag(fieldValue: "\"ABC\""))
        #expect(EntityTag(fieldValue: "\"abc\"") != EntityTag(fieldValue: "W/\"abc\""))
        #expect(Set([composed, decomposed, composed]).count == 2)
    }

    @Test("Hostile text never traps, and an accepted tag is written unchanged", arguments: UInt64(0)..<4)
    func hostile(seed: UInt64) {
        for text in HostileText(examples: ["\"abc\"", "W/\"abc\""], seed: seed) {
            guard let tag = EntityTag(fieldValue: text) else { continue }
            #expect(tag.fieldValue.utf8.elementsEqual(text.utf8), "\(text.debugDescription), seed \(seed)")
        }
    }
}
