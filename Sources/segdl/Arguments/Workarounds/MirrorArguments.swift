import SegmentedDownload

/// Assigns each `--mirror URL` to the URL before it.
///
/// Workaround: swift-argument-parser does not keep the order of options and arguments. It waits for
/// https://github.com/apple/swift-argument-parser/issues/862, which would also have to include arguments.
enum MirrorArguments {
    /// Inserted among the arguments after each mirror. It is no valid URL, so it cannot collide with an argument.
    static let mark = "\u{1A}mirror"

    /// The arguments with a mark after every mirror.
    static func marked(_ arguments: [String]) -> [String] {
        ArgumentWalk(arguments).replacingItems { item in
            guard item.name == "--mirror", let value = item.value else { return item.arguments }
            return ["--mirror=\(value)", Self.mark]
        }
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
