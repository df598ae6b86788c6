import ArgumentParser

/// The pages of `segdl --help`: one screen, all options, or a topic.
enum HelpPage {
    /// `segdl --help`: at most about 30 lines.
    static var short: String {
        let options = Self.common.compactMap { OptionOutline.get?.option($0) }.map(Self.lines)
        return """
            segdl fetches files over HTTP in parallel segments, and resumes partial files.

            Usage: segdl [options] URL…           fetch files
                   segdl [options] -i FILE        fetch the files of a list or metalink
                   segdl resume PATH… | --all     resume partial downloads
                   segdl verify FILE [URL…]       verify a finished file, and repair it
                   segdl add URL… | list          use the background service

            \(options.joined(separator: "\n"))

            The same command resumes what Ctrl-C, a crash or a power cut interrupted.
            segdl --help all       every option
            segdl --help TOPIC     \(Self.topics.prefix(6).joined(separator: ", ")),
                                   \(Self.topics.dropFirst(6).joined(separator: ", "))
            segdl COMMAND --help   resume, adopt, verify, status, probe, bench, du, gc,
             daemon, add, list, show, pause, toggle, retry, cancel, remove, move, priority,
             limits, attach, wait, history, stop, assemble, git-lfs-agent, apt-method
            """
    }

    /// The options that most people use.
    private static let common = [
        "output", "dir", "input-file", "segments", "mirror", "checksum", "continue", "if-exists", "limit-rate",
        "header", "json", "quiet",
    ]

    /// A topic's page; nil if there is no such topic.
    static func page(_ topic: String) -> String? {
        if topic == "all" { return SegdlCommand.helpMessage(for: GetCommand.self) }
        if topic == "exit" { return Self.exit }
        guard self.topics.contains(topic) else { return nil }
        let lines = SegdlCommand.helpMessage(for: GetCommand.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        guard let start = lines.firstIndex(where: { $0.lowercased() == "\(topic):" }) else { return nil }
        let end = lines[start...].firstIndex(of: "") ?? lines.endIndex
        return lines[start..<end].joined(separator: "\n")
    }

    /// The titles of the groups of options, and the exit statuses.
    static var topics: [String] {
        let titles = (OptionOutline.get?.options ?? []).compactMap { $0.sectionTitle?.lowercased() }
        return titles.reduce(into: []) { if !$0.contains($1) { $0.append($1) } } + ["exit"]
    }

    private static var exit: String {
        let rows = ExitCode.allCases.map { code in
            let number = "\(code.rawValue)"
            let word = code.word
            return String(repeating: " ", count: 5 - number.count) + number + "  " + word
                + String(repeating: " ", count: 11 - word.count) + code.meaning
        }
        return "EXIT STATUS:\n" + rows.joined(separator: "\n")
    }

    /// An option with the first clause of its help, in two columns.
    private static func lines(_ option: OptionOutline.Option) -> String {
        let names =
            (option.names ?? []).filter { $0.kind == "short" }.prefix(1)
            + (option.names ?? []).filter { $0.kind == "long" }.prefix(1)
        let value = option.isFlag ? "" : option.valueName.map { " \($0)" } ?? ""
        let head = "  " + (names.count == 1 ? "    " : "") + names.map(\.spelling).joined(separator: ", ") + value
        let abstract = option.abstract ?? ""
        let ends = [". ", "; ", ": "].compactMap { abstract.firstRange(of: $0)?.lowerBound }
        let end = ends.min() ?? abstract.endIndex
        let sentence = abstract[..<end].hasSuffix(".") ? String(abstract[..<end].dropLast()) : String(abstract[..<end])
        let indent = String(repeating: " ", count: Self.column)
        let first = head.count < Self.column - 1 ? head + indent.dropFirst(head.count) : head + "\n" + indent
        return first + sentence.wrapped(to: Self.width).joined(separator: "\n" + indent)
    }

    private static let column = 28
    private static let width = 52
}

extension ExitCode {
    /// What the status means, for the help and the table of the article on the command line.
    var meaning: String {
        switch self {
        case .ok: "the file is complete, verified and in place, or was already"
        case .internal: "a bug in segdl"
        case .usage: "an option, URL, list or metalink is malformed"
        case .file: "a file cannot be read or written"
        case .network: "name lookup, connection, stall, truncation or time limit, after all attempts"
        case .tls: "the certificate or the handshake was refused"
        case .auth: "the server or the proxy requires credentials (401, 407)"
        case .protocol: "the response is malformed, or breaks the contract of ranges"
        case .server: "the server answered with an error or too many redirects, after all attempts"
        case .integrity: "a digest or the length is wrong"
        case .changed: "the remote file is another one than before"
        case .policy:
            "refused by a rule: a redirect from https to http, a scheme, a file of secrets that other users can read"
        case .exists: "the destination exists and is another file, or another process or user has it"
        case .space: "the disk or quota is full, or the file is longer than allowed"
        case .state: "there is no partial download to resume, or its manifest is unusable or has a later version"
        case .daemon: "the background service cannot be started or reached, or has another version"
        case .partial: "several files, some of which failed"
        case .hangup: "SIGHUP: stopped, everything fetched is kept"
        case .interrupt: "SIGINT (Ctrl-C): stopped, everything fetched is kept"
        case .pipe: "the reader of standard output closed it (SIGPIPE)"
        case .terminate: "SIGTERM: stopped, everything fetched is kept"
        }
    }
}
