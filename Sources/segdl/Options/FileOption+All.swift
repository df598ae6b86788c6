import SegmentedDownload

extension FileOption {
    /// Every option that applies to one file.
    static let all: [FileOption] = Self.transfer + Self.limits + Self.identity + Self.labels + Self.destination

    // MARK: How a file is fetched

    private static let transfer = [
        FileOption(
            "segments", aliases: ["split"], letters: "s",
            ValueForm("N|auto", "N or auto") { SegmentCount(argument: $0)?.segments },
            "Connections for one file: exactly N, or auto to let segdl choose. (default: auto)"
        ) { $0.request.segments = $1 },
        FileOption(
            "range", letters: "r",
            ValueForm("A-B", "A-B or A-, byte offsets from 0") { ByteOffsets(argument: $0)?.part },
            "Save only the bytes A to B of the file, both included; to the end without B."
        ) { $0.request.part = $1 }.forOneFile(),
        FileOption(
            "min-split-size", .size,
            "No segment is cut smaller than this. (default: 1M, and less at the end of a file)"
        ) { $0.request.splitLengthMinimum = $1 },
        FileOption(
            "on-change", .word() as ValueForm<DownloadOptions.ChangePolicy>,
            "What to do if the remote file has changed since the partial download: fail or restart. (default: fail)"
        ) { $0.request.onChange = $1 },
        FileOption(
            "checksum", .digest,
            "A digest that the file must have: crc32, crc32c, crc64nvme, md5, sha1, sha256 or sha512. Repeatable."
        ) { draft, digest in
            if !draft.request.digests.contains(digest) { draft.request.digests.append(digest) }
        }.forOneFile(),
        FileOption(
            "retry", aliases: ["tries"], .count,
            "Retry at most N consecutive failures without progress. (default: 10; 3 if the server has not answered yet)"
        ) { $0.request.retries = $1 },
        FileOption(
            "retry-delay", aliases: ["retry-wait", "waitretry"], .time,
            "The delay before another attempt. (default: up to 500 ms, twice that for each further failure)"
        ) { $0.request.retryDelay = $1 },
        FileOption(
            "retry-max-time", .time, "Stop retrying when no byte has arrived for this long. (default: no limit)"
        ) { $0.request.retryTime = $1 },
        FileOption(
            "stall-timeout", .time, "Replace a connection that receives nothing for this long. (default: 30s)"
        ) { $0.request.stallTimeout = $1 },
        FileOption(
            "head-timeout", .time,
            "Wait this long for the head of a response. (default: 10m for the only request of a file, 30s for others)"
        ) { $0.request.headTimeout = $1 },
        FileOption(
            "speed-limit", aliases: ["lowest-speed-limit"], letters: "Y", .rate,
            "Replace a connection slower than this, and fail if all together are. (default: no limit)"
        ) { $0.request.speedMinimum = $1 },
        FileOption(
            "speed-time", letters: "y", .time, "How long the speed may be below --speed-limit. (default: 30s)"
        ) { $0.request.speedTime = $1 },
        FileOption(
            "max-time", letters: "m", .time,
            "Fail a file that is not complete within this time; its bytes are kept. (default: no limit)"
        ) { $0.request.timeLimit = $1 },
        FileOption(
            flag: "content-coding",
            "Accept a file that the server sends with a content coding, such as gzip, although none was requested, and store it as sent. (default: on)"
        ) { $0.request.acceptsContentCodings = $1 },
        FileOption("max-filesize", .size, "The longest file accepted.") { $0.request.lengthMaximum = $1 },
        FileOption(
            flag: "remote-time", letters: "R", "Set the file's modification time to the one that the server states."
        ) { $0.request.keepsRemoteTime = $1 },
        FileOption(
            "file-allocation", .word() as ValueForm<FileAllocation>,
            "Reserve space first (auto, falloc) or not (trunc, none). (default: auto)"
        ) { $0.request.allocates = $1.allocates },
        FileOption(
            "fsync", .word("WHEN") as ValueForm<SyncPolicy>,
            "When bytes are made safe from a power cut: checkpoint (every few seconds), end or none. (default: checkpoint)"
        ) { $0.request.syncPolicy = $1 },
    ]

    // MARK: What it may use

    private static let limits = [
        FileOption(
            "limit-rate-per-file", aliases: ["max-download-limit"], .rate,
            "Bytes per second for each file; 0 for no limit."
        ) { $0.request.bytesPerSecond = $1 },
        FileOption(
            "priority", ValueForm("P", "above 0 and at most 1") { Priority(argument: $0)?.value },
            "Above 0, at most 1: a file's share of connections and bytes is in proportion to it. (default: 0.5)"
        ) { $0.request.priority = $1 },
    ]

