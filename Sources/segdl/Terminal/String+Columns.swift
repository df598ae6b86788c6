extension String {
    /// The terminal columns of the text. Colour sequences have none.
    ///
    /// Terminals differ for sequences of emoji: some show one, others each of its characters. The larger number counts,
    /// because a line that is too long wraps.
    var columns: Int {
        var isChoosing = false
        var columns = 0
        var previous: Unicode.Scalar?
        for scalar in self.unicodeScalars {
            if scalar == "\u{1B}" { isChoosing = true }
            defer { if scalar == "m" { isChoosing = false } }
            if isChoosing { continue }
            columns += scalar.columns
            // It asks for the wide form of an emoji that is narrow otherwise, such as of the heart.
            if scalar == "\u{FE0F}", let previous, previous.properties.isEmoji, previous.columns == 1 { columns += 1 }
            previous = scalar
        }
        return columns
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
        case .nonspacingMark, .enclosingMark, .control: return 0
        // Terminals show the others, such as the Arabic number sign.
        case .format where self.properties.isDefaultIgnorableCodePoint && self != "\u{AD}": return 0
        default: return self.isWide ? 2 : 1
        }
    }

    private var isWide: Bool {
        let bounds = WideCharacters.bounds
        guard self.value >= bounds[0] else { return false }
        // The number of bounds below the value: odd inside of a range, and also at a range's last value.
        var (low, high) = (0, bounds.count)
        while low < high {
            let middle = (low + high) / 2
            if bounds[middle] < self.value { low = middle + 1 } else { high = middle }
        }
        return low < bounds.count && (!low.isMultiple(of: 2) || bounds[low] == self.value)
    }
}
