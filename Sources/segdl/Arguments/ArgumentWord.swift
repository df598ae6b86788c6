/// One argument before `--`, with the place of an option's value in it.
struct ArgumentWord {
    /// The option: `--name`, or `-x` for the letter of several that takes a value. Nil for an operand, and for letters
    /// that take none.
    let option: String?
    /// Where the option's value begins, in bytes; nil if the argument has none.
    let valueStart: Int?

    /// Reads an argument, which need not be UTF-8.
    init(_ bytes: [UInt8]) {
        let dash = UInt8(ascii: "-")
        guard bytes.count > 1, bytes[0] == dash else {
            (self.option, self.valueStart) = (nil, nil)
            return
        }
        guard bytes[1] != dash else {
            let equals = bytes.firstIndex(of: UInt8(ascii: "="))
            self.option = String(decoding: bytes[..<(equals ?? bytes.count)], as: UTF8.self)
            self.valueStart = equals.map { $0 + 1 }
            return
        }
        // Letters in one word, such as -qu NAME:PASSWORD or -uNAME:PASSWORD. The value of the first letter that takes
        // one is the rest of the word.
        let letter = bytes.indices.dropFirst().first { Self.takesValue(Self.spelling(ofLetter: bytes[$0])) }
        self.option = letter.map { Self.spelling(ofLetter: bytes[$0]) }
        self.valueStart = letter.flatMap { $0 + 1 < bytes.count ? $0 + 1 : nil }
    }

    /// Whether the option's value is the next argument, if that is a value.
    var awaitsValue: Bool { self.valueStart == nil && self.option.map { Self.takesValue($0) } ?? false }

    private static func spelling(ofLetter byte: UInt8) -> String { "-\(Unicode.Scalar(byte))" }

    // MARK: Which options take a value

    /// Whether an option of any command takes a value.
    static func takesValue(_ option: String) -> Bool { Self.optionsWithValue.contains(option) }

    /// The options of files, by their definitions, and the options of the run. The parser would list the latter too,
    /// but takes some milliseconds for it. A test compares both lists.
    static let optionsWithValue = Set(
        FileOption.all.filter { !$0.isFlag }.flatMap(\.spellings) + Self.runOptions.map { "--\($0)" }
            + ["-i", "-j", "-x"])

    /// The long names of the options with values that do not apply to one file, of all commands.
    private static let runOptions = [
        "accept", "all-proxy", "base-url", "ca-certificate", "ca-directory", "cacert", "capath", "cert", "certificate",
        "checksum-from", "connect-timeout", "counts", "idle-exit", "input-file", "input-metalink", "interface",
        "job", "json-path",
        "keep-history", "key", "limit", "limit-rate", "list-from", "load-cookies", "max-concurrent-downloads",
        "max-connection-per-server",
        "max-connections", "max-overall-download-limit", "max-redirs", "metalink-file", "metered", "mirror", "name-key",
        "netrc-file", "noproxy", "older-than", "on-complete", "on-error", "parallel-max", "private-key", "progress",
        "proto", "proxy", "proxy-user", "receiving-threads", "reject", "resolve", "rounds", "rpc-allow-host",
        "rpc-allow-origin", "rpc-listen",
        "rpc-root", "rpc-secret",
        "seconds", "shard", "state", "stats", "steal-after", "url", "url-key",
    ]
}

extension FileOption {
    /// The option as it is written on a command line: `--name` for each name, and `-x` for each letter.
    var spellings: [String] { self.names.map { "--\($0)" } + self.letters.map { "-\($0)" } }
}
