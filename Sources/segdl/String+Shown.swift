extension String {
    /// The text fit for a terminal: control, bidirectional and invisible characters are written as `\u{1B}`.
    var shown: String {
        var text = ""
        for scalar in self.unicodeScalars {
            if scalar.isShowable {
                text.unicodeScalars.append(scalar)
            } else {
                text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            }
        }
        return text
    }

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

extension Unicode.Scalar {
    /// Whether this moves no cursor, turns no line around, and is there to be seen.
    var isShowable: Bool {
        switch self.value {
        case 0x00...0x1F, 0x7F...0x9F: false  // C0, DEL, C1.
        case 0x061C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: false  // Bidirectional controls.
        case 0x200B...0x200D, 0x2060...0x2065, 0x206A...0x206F, 0xFEFF: false  // Invisible.
        case 0x2028...0x2029: false  // Line and paragraph separators.
        default: true
        }
    }
}
