import SegmentedDownload

extension Program {
    /// wget: a file has the name in its URL, and a number if the name is in use.
    static let wget: Program = Program("wget", hasAttachedValues: true, Self.wgetOptions) {
        program, line throws(CompatibilityOptions.Refusal) in
        var arguments = ["get", "--no-config", "--no-glob", "--remote-time"]
        // wget reads the file also if others can read it, and ignores what it does not understand.
        if !line.marks.contains(.ignoresNetrc) { arguments.append("--netrc-optional") }
        var urls: [String] = []
        for url in line.operands + (try program.urls(in: line.lists)) { urls.append(try program.url(url)) }
        guard !urls.isEmpty else { throw program.refusal("command line", "It has no URL") }
        if case .file(let path)? = line.outputs.last {
            // wget writes several URLs to one file.
            guard urls.count == 1 else { throw program.refusal("-O", "It works with one URL") }
            let policy = line.marks.contains(.resumes) ? "verify" : "overwrite"
            // A directory of -P does not count.
            let links = LinkedDestinations(program, options: line.options + ["--dir=."], default: policy)
            return arguments + ["--if-exists=\(policy)"] + line.options
                + ["--dir=.", "--output=\(try links.target(of: path))"] + urls
        }
        let policy = line.marks.contains(.resumes) ? "verify" : "rename"
        arguments.append("--if-exists=\(policy)")
        arguments += line.options
        let links = LinkedDestinations(program, options: line.options, default: policy)
        if line.marks.contains(.namesByResponse) { return arguments + urls }
        for url in urls {
            let name = try program.name(in: url, default: "index.html", isDecoded: true, hasQuery: true)
            arguments += ["--output=\(try links.target(of: HomePath.literal(name)))", url]
        }
        return arguments
    }

    /// The URLs in wget's lists: one on each line.
    private func urls(in lists: [String]) throws(CompatibilityOptions.Refusal) -> [String] {
        var urls: [String] = []
        for path in lists {
            let file = InputFile(path: path)
            guard !file.isRemote else { throw self.refusal("-i", "The list must be a file") }
            do throws(DownloadError) {
                let text = String(decoding: try file.contents(), as: UTF8.self)
                urls += text.split(whereSeparator: \.isNewline).map { $0.trimmed }.filter { !$0.isEmpty }
            } catch {
                throw self.refusal("-i", error.message)
            }
        }
        return urls
    }

    /// The arguments for a line of wget's configuration file.
    private static func setting(_ line: String) -> [String]? {
        let parts = line.split(separator: "=", maxSplits: 1).map { $0.trimmed }
        switch parts.first {
        case "robots": return []
        case "http_proxy", "https_proxy": return parts.count == 2 ? ["--proxy=\(parts[1])"] : nil
        default: return nil
        }
    }

    private static let recursion = "segdl does not follow links. Write segdl --list-from URL for a directory"
    private static let log = "Redirect standard error instead"

    private static let wgetOptions: [ProgramOption] = [
        .init("-O --output-document", .output), .init("-P --directory-prefix", .renamed("--dir")),
        .init("-c --continue", .mark(.resumes)), .init("-i --input-file", .list),
        .init("-nc --no-clobber", .spelled(["--if-exists=skip"])),
        .init("-N --timestamping", .spelled(["--if-exists=update"])),
        .init("--content-disposition", .mark(.namesByResponse)), .init("--no-content-disposition", .same),
        .init("--no-use-server-timestamps", .spelled(["--no-remote-time"])),
        .init("-q --quiet", .spelled(["--quiet"])), .init("-nv --no-verbose", .spelled(["--progress=none"])),
        .init("-v --verbose", .same), .init("--show-progress", .spelled(["--progress=bar"])),
        .init("--progress", .value { ["--progress=\($0.hasPrefix("bar") ? "bar" : "log")"] }),
        .init("-t --tries", .attempts), .init("--retry-connrefused", .same), .init("--waitretry", value: true, .same),
        .init("-T --timeout", .seconds("--stall-timeout", "--head-timeout", "--connect-timeout")),
        .init("--read-timeout", .seconds("--stall-timeout", "--head-timeout")),
        .init("--connect-timeout", .seconds("--connect-timeout")),
        .init("--dns-timeout", .seconds("--connect-timeout")), .init("--limit-rate", .renamed("--limit-rate")),
        .init("-U --user-agent", .renamed("--user-agent")), .init("--header", .renamed("--header")),
        .init("--referer", .renamed("--referer")), .init("--user --http-user", .renamed("--user")),
        .init("--password --http-password --http-passwd", .renamed("--password")),
        .init("--auth-no-challenge", .same), .init("--load-cookies", .renamed("--load-cookies")),
        .init("--keep-session-cookies", .same), .init("--no-hsts", .same),
        .init("--no-check-certificate", .spelled(["--insecure"])), .init("--check-certificate", .same),
        .init("--ca-certificate", .renamed("--cacert")), .init("--ca-directory", .renamed("--capath")),
        .init("--certificate", .renamed("--cert")), .init("--private-key", .renamed("--key")),
        .init("--https-only", .spelled(["--proto==https"])),
        .init("-4 --inet4-only", .spelled(["-4"])), .init("-6 --inet6-only", .spelled(["-6"])),
        .init("--bind-address", .renamed("--interface")), .init("--no-proxy", .spelled(["--noproxy=*"])),
        .init("--max-redirect", .renamed("--max-redirs")), .init("-nd --no-directories", .same),
        .init("-nH --no-host-directories", .same), .init("--no-parent -np", .same),
        .init("--no-netrc", .mark(.ignoresNetrc)),
        .init("--no-cache", .spelled(["--header=Cache-Control: no-cache", "--header=Pragma: no-cache"])),
        .init("--no-config", .same), .init("--no-glob", .same), .init("-V --version", .version),
        .init("-e --execute", .value { Self.setting($0) }),
        // segdl decodes nothing. It fails instead of storing encoded bytes.
        .init(
            "--compression",
            .value { ["auto", "gzip", "none"].contains($0) ? ["--\($0 == "none" ? "" : "no-")content-coding"] : nil }),
        .init("-r --recursive -m --mirror -p --page-requisites", .refused(Self.recursion)),
        .init("-l --level -A --accept -R --reject", .refused(Self.recursion)),
        .init("-k --convert-links -x --force-directories", .refused(Self.recursion)),
        .init("--spider -S --server-response", .refused("Write segdl probe URL")),
        .init("-b --background", .refused("Write segdl --background URL")),
        .init("-o --output-file -a --append-output", .refused(Self.log)),
        .init("--trust-server-names", .refused("Name the file with -O")),
        .init("--post-data --post-file --method --body-data", .refused("segdl fetches files with GET only")),
        .init("--save-cookies", .refused("segdl keeps cookies until the end of the run only")),
        .init("-Q --quota -w --wait", .refused("Write segdl -j 1 for one file at a time")),
    ]
}

extension Substring {
    fileprivate var trimmed: String {
        let start = self.drop(while: \.isWhitespace)
        guard let last = start.lastIndex(where: { !$0.isWhitespace }) else { return "" }
        return String(start[...last])
    }
}
