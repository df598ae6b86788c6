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
        case (let key, let value): (key, value)
        }
    }

    /// Why a key is not an option of a file, and what to write instead.
    static func refusal(of word: String) -> String {
        let hint = Self.hints[word] ?? Self.families.first { word.hasPrefix($0.prefix) }?.hint
        let shown = word.shownWithoutSecrets
        if let hint { return "\(shown) is not an option of a file: \(hint)" }
        // An indented URL with a query looks like an option.
        if word.contains("://") { return "\"\(shown)\" is indented. A URL must not be indented" }
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
        "gid": "write id=NAME",
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
