import SegmentedDownload

/// Assigns each `--mirror URL` to the URL before it. The parser does not keep the order of options and arguments.
enum MirrorArguments {
    /// Inserted among the arguments after each mirror. It is no valid URL, so it cannot collide with an argument.
    static let mark = "\u{1A}mirror"

    /// The arguments with a mark after every mirror.
    static func marked(_ arguments: [String]) -> [String] {
        var marked: [String] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "--" { return marked + [argument] + rest }
            if argument == "--mirror", let value = rest.popFirst() {
                marked += ["--mirror=\(value)", Self.mark]
            } else if argument.hasPrefix("--mirror=") {
                marked += [argument, Self.mark]
            } else {
                marked.append(argument)
            }
        }
        return marked
    }

    /// Each argument with the mirrors after it. If there is only one argument, mirrors before it are its own, too.
    static func assigned(
        _ mirrors: [String], among arguments: [String]
    ) throws(DownloadError) -> [(argument: String, mirrors: [String])] {
        var assigned: [(argument: String, mirrors: [String])] = []
        var early: [String] = []
        var rest = mirrors[...]
        for argument in arguments {
            if argument != Self.mark {
                assigned.append((argument, []))
            } else if let mirror = rest.popFirst() {
                if assigned.isEmpty {
                    early.append(mirror)
                } else {
                    assigned[assigned.count - 1].mirrors.append(mirror)
                }
            }
        }
        if let first = early.first {
            guard assigned.count == 1 else {
                throw DownloadError(
                    .usage, "--mirror \(first.printableURL) applies to the URL before it, and there is none",
                    hint: "Write it after the URL of the same file")
            }
            assigned[0].mirrors = early + assigned[0].mirrors
        }
        return assigned
    }

    /// The number of arguments without the marks.
    static func count(_ arguments: [String]) -> Int { arguments.count { $0 != Self.mark } }
}

extension String {
    /// The URL without a password, safe to print.
    fileprivate var printableURL: String {
        (try? SourceURL(self))?.description ?? "URL"
    }
}