    // MARK: What servers are sent

    private static let identity = [
        FileOption(
            "header", letters: "H", .field,
            "A header field, sent to the URL's own server only. Repeatable."
        ) { $0.addField($1) }.secret { text in
            let name = text.prefix { $0 != ":" }.lowercased()
            return ["auth", "cookie", "key", "secret", "token"].contains { name.contains($0) }
        },
        FileOption(
            "user-agent", letters: "A", .field(named: "User-Agent", "NAME"),
            "The User-Agent field; also sent to redirect targets."
        ) { $0.setField($1) },
        FileOption("referer", letters: "e", .field(named: "Referer", "URL"), "The Referer.") { $0.setField($1) },
        FileOption(
            "user", aliases: ["http-user"], letters: "u", .text("NAME[:PASSWORD]", "NAME:PASSWORD or NAME"),
            "Name and password for the URL's own server. segdl asks for a missing password."
        ) { $0.layer.user = $1 }.secret { $0.contains(":") },
        FileOption(
            "password", aliases: ["http-password", "http-passwd"], .text("PASSWORD", "a password"),
            "The password, if --user has the name only."
        ) { $0.layer.password = $1 }.secret(),
        FileOption(
            "oauth2-bearer", ValueForm("TOKEN", "a token") { Self.isToken($0) ? $0 : nil },
            "A token for the URL's own server."
        ) { $0.layer.bearer = $1 }.secret(),
        FileOption(
            "cookie", letters: "b",
            ValueForm("NAME=VALUE|FILE", "NAME=VALUE") { text in
                guard text.contains("=") else { return HomePath.expanded(text) }
                return HTTPField(argument: "Cookie: \(text)") == nil ? nil : text
            },
            "Cookies for the URL's own server, or a file of them. Repeatable."
        ) { draft, text in
            // Without a = it is the name of a file, which the run loads.
            if text.contains("=") { draft.addCookie(text) }
        }.secret { $0.contains("=") },
    ]

    private static func isToken(_ text: String) -> Bool {
        (try? Credentials.bearer(token: text).validate()) != nil
    }

    // MARK: Labels

    private static let labels = [
        FileOption(
            "id", .text("ID", "a name"), "The file's name in events. (default: its number)"
        ) {
            $0.request.id = Download.ID(rawValue: $1)
        }.forOneFile(),
        FileOption(
            "user-info",
            ValueForm("KEY=VALUE", "KEY=VALUE") { UserInfo(argument: $0) },
            "Stored with the file and repeated in events, never sent to a server. Repeatable."
        ) { $0.request.userInfo[$1.key] = $1.value },
    ]

    // MARK: Where it goes

    private static let destination = [
        FileOption(
            "output", aliases: ["out"], letters: "o", .path("FILE", "a file's path"),
            "The file's path; DIR/ for its own name in a directory, - for standard output. (default: the name in the response or URL)"
        ) { $0.output = $1 }.forOneFile().placing(),
        FileOption(
            "dir", letters: "dP", .path("DIR", "a directory", isDirectory: true),
            "The directory for files. (default: .)"
        ) { $0.dir = $1 }.placing(),
        FileOption(
            "name-template", ValueForm("TEXT", "a name template") { try? NameTemplate($0) },
            "File names where -o gives none: text with {name}, {ext}, {md5url}, {host} and {id}."
        ) { $0.nameTemplate = $1 }.placing(),
        FileOption(
            "continue", letters: "c", .word() as ValueForm<DownloadOptions.Continuation>,
            "What to do if a partial download exists: auto resumes it if possible, must resumes or fails, no starts over. -c without a value means auto. (default: auto)"
        ) { $0.request.continuation = $1 }.placing(),
        FileOption(
            "if-exists", .word() as ValueForm<DownloadOptions.ExistingFilePolicy>,
            """
            What to do if the file exists. verify: succeed if it equals the remote file, replace it if segdl fetched it from \
            another URL and the length is equal, else fail. skip: succeed without checking. rename: save as a numbered name. \
            update: replace it if segdl fetched it and the remote file has changed; any other file if the remote one is newer \
            or has another length. newer: as update, whatever the length. overwrite: replace. fail. (default: verify)
            """
        ) { $0.request.ifExists = $1 }.placing(),
        FileOption(flag: "create-dirs", "Create missing directories. (default: on)") {
            $0.request.createsDirectories = $1
        }.placing(),
    ]
}

/// The values of `--file-allocation`, which are aria2's.
enum FileAllocation: String, Hashable, CaseIterable, Sendable {
    case auto, falloc, trunc, none

    var allocates: Bool {
        switch self {
        case .auto, .falloc: true
        case .trunc, .none: false
        }
    }
}
