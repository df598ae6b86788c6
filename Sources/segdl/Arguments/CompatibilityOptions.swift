/// Options of curl, wget, axel and aria2 that segdl does not have: the first pass of the ``ArgumentPipeline``.
///
/// Options that ask for segdl's default behaviour are ignored, and those that segdl has under another name are renamed.
/// For the others the error states the equivalent. An option on which these programs disagree has the meaning of the one
/// that its value fits, see ``takingNext(_:_:outputs:)``.
enum CompatibilityOptions {
    /// An option that segdl does not support, and the equivalent.
    struct Refusal: Error, Hashable {
        let word: String
        let hint: String
    }

    enum Meaning {
        /// It is segdl's default. The option is ignored.
        case given
        /// It is segdl's default if it has this value.
        case givenAs(String)
        /// These arguments mean the same.
        case spelled([String])
        /// segdl's option with the same value between a prefix and a suffix. The value is in the same word or the next.
        case renamed(String, prefix: String = "", suffix: String = "")
        /// The value is a URL to fetch.
        case operand
        /// What these values mean, for an option that is on without one.
        case choice([String: [String]])
        /// segdl spells it differently or does not support it. The text is the hint of the error.
        case written(String)
    }

    /// The arguments in segdl's spelling, without the options that are segdl's default.
    static func understood(_ arguments: [String]) throws(Refusal) -> [String] {
        // wget's -qO FILE.
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        let separate = arguments[..<end].flatMap { $0.hasPrefix("-qO") ? ["-q", "-" + $0.dropFirst(2)] : [$0] }
        let walk = ArgumentWalk(separate + arguments[end...], foreignOptions: Self.withValue)
        // With aria2's --conditional-get, its --allow-overwrite applies to older files only.
        let isConditional = walk.items.contains { $0.name == "--conditional-get" && $0.value ?? "true" == "true" }
        let outputs = walk.items.filter { ["-o", "--output", "--out"].contains($0.name) }.compactMap(\.value)
        var understood: [String] = []
        var items = walk.items[...]
        while let item = items.popFirst() {
            if item.name == "--allow-overwrite", isConditional { continue }
            // `segdl resume --url NEW` is segdl's own.
            if item.name == "--url", StoredOptions.command(of: understood) == "resume" {
                understood += item.arguments
            } else if let taken = try Self.takingNext(item, items.first, outputs: outputs) {
                understood += taken.arguments
                items = items.dropFirst(taken.skipped)
            } else {
                understood += try Self.meaning(of: item)
            }
        }
        return understood + walk.rest
    }

    private static func meaning(of item: ArgumentWalk.Item) throws(Refusal) -> [String] {
        switch Self.meanings[item.name] {
        case .given?: return item.following
        case .givenAs(let value)?:
            guard item.value == value else {
                throw Refusal(word: item.name, hint: "Only \(item.name) \(value) is supported")
            }
            return []
        case .spelled(let arguments)?: return arguments
        case .renamed(let option, let prefix, let suffix)?:
            guard let value = item.value else { throw Refusal(word: item.name, hint: "It needs a value, as \(option)") }
            guard option != "--retry" || (value != "0" && value != "inf") else {
                throw Refusal(
                    word: item.name, hint: "\(value) would retry without end. Write --retry N with a great N")
            }
            return ["\(option)=\(prefix)\(value)\(suffix)"]
        case .operand?:
            return item.value.map { [$0] } ?? item.arguments
        case .choice(let meanings)?:
            guard let arguments = meanings[item.value ?? "true"] else {
                throw Refusal(word: item.name, hint: "Its values are \(meanings.keys.sorted().joined(separator: ", "))")
            }
            return arguments
        case .written(let hint)?:
            guard Self.isOff(item) else { throw Refusal(word: item.name, hint: hint) }
            return []
        case nil:
            if Self.torrentPrefixes.contains(where: item.name.hasPrefix) {
                guard !Self.isOff(item) else { return [] }
                throw Refusal(word: item.name, hint: Self.torrent)
            }
            return (Self.isLetters(item.word) ? try Self.separated(item.word) : [item.word]) + item.following
        }
    }

    /// Whether an option of aria2 that segdl does not have is turned off, as in `--enable-rpc=false`.
    private static func isOff(_ item: ArgumentWalk.Item) -> Bool {
        item.word == "\(item.name)=false" || item.word == "\(item.name)="
    }

    /// Whether a word is several of curl's letters.
    static func isLetters(_ word: String) -> Bool {
        let letters = word.dropFirst()
        return word.hasPrefix("-") && letters.count > 1 && letters.allSatisfy { "fLOSJsR#k".contains($0) }
            && letters.contains { "fLOSJ#".contains($0) }
    }

    /// The options for curl's letters in one word, such as `-fsSL`.
    static func separated(_ word: String) throws(Refusal) -> [String] {
        let letters = word.dropFirst()
        for letter in ["O", "k"] where letters.contains(letter) {
            guard case .written(let hint)? = Self.meanings["-\(letter)"] else { continue }
            throw Refusal(word: word, hint: hint)
        }
        return [("s", "--quiet"), ("R", "--remote-time"), ("#", "--progress=bar")]
            .filter { letters.contains($0.0) }.map(\.1)
    }

    /// The options that take the next word as their value.
    private static let withValue = Set(
        Self.meanings.compactMap { option, meaning in
            switch meaning {
            case .givenAs, .renamed, .operand: option
            case .given, .spelled, .choice, .written: nil
            }
        }
    ).union(["-z", "--time-cond"])
}
