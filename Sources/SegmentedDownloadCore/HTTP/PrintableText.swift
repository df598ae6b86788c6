extension String {
    /// The default limit in Unicode scalars: two lines of a terminal, enough to recognize a text.
    package static let printableLengthMax = 200

    /// The text in a form that is safe for a terminal or a log. Every text from a server is printed through this
    /// property.
    ///
    /// Control, bidirectional and invisible characters and line separators are escaped as in `\u{1B}`. A backslash is
    /// not escaped, so the result cannot be parsed back. A long text is cut between characters or escapes and ends in
    /// `…`. Lengths are in Unicode scalars, because one `Character` may contain a megabyte of accents.
    package var printable: String { self.printable(limit: String.printableLengthMax) }

    /// Like ``printable``, with another limit in Unicode scalars. The `…` is not counted.
    package func printable(limit: Int) -> String {
        // Most texts need no change. The loop below would take a tenth of the CPU time of downloading a small file.
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
    /// Whether the scalar is visible and affects neither the cursor nor the direction of the text.
    package var isPrintable: Bool {
        switch self.value {
        case 0x00...0x1F, 0x7F...0x9F: false  // C0, DEL, C1.
        case 0x2028...0x2029: false  // Line and paragraph separators.
        case 0x061C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: false  // Bidirectional controls.
        // Invisible: Default_Ignorable_Code_Point of Unicode. The sixteen variation selectors from U+FE00 stay, because
        // they select how the preceding character looks. The selectors and tags within U+E0000 can carry hidden text.
        case 0x00AD, 0x034F, 0x115F...0x1160, 0x17B4...0x17B5, 0x180B...0x180F, 0x200B...0x200D, 0x2060...0x2065: false
        case 0x206A...0x206F, 0x3164, 0xFEFF, 0xFFA0, 0xFFF0...0xFFF8, 0x1BCA0...0x1BCA3, 0x1D173...0x1D17A: false
        case 0xE0000...0xE0FFF: false
        default: true
        }
    }
}
