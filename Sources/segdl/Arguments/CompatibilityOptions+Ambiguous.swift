import SegmentedDownloadCore

extension CompatibilityOptions {
    /// The meaning of options that curl, wget, axel and aria2 disagree about: the value or the word after it decides.
    ///
    /// - Parameter outputs: The values of all `-o`.
    /// - Returns: Nil for other options.
    static func takingNext(
        _ item: ArgumentWalk.Item, _ next: ArgumentWalk.Item?, outputs: [String]
    ) throws(Refusal) -> (arguments: [String], skipped: Int)? {
        if let arguments = try Self.meaning(ofValueOf: item, outputs: outputs) { return (arguments, 0) }
        switch item.word {
        case "-s" where SegmentCount(argument: item.value ?? "") == nil && !Self.isNumber(item.value):
            // curl's -s: a URL or an option follows.
            return (["--quiet"] + item.following, 0)
        case "-n":
            // axel's number of connections, or curl's --netrc.
            guard let number = next?.word, Self.isNumber(number) else { return (["--netrc"], 0) }
            return (["--segments=\(number)"], 1)
        case "-c", "--continue":
            guard item.value == nil, let word = next?.word, Self.isFileName(word) else { return nil }
            throw Refusal(word: item.word, hint: "curl's -c FILE stores cookies; segdl's -c resumes. \(Self.cookies)")
        default: break
        }
        if item.word.hasPrefix("-k") { return Self.splitLength(item, next) }
        return try Self.remoteName(item, next)
    }

    /// The meaning of an option whose value shows which program's it is; nil if it is segdl's.
    private static func meaning(
        ofValueOf item: ArgumentWalk.Item, outputs: [String]
    ) throws(Refusal) -> [String]? {
        let value = item.value ?? ""
        let isURL = Self.isURL(value)
        let option = item.word.hasPrefix("--") ? item.name : String(item.word.prefix(2))
        switch option {
        case "-x" where !value.isEmpty && !Self.isNumber(value):
            // curl's proxy. wget's -x has no value, so that the URL of the file follows.
            guard !isURL || value.split(separator: "/").count == 2 else {
                throw Refusal(word: item.word, hint: "Write --name-template {host}/{name} for wget's -x")
            }
            return ["--proxy=\(value.contains("://") ? value : "http://\(value)")"]
        case "-d" where isURL || value.hasPrefix("@") || value.hasPrefix("{"),
            "-d" where value.contains("=") && !value.contains("/"):
            throw Refusal(
                word: "-d \(value.shown)",
                hint: "segdl's -d is a directory. curl's -d sends data, and segdl only fetches; for wget's -d write -v")
        case "-b" where isURL: throw Refusal(word: "-b", hint: "For wget's -b write --background")
        case "-e" where value.firstMatch(of: /^[a-z_]+ *= *(on|off|[0-9]+)$/) != nil:
            throw Refusal(
                word: "-e \(value.shown)", hint: "segdl's -e is the Referer, and not a line of wget's .wgetrc")
        case "-m" where isURL: throw Refusal(word: "-m", hint: Self.recursion)
        case "-r" where isURL: throw Refusal(word: "-r", hint: Self.recursion)
        case "-z", "--time-cond":
            guard outputs.contains(value) else { throw Refusal(word: item.name, hint: Self.time) }
            return ["--if-exists=newer"]
        case "--continue" where Bool(value) != nil: return ["--continue=\(value == "true" ? "auto" : "no")"]
        case "--progress" where value.hasPrefix("dot"): return ["--progress=log"]
        case "--progress" where value.hasPrefix("bar:"): return ["--progress=bar"]
        case "--no-proxy" where !value.isEmpty: return ["--noproxy=\(value)"]
        default: return nil
        }
    }

    /// aria2's `-k`, the length below which it does not split.
    private static func splitLength(
        _ item: ArgumentWalk.Item, _ next: ArgumentWalk.Item?
    ) -> (arguments: [String], skipped: Int)? {
        let isAlone = item.word == "-k"
        let value = isAlone ? next?.word : String(item.word.dropFirst(2))
        guard let value, ByteCount(argument: value) != nil else { return nil }
        return (["--min-split-size=\(value)"], isAlone ? 1 : 0)
    }

    /// curl's `-O`, which may be among other letters and keeps the remote name, and wget's, which names the file.
    private static func remoteName(
        _ item: ArgumentWalk.Item, _ next: ArgumentWalk.Item?
    ) throws(Refusal) -> (arguments: [String], skipped: Int)? {
        if item.word.hasPrefix("-O"), item.word.count > 2, !Self.isLetters(item.word) {
            // wget's -OFILE.
            return (["-o", String(item.word.dropFirst(2))], 0)
        }
        guard item.word == "-O" || (Self.isLetters(item.word) && item.word.contains("O")) else { return nil }
        let others = try Self.separated(item.word.filter { $0 != "O" })
        // curl's: an option, a URL or nothing follows.
        guard let next = next?.word, next == "-" || !(next.hasPrefix("-") || Self.isURL(next)) else {
            return (others, 0)
        }
        // A name is wget's. Whether `example.org/file` is a name or a URL cannot be seen.
        let isName = !next.contains("/") || ["/", "./", "../"].contains(where: next.hasPrefix)
        guard next == "-" || (isName && item.word.last == "O") else { return nil }
        return (others + ["-o", next], 1)
    }

    private static func isURL(_ text: String) -> Bool { ["http://", "https://"].contains(where: text.hasPrefix) }

    private static func isNumber(_ text: String?) -> Bool {
        text.flatMap { DecimalDigits($0.utf8) } != nil
    }

    /// Whether an operand is the name of a file, and neither a URL nor a metalink.
    private static func isFileName(_ word: String) -> Bool {
        !word.hasPrefix("-") && !word.contains("://") && !InputFile(path: word).isMetalink
    }
}
