extension String {
    /// In Unicode scalars: two lines of a terminal, enough to recognise a text by.
    package static let printableLengthMax = 200

    /// The text fit for a terminal or a log: the one way there for whatever a server said.
    ///
    /// Control, bidirectional and invisible characters and line separators are written as `\u{1B}`; a backslash is left
    /// alone, so this is for reading and not for reading back. A long text is cut before an escape, never within, and
    /// ends in `…`. Lengths are in scalars because one `Character` may be a megabyte of accents.
    package var printable: String { self.printable(limit: String.printableLengthMax) }

    /// ``printable`` with another limit, in Unicode scalars and without the `…`.
    package func printable(limit: Int) -> String {
        // Nearly every text is fit as it is, and letter by letter takes a tenth of what a small file costs in all.
        if self.utf8.count <= limit, self.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return self }
        var text = String.UnicodeScalarView()
        var length = 0
        for scalar in self.unicodeScalars {
            let piece =
                scalar.isPrintable ? String(scalar) : "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            length += piece.unicodeScalars.count
            guard length <= limit else {
                text.append("…")
                break
            }
            text.append(contentsOf: piece.unicodeScalars)
        }
        return String(text)
    }
}

extension Unicode.Scalar {
    /// Whether this can be shown as it is: it moves no cursor, turns no line around, and is there to be seen.
    package var isPrintable: Bool {
        switch self.value {
        case 0x00...0x1F, 0x7F...0x9F: false  // C0, DEL, C1.
        case 0x2028...0x2029: false  // Line and paragraph separators.
        case 0x061C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: false  // Bidirectional controls.
        // Invisible: what Unicode calls ignorable by default. Not the sixteen variation selectors from U+FE00, which
        // choose how the character before them looks; the others (within U+E0000) carry hidden text, as the tags do.
        case 0x00AD, 0x034F, 0x115F...0x1160, 0x17B4...0x17B5, 0x180B...0x180F, 0x200B...0x200D, 0x2060...0x2065: false
        case 0x206A...0x206F, 0x3164, 0xFEFF, 0xFFA0, 0xFFF0...0xFFF8, 0x1BCA0...0x1BCA3, 0x1D173...0x1D17A: false
        case 0xE0000...0xE0FFF: false
        default: true
        }
    }
}
