/// A letter with its value in the same word, such as `-bname=value`.
///
/// The parser would take the text after the `=` for the option's value.
enum JoinedValue {
    /// Letters whose values may contain an `=`.
    private static let letters: Set<Substring> = ["-b", "-H", "-A", "-e", "-u", "-o", "-d", "-P", "-i"]

    /// The arguments, with each of these letters separated from its value if the value contains an `=`.
    static func separated(_ arguments: [String]) -> [String] {
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        let options = arguments[..<end].flatMap { argument -> [String] in
            guard Self.letters.contains(argument.prefix(2)), argument.utf8.count > 2, argument.contains("=") else {
                return [argument]
            }
            return [String(argument.prefix(2)), String(argument.dropFirst(2))]
        }
        return options + arguments[end...]
    }
}
