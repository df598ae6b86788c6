import Testing

@testable import segdl

/// Commands that users copy, a part of which a server chose.
@Suite("Shell words")
struct ShellWordTests {
    @Test(
        "A name is quoted as one word, with any content",
        arguments: [
            ("a.bin", "a.bin"), ("", "''"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("-rf", "./-rf"),
            ("$(x)", "'$(x)'"),
            // An accent on the quotation mark makes it another `Character`; the shell sees bytes.
            ("a'\u{301};x", "'a'\\''\u{301};x'"), ("-\u{301}", "./-\u{301}"),
        ])
    func word(text: String, word: String) {
        #expect(text.shellWord.utf8.elementsEqual(word.utf8), "\(text.shellWord)")
    }

    @Test("The last component begins after the last slash, accent or not")
    func lastComponent() {
        #expect("a/b".lastPathComponent == "b")
        #expect("a/\u{301}b".lastPathComponent == "\u{301}b")
    }
}
