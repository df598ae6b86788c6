import SegmentedDownloadCore
import SegmentedDownloadService

/// What this program does with aria2's options.
///
/// An option that no table here has does not apply to downloads with HTTP, or is unknown. It is ignored, as aria2 does, so
/// that front-ends which send all their settings work.
enum Aria2Option {
    /// Options of a file that ``FileOption`` has under the same name, with the same values.
    static let same: Set<String> = [
        "dir", "out", "split", "min-split-size", "user-agent", "checksum", "max-download-limit", "lowest-speed-limit",
        "remote-time",
    ]

    /// Options of a file that ``Aria2Options`` translates one by one.
    static let translated: Set<String> = [
        "header", "referer", "http-user", "http-passwd", "continue", "remove-control-file", "allow-overwrite",
        "auto-file-renaming", "conditional-get", "max-tries", "retry-wait", "timeout", "file-allocation",
    ]

    /// Options of the service, and the names of ``ServiceSetting``.
    static let settings = [
        "max-concurrent-downloads": "max-concurrent-downloads",
        "max-overall-download-limit": "limit-rate",
        "max-connection-per-server": "max-connection-per-server",
    ]

    /// Options that would let a client run programs, read or write files, redirect traffic or weaken its protection.
    private static let refused: Set<String> = [
        "async-dns-server", "ca-certificate", "certificate", "check-certificate", "conf-path", "dht-file-path",
        "dht-file-path6", "enable-rpc", "input-file", "interface", "load-cookies", "log", "metalink-file",
        "min-tls-version", "multiple-interface", "netrc-path", "no-netrc", "private-key", "save-cookies",
        "save-session",
        "server-stat-if", "server-stat-of", "stop", "stop-with-process", "torrent-file",
    ]
    private static let refusedPrefixes = ["on-", "rpc-"]

    /// Values that ask for what is the case anyway.
    private static let harmless = ["check-certificate": "true", "no-netrc": "true", "proxy-method": "get", "stop": "0"]

    /// Options whose value `true` would mean that nothing is fetched.
    private static let tests: Set<String> = ["dry-run", "hash-check-only"]

    /// Throws if a client must not set an option to this value. An empty value sets nothing.
    static func check(_ name: String, _ value: RPCValue) throws(RPCError) {
        let text = value.text
        if Self.tests.contains(name), text == "true" { throw RPCError("\(name) is not supported") }
        let isRefused =
            Self.refused.contains(name) || name.contains("proxy")
            || Self.refusedPrefixes.contains { name.hasPrefix($0) }
        guard isRefused, value != .null, text != "", text != Self.harmless[name] || text == nil else { return }
        throw RPCError("\(name.printable(limit: 64)) cannot be set by RPC")
    }
}
