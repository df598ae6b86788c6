import SegmentedDownload

/// A command line as options with their values, and operands.
///
/// Every pass over the arguments uses it, so that all agree which argument is a value, and that `--` ends the options.
struct ArgumentWalk {
    /// An operand, or an option with its value.
    struct Item {
        /// The operand, the option, or the option with the value that is in the same argument.
        let word: String
        /// A long option without its value; otherwise the whole word.
        let name: String
        /// The option's value; nil if there is none.
        let value: String?
        /// The argument after the word, if it is the option's value.
        let following: [String]

        /// The arguments as they were.
        var arguments: [String] { [self.word] + self.following }
    }

    let items: [Item]
    /// `--` and the operands after it; empty if there is no `--`.
    let rest: [String]

    /// - Parameter foreignOptions: Options with values that are not segdl's.
    init(_ arguments: [String], foreignOptions: Set<String> = []) {
        var items: [Item] = []
        var rest = arguments[...]
        while let argument = rest.first, argument != "--" {
            rest.removeFirst()
            let bytes = Array(argument.utf8)
            let word = ArgumentWord(bytes)
            var following: [String] = []
            if word.awaitsValue || foreignOptions.contains(argument), let next = rest.first,
                Self.isValue(next, of: word.option)
            {
                following = [rest.removeFirst()]
            }
            let attached = word.valueStart.map { String(decoding: bytes[$0...], as: UTF8.self) }
            items.append(
                Item(
                    word: argument, name: argument.hasPrefix("--") ? word.option ?? argument : argument,
                    value: attached ?? following.first, following: following))
        }
        self.items = items
        self.rest = Array(rest)
    }

    /// Whether an argument is the value of the option before it.
    ///
    /// As for the parser, an argument that begins with a dash is an option, except `-` itself. `-c` may stand without a
    /// value, before a URL.
    private static func isValue(_ argument: String, of option: String?) -> Bool {
        switch option {
        case "-c", "--continue": DownloadOptions.Continuation(rawValue: argument) != nil
        default: !argument.hasPrefix("-") || argument == "-"
        }
    }

    /// The arguments with others in place of each item. `--` and what follows it stay as they are.
    func replacingItems<Problem>(_ replacement: (Item) throws(Problem) -> [String]) throws(Problem) -> [String] {
        var arguments: [String] = []
        for item in self.items { arguments += try replacement(item) }
        return arguments + self.rest
    }
}
