import SegmentedDownload

/// The keys of options in lists: every ``FileOption``, and aria2's spellings.
enum ListKey {
    /// The name and value of the corresponding ``FileOption``.
    static func translated(_ option: InputList.Option) -> (name: String, value: String) {
        switch (option.key, option.value) {
        // In a list, aria2's limit applies to the file.
        case ("limit-rate", let value): ("limit-rate-per-file", value)
        case ("continue", "true"): ("continue", "auto")
        case ("continue", "false"): ("continue", "no")
        case ("gid", let value): ("id", value)
        case (let key, let value): (key, value)
        }
    }

    /// Whether an option of aria2 that is not an option of a file here is off, so that it changes nothing.
    static func isOff(_ option: InputList.Option) -> Bool {
        ["", "false"].contains(option.value) && Self.hint(for: option.key) != nil
    }

    private static func hint(for word: String) -> String? {
        Self.hints[word] ?? Self.families.first { word.hasPrefix($0.prefix) }?.hint
    }

    /// Why a key is not an option of a file, and what to write instead.
    static func refusal(of word: String) -> String {
        let hint = Self.hint(for: word)
        let shown = word.shownWithoutSecrets
        if let hint { return "\(shown) is not an option of a file: \(hint)" }
        return "\"\(shown)\" is not an option of a file; the options are: "
            + FileOption.all.flatMap(\.names).sorted().joined(separator: ", ")
    }

    /// aria2's options, and options of the whole run.
    private static let hints = [
        "allow-overwrite": "write if-exists=overwrite",
        "always-resume": "write continue=must",
        "auto-file-renaming": "write if-exists=rename",
        "conditional-get": "write if-exists=newer, which replaces a file if the server's is newer",
        "connect-timeout": "it applies to the whole run; give --connect-timeout on the command line",
        "max-connection-per-server": "it applies to the whole run; give -x on the command line",
        "max-connections": "it applies to the whole run; give --max-connections on the command line",
        "max-tries": "write retry=N, for failures in a row without a byte of progress",
        "max-overall-download-limit": "it applies to the whole run; give --limit-rate on the command line",
        "mirror": "write further URLs after tabs on the URL's line",
        "pause": "every file of a list is fetched",
        "remove-control-file": "write continue=no",
        "select-file": "it is for BitTorrent; a metalink's files are all fetched",
        "timeout": "write stall-timeout=TIME, and head-timeout=TIME for the time to the head of a response",
        "uri-selector": "segdl ranks mirrors by itself",
    ]

    private static let proxyHint = "it applies to the whole run; give --proxy on the command line"

    private static let families: [(prefix: String, hint: String)] = [
        ("bt-", "it is for BitTorrent"), ("seed-", "it is for BitTorrent"), ("ftp-", "only http and https are fetched"),
        ("metalink-", "a metalink is a list of its own; give it with -i"),
        ("all-proxy", Self.proxyHint), ("http-proxy", Self.proxyHint), ("https-proxy", Self.proxyHint),
        ("no-proxy", "it applies to the whole run; give --noproxy on the command line"),
        ("rpc-", "it applies to the background service: give it to segdl daemon"),
    ]
}
