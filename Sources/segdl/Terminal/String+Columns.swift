extension String {
    /// The terminal columns of the text. Colour sequences have none.
    var columns: Int {
        var isChoosing = false
        return self.unicodeScalars.reduce(0) { columns, scalar in
            if scalar == "\u{1B}" { isChoosing = true }
            defer { if scalar == "m" { isChoosing = false } }
            return isChoosing ? columns : columns + scalar.columns
        }
    }

    /// The text in at most `limit` columns. Longer text loses its middle, because the end of a name matters as well.
    func shortened(to limit: Int) -> String {
        guard self.columns > limit else { return self }
        guard limit > 1 else { return limit == 1 ? "…" : "" }
        let tail = String(String.prefix(of: self.reversed(), columns: (limit - 1) / 2).reversed())
        return String(String.prefix(of: Array(self), columns: limit - 1 - tail.columns)) + "…" + tail
    }

    /// The text in at most `limit` columns. Longer text loses its end.
    func clipped(to limit: Int) -> String {
        guard self.columns > limit else { return self }
        return limit > 0 ? String(String.prefix(of: Array(self), columns: limit - 1)) + "…" : ""
    }

    /// The text in lines of at most `limit` columns, broken between words. A longer word has a line of its own.
    func wrapped(to limit: Int) -> [String] {
        var lines: [String] = []
        for word in self.split(separator: " ") {
            if let last = lines.last, last.columns + 1 + String(word).columns <= limit {
                lines[lines.count - 1] += " \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }

    /// The text, padded with spaces to `width` columns.
    func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(width - self.columns, 0))
    }

    /// The text after as many spaces as needed for `width` columns.
    func rightAligned(in width: Int) -> String {
        String(repeating: " ", count: max(width - self.columns, 0)) + self
    }

    private static func prefix(of characters: [Character], columns limit: Int) -> [Character] {
        var columns = 0
        return Array(
            characters.prefix { character in
                columns += String(character).columns
                return columns <= limit
            })
    }
}

extension Unicode.Scalar {
    /// 0, 1 or 2 (UAX #11; ambiguous characters count as 1).
    fileprivate var columns: Int {
        switch self.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        switch self.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1FAFF,
            0x20000...0x3FFFD:
            return 2
        default:
            return 1
        }
    }
}
