import SegmentedDownloadCore

extension String {
    /// The whole text fit for a terminal: what would not be seen, or would move the cursor, is written as `\u{1B}`.
    var shown: String { self.printable(limit: .max) }

    /// The text as one word of a shell's command line.
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
        // What begins with a dash would be an option.
        let word = self.hasPrefix("-") ? "./\(self)" : self
        guard !isPlain else { return word.shown }
        return "'" + word.shown.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }

    /// What follows the last slash.
    var lastPathComponent: String {
        self.lastIndex(of: "/").map { String(self[self.index(after: $0)...]) } ?? self
    }
}
