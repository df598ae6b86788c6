/// A line of the configuration file without blanks at its ends, its comment and the quotation marks of its value.
///
/// `#` at the beginning or after a blank begins a comment. A value can be in quotation marks, single or double: it is then the
/// text between them, which may contain `#`, and has no escapes.
enum ConfigurationLine: Hashable {
    case empty
    /// A line that begins with `[`.
    case heading(String)
    case option(name: String, value: String?)

    init(_ line: some StringProtocol) throws(ConfigurationFile.Problem) {
        let line = Self.trimmed(line)
        let bare = Self.withoutComment(line)
        if bare.isEmpty {
            self = .empty
        } else if bare.hasPrefix("[") {
            self = .heading(bare)
        } else if bare.contains("="), let equals = line.firstIndex(of: "=") {
            let name = Self.name(line[..<equals])
            // Of the whole line: its value may be in quotation marks, and contain what looks like a comment.
            let text = Self.trimmed(line[line.index(after: equals)...])
            self = .option(name: name, value: try Self.value(text, of: name))
        } else {
            self = .option(name: Self.name(bare), value: nil)
        }
    }

    private static func name(_ text: some StringProtocol) -> String {
        let name = Self.trimmed(text)
        return name.hasPrefix("--") ? String(name.dropFirst(2)) : name
    }

    private static func value(_ text: String, of name: String) throws(ConfigurationFile.Problem) -> String {
        // A shell reads this value, with rules of its own for comments and quotation marks.
        guard name != "on-complete", name != "on-error" else { return text }
        guard let mark = text.first, mark == "\"" || mark == "'" else {
            let value = Self.withoutComment(text)
            // It might also be a part of a password.
            guard value == text || !Setting.mayBeSecret(name) else {
                throw ConfigurationFile.Problem(
                    message: "\(name) has \" #\" in its value: write the value in quotation marks")
            }
            return value
        }
        let rest = text.dropFirst()
        guard let end = rest.firstIndex(of: mark),
            Self.withoutComment(Self.trimmed(rest[rest.index(after: end)...])).isEmpty
        else {
            throw ConfigurationFile.Problem(
                message: "the value of \(name) begins with a quotation mark and must end with the same one")
        }
        return String(rest[..<end])
    }

    private static func withoutComment(_ text: String) -> String {
        var previous: Character = " "
        for index in text.indices {
            if text[index] == "#", previous == " " || previous == "\t" { return Self.trimmed(text[..<index]) }
            previous = text[index]
        }
        return text
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        let start = text.drop { $0 == " " || $0 == "\t" }
        guard let end = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return String(start[...end])
    }
}
