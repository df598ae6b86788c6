import SegmentedDownload

/// Writes options as the parser requires it.
///
/// Workaround: swift-argument-parser takes the text after the `=` of `-bname=value` for the value of an option `-bname`
/// (https://github.com/apple/swift-argument-parser/issues/515).
///
/// Workaround: swift-argument-parser has options whose value may be missing (`defaultAsFlag`,
/// https://github.com/apple/swift-argument-parser/pull/830), but takes the URL in `-c URL` for the value. No upstream
/// issue yet; an argument that is no value of the option would have to be left alone.
enum ParserSpelling {
    /// Letters whose values may contain an `=`.
    private static let letters: Set<Substring> = ["-b", "-H", "-A", "-e", "-u", "-o", "-d", "-P", "-i"]

    /// The arguments with a value for every `-c` and `--continue`, `auto` if none follows, and with each of these
    /// letters separated from its value if the value contains an `=`.
    static func spelled(_ arguments: [String]) -> [String] {
        ArgumentWalk(arguments).replacingItems { item in
            let word = item.word
            if word == "-c" || word == "--continue" {
                return ["--continue=\(item.value ?? DownloadOptions.Continuation.auto.rawValue)"]
            }
            guard Self.letters.contains(word.prefix(2)), word.utf8.count > 2, word.contains("=") else {
                return item.arguments
            }
            return [String(word.prefix(2)), String(word.dropFirst(2))] + item.following
        }
    }
}
