import SegmentedDownload

/// `--mirror URL`, which is about the URL before it: the parser keeps no order between options and arguments.
enum MirrorArguments {
    /// Stands among the arguments behind each mirror. Nobody types it, and nothing could be fetched by that name.
    static let mark = "\u{1A}mirror"

    /// The arguments with a mark behind every mirror.
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

    /// Each argument with the mirrors behind it; those before a single one are its own, too.
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
                    .usage, "--mirror \(first.printableURL) is about the URL before it, and there is none",
                    hint: "Write it behind the URL that it is another source of")
            }
            assigned[0].mirrors = early + assigned[0].mirrors
        }
        return assigned
    }

    /// How many of the arguments are the user's.
    static func count(_ arguments: [String]) -> Int { arguments.count { $0 != Self.mark } }
}

extension String {
    /// A URL as it was typed, safe to show: without what may be a password.
    fileprivate var printableURL: String {
        (try? SourceURL(self))?.description ?? "URL"
    }
}
