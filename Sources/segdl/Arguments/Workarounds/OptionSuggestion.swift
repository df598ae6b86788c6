/// Removes the parser's suggestion for an unknown option if the names are not similar.
///
/// Workaround: swift-argument-parser suggests `--out` for `--url` (`ParserError.unknownOption`). No upstream issue yet; it
/// accepts any distance below 4, which is all letters of a short name, and would have to compare it with the length.
enum OptionSuggestion {
    /// The message, without a suggestion that is not similar to what was written.
    static func kept(in message: String) -> String {
        guard let match = message.firstMatch(of: /Unknown option '(?<typed>[^']*)'\. Did you mean '(?<name>[^']*)'\?/)
        else { return message }
        let (typed, name) = (match.output.typed, match.output.name)
        guard !Self.isSimilar(typed, name) else { return message }
        return message.replacing(match.output.0, with: "Unknown option '\(typed)'")
    }

    /// Whether one may be a slip of the other: a third of the letters differ at most, and one letter of a short name.
    static func isSimilar(_ left: some StringProtocol, _ right: some StringProtocol) -> Bool {
        let (left, right) = (Array(left.drop { $0 == "-" }), Array(right.drop { $0 == "-" }))
        guard left.count > 1, right.count > 1 else { return false }
        return Self.distance(left, right) <= max(1, min(left.count, right.count) / 3)
    }

    /// How many letters must be inserted, removed, replaced or exchanged with their neighbour (optimal string alignment).
    private static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var rows = [Array(0...right.count)]
        for (i, letter) in left.enumerated() {
            var row = [i + 1]
            for (j, other) in right.enumerated() {
                var best = min(rows[i][j] + (letter == other ? 0 : 1), rows[i][j + 1] + 1, row[j] + 1)
                if i > 0, j > 0, letter == right[j - 1], left[i - 1] == other {
                    best = min(best, rows[i - 1][j - 1] + 1)
                }
                row.append(best)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}
