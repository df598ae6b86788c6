import SegmentedDownload
import SegmentedDownloadCore

extension String {
    /// The whole text, safe for a terminal: invisible characters and those that move the cursor are escaped (`\u{1B}`).
    var shown: String { self.printable(limit: .max) }

    /// The text, safe for a terminal, in a place where a user may have written a URL: see ``SourceURL/withoutSecrets(_:)``.
    var shownWithoutSecrets: String { self.contains("//") ? SourceURL.withoutSecrets(self) : self.shown }

    /// The text, quoted as one word of a shell command.
    var shellWord: String {
        let isPlain =
            !self.isEmpty
            && self.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"),
                    UInt8(ascii: "/"), UInt8(ascii: "+"), UInt8(ascii: "="), UInt8(ascii: ","), UInt8(ascii: ":"),
                    UInt8(ascii: "@"), UInt8(ascii: "%"), 0x80...:
                    true
                default: false
                }
            }
        // A word that begins with a dash would be an option.
        let word = self.utf8.first == UInt8(ascii: "-") ? "./\(self)" : self
        guard !isPlain else { return word.shown }
        // By bytes, as the shell reads it: a quotation mark with a combining accent is another `Character`.
        let pieces = word.shown.utf8.split(separator: UInt8(ascii: "'"), omittingEmptySubsequences: false)
        return "'" + pieces.map { String(Substring($0)) }.joined(separator: "'\\''") + "'"
    }

    /// The text after the last slash.
    var lastPathComponent: String {
        self.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(self[self.utf8.index(after: $0)...]) } ?? self
    }
}
