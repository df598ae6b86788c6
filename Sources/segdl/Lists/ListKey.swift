/// What an option of a list's file may be about; the command's options and aria2's mean the same by these names.
enum ListKey: String, Hashable, CaseIterable {
    case out, dir, checksum, header, referer, segments, split, priority, id, retry, tries
    case userAgent = "user-agent"
    case limitRate = "limit-rate"
    case maxDownloadLimit = "max-download-limit"
    case userInfo = "user-info"
    case ifExists = "if-exists"
    case continuation = "continue"
    case onChange = "on-change"
    case minSplitSize = "min-split-size"
    case maxFilesize = "max-filesize"
    case maxTime = "max-time"
    case stallTimeout = "stall-timeout"
    case fileAllocation = "file-allocation"

    /// Why a word is none of them, and what to write instead where there is something.
    static func refusal(of word: String) -> String {
        let hint = Self.hints[word] ?? Self.families.first { word.hasPrefix($0.prefix) }?.hint
        if let hint { return "\(word.shown) cannot be said of a file: \(hint)" }
        // A URL with a query looks like an option once it is indented.
        if word.contains("://") { return "\"\(word.shown)\" is indented, and so an option. A URL begins its line" }
        return "\"\(word.shown)\" is no option of a file; these are: "
            + Self.allCases.map(\.rawValue).sorted().joined(separator: ", ")
    }

    /// aria2's own words, and ours that are about the whole run.
    private static let hints = [
        "allow-overwrite": "write if-exists=overwrite",
        "always-resume": "write continue=must",
        "auto-file-renaming": "write if-exists=rename",
        "conditional-get": "write if-exists=verify, which asks the server for what is already there",
        "connect-timeout": "it is for all; give --connect-timeout on the command line",
        "gid": "write id=NAME",
        "http-passwd": "write NAME:PASSWORD@ into the URL",
        "http-user": "write NAME:PASSWORD@ into the URL",
        "limit-rate-per-file": "write limit-rate=RATE",
        "lowest-speed-limit": "a connection that falls silent is replaced after stall-timeout=TIME",
        "max-connection-per-server": "it is for all; give -x on the command line",
        "max-connections": "it is for all; give --max-connections on the command line",
        "max-tries": "write retry=N, for failures in a row without a byte of progress",
        "max-overall-download-limit": "it is for all; give --limit-rate on the command line",
        "mirror": "write further URLs behind tabs on the URL's line",
        "pause": "every file of a list is begun",
        "remove-control-file": "write continue=no",
        "retry-wait": "delays grow by themselves, and a server's Retry-After is kept to",
        "select-file": "it is for BitTorrent; a metalink's files are all fetched",
        "timeout": "write stall-timeout=TIME",
        "uri-selector": "mirrors are ranked by themselves",
    ]

    private static let proxyHint = "it is for all; give --proxy on the command line"

    private static let families: [(prefix: String, hint: String)] = [
        ("bt-", "it is for BitTorrent"), ("seed-", "it is for BitTorrent"), ("ftp-", "only http and https are fetched"),
        ("metalink-", "a metalink is a list of its own; give it with -i"),
        ("all-proxy", Self.proxyHint), ("http-proxy", Self.proxyHint), ("https-proxy", Self.proxyHint),
        ("no-proxy", "it is for all; give --noproxy on the command line"), ("rpc-", "there is no RPC"),
    ]
}
