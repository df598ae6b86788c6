import SegmentedDownload

/// `-c` without a value, as users of wget and curl write it.
enum BareContinue {
    /// The arguments with a value for every `-c` and `--continue`: `auto` if none follows.
    static func spelledOut(_ arguments: [String]) -> [String] {
        var spelled: [String] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "--" {
                return spelled + [argument] + rest
            }
            guard argument == "-c" || argument == "--continue" else {
                spelled.append(argument)
                continue
            }
            let value = rest.first.flatMap { DownloadOptions.Continuation(rawValue: $0) }
            if value != nil { rest.removeFirst() }
            spelled.append("--continue=\((value ?? .auto).rawValue)")
        }
        return spelled
    }
}
