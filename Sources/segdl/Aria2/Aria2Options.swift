import SegmentedDownload
import SegmentedDownloadService

/// aria2's options of one download, translated to those of this program.
struct Aria2Options {
    /// Options by the names of ``FileOption``.
    private(set) var values: [String: Submission.OptionValue] = [:]
    /// The ID that the client asks for.
    private(set) var gid: String?
    private(set) var isPaused = false

    /// 5: aria2's default of `split`.
    private static let splitDefault = 5
    /// Fields that front-ends copy from a browser's request and that the downloader sets itself.
    private static let ownFields: Set<String> = ["accept-encoding", "connection"]

    /// - Parameter url: The download's URL, for `referer=*`; nil if it is unknown.
    /// - Throws: ``RPCError`` if an option must not be set, or a value has a wrong form. Values are checked further when they
    ///   are applied.
    init(_ options: [String: RPCValue], url: String?) throws(RPCError) {
        var texts: [String: String] = [:]
        // Sorted, so that the first error does not depend on chance.
        for (name, value) in options.sorted(by: { $0.key < $1.key }) {
            try Aria2Option.check(name, value)
            guard value != .null, name != "header" else { continue }
            let isUsed = Aria2Option.same.contains(name) || Aria2Option.translated.contains(name)
            guard let text = value.text else {
                if isUsed { throw RPCError("\(name) must be a string") }
                continue
            }
            // Front-ends send the empty fields of their forms.
            guard !text.isEmpty else { continue }
            // A path ends at a zero byte, so another path would be checked than is used.
            guard !isUsed || !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
                throw RPCError("\(name) contains a control character")
            }
            texts[name] = text
            if Aria2Option.same.contains(name) { self.values[name] = .one(text) }
        }
        self.gid = texts["gid"]
        self.isPaused = try Self.flag("pause", texts) ?? false
        try self.setHeader(options["header"])
        try self.setIdentity(texts, url)
        try self.setConnections(texts)
        try self.setRetries(texts)
        try self.setFile(texts)
    }

    private static func flag(_ name: String, _ texts: [String: String]) throws(RPCError) -> Bool? {
        guard let text = texts[name] else { return nil }
        guard let flag = Bool(text) else { throw RPCError("\(name) must be true or false") }
        return flag
    }

    private static func number(_ name: String, _ texts: [String: String]) throws(RPCError) -> Int? {
        guard let text = texts[name] else { return nil }
        guard let number = Int(text), number >= 0 else { throw RPCError("\(name) must be a number, 0 or more") }
        return number
    }

    // MARK: What servers are sent

    /// A field, several in an array, or several in lines.
    private mutating func setHeader(_ value: RPCValue?) throws(RPCError) {
        let texts: [String]
        switch value {
        case nil, .null?: return
        case .string(let text)?: texts = [text]
        case .array(let values)?:
            texts = values.compactMap { if case .string(let text) = $0 { text } else { nil } }
            guard texts.count == values.count else { throw RPCError("header must be an array of strings") }
        case .bool?, .int?, .double?, .object?: throw RPCError("header must be an array of strings")
        }
        // By bytes: a carriage return and a line feed are one `Character`.
        let lines = texts.flatMap { text in
            text.utf8.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }.map { String(Substring($0)) }
        }
        let fields = lines.filter { line in !Self.ownFields.contains(line.prefix { $0 != ":" }.lowercased()) }
        if !fields.isEmpty { self.values["header"] = .several(fields) }
    }

    private mutating func setIdentity(_ texts: [String: String], _ url: String?) throws(RPCError) {
        switch texts["referer"] {
        case "*"?: self.values["referer"] = url.flatMap { try? SourceURL($0).string }.map { .one($0) }
        case let text?: self.values["referer"] = .one(text)
        case nil: break
        }
        guard let user = texts["http-user"] else { return }
        guard !user.utf8.contains(UInt8(ascii: ":")) else { throw RPCError("http-user must not contain a colon") }
        self.values["http-user"] = .one("\(user):\(texts["http-passwd"] ?? "")")
    }

    // MARK: How it is fetched

    /// `max-connection-per-server` is an upper bound of `split`. Without `split` it counts only below aria2's default of
    /// that: then the number of connections is not chosen automatically.
    private mutating func setConnections(_ texts: [String: String]) throws(RPCError) {
        guard let bound = try Self.number("max-connection-per-server", texts) else { return }
        guard bound > 0 else { throw RPCError("max-connection-per-server must be a number, 1 or more") }
        if let split = texts["split"].flatMap({ Int($0) }) {
            self.values["split"] = .one("\(min(split, bound))")
        } else if texts["split"] == nil, bound < Self.splitDefault {
            self.values["split"] = .one("\(bound)")
        }
    }

    private mutating func setRetries(_ texts: [String: String]) throws(RPCError) {
        // 0 means no limit.
        if let tries = try Self.number("max-tries", texts) {
            self.values["retry"] = .one("\(tries == 0 ? Int(Int32.max) : min(tries, Int(Int32.max)))")
        }
        // 0, aria2's default, means no delay. The default here is short, and grows for a server that fails.
        if let delay = try Self.number("retry-wait", texts), delay > 0 { self.values["retry-wait"] = .one("\(delay)") }
        guard let time = try Self.number("timeout", texts), time > 0 else { return }
        self.values["stall-timeout"] = .one("\(time)")
        // Front-ends send back the default. It does not limit the time to the first byte.
        if Duration.seconds(time) != DownloadOptions().stallTimeout { self.values["head-timeout"] = .one("\(time)") }
    }

    // MARK: The file

    private mutating func setFile(_ texts: [String: String]) throws(RPCError) {
        // `continue=false` does not start over in aria2: a partial download with a control file is resumed in any case.
        if try Self.flag("continue", texts) == true { self.values["continue"] = .one("auto") }
        if try Self.flag("remove-control-file", texts) == true { self.values["continue"] = .one("no") }
        // The last of these takes precedence. `false` is the default of all three here.
        if try Self.flag("auto-file-renaming", texts) == true { self.values["if-exists"] = .one("rename") }
        if try Self.flag("allow-overwrite", texts) == true { self.values["if-exists"] = .one("overwrite") }
        if try Self.flag("conditional-get", texts) == true { self.values["if-exists"] = .one("newer") }
        if let text = texts["file-allocation"] {
            self.values["file-allocation"] = .one(text == "prealloc" ? "falloc" : text)
        }
    }
}
