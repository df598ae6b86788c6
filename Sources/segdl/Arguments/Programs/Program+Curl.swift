import SegmentedDownload

extension Program {
    /// curl: a URL goes to standard output unless `-o` or `-O` belongs to it, by their order.
    static let curl: Program = Program("curl", hasAttachedValues: false, Self.curlOptions) {
        program, line throws(CompatibilityOptions.Refusal) in
        var outputs = line.outputs[...]
        let isNamedByResponse =
            line.marks.contains(.namesByResponse)
            && (outputs.contains(.remoteName) || line.marks.contains(.namesAllByURL))
        guard !isNamedByResponse || !line.marks.contains(.resumes) else {
            throw program.refusal("-J", "It cannot be combined with -C")
        }
        // With -J, curl never overwrites: the server chooses the name.
        let policy = isNamedByResponse ? "fail" : line.marks.contains(.resumes) ? "verify" : "overwrite"
        var arguments = ["get", "--no-config", "--if-exists=\(policy)"]
        let links = LinkedDestinations(program, options: line.options, default: policy)
        // Without -f, curl stores the page of an error and succeeds. segdl fails in either case.
        arguments += line.options + Self.authorities(for: line)
        // After --max-redirs, which has no effect without -L.
        if !line.marks.contains(.followsRedirects) { arguments.append("--max-redirs=0") }
        var named: [String] = []
        for operand in line.operands {
            let url = try program.url(operand)
            let output = outputs.popFirst() ?? (line.marks.contains(.namesAllByURL) ? .remoteName : .file("-"))
            switch output {
            case .file(let path):
                named += ["--output=\(try links.target(of: path))", url]
            case .remoteName where line.marks.contains(.namesByResponse):
                guard line.operands.count == 1 else {
                    throw program.refusal("-J", "It works with one URL")
                }
                named.append(url)
            case .remoteName:
                let name = try program.name(in: url, isDecoded: false, hasQuery: false)
                guard !name.isEmpty else {
                    throw program.refusal("-O", "The URL has no file name")
                }
                guard !url.contains(where: { "[{".contains($0) }) || line.options.contains("--no-glob") else {
                    throw program.refusal("-O", "The URL has a pattern; write -o 'NAME#1' instead")
                }
                named += ["--output=\(try links.target(of: HomePath.literal(name)))", url]
            }
        }
        guard outputs.isEmpty else { throw program.refusal("-o", "There are more of it than URLs") }
        guard !line.operands.isEmpty else { throw program.refusal("command line", "It has no URL") }
        return arguments + named
    }

    /// The authorities in `CURL_CA_BUNDLE`, which curl prefers to `SSL_CERT_FILE` and `SSL_CERT_DIR`; empty if an option
    /// names others, or no certificate is verified.
    private static func authorities(for line: ProgramLine) -> [String] {
        let isDecided = line.options.contains { option in
            option == "--insecure" || option.hasPrefix("--cacert=") || option.hasPrefix("--capath=")
        }
        guard !isDecided, let file = line.environment["CURL_CA_BUNDLE"], !file.isEmpty else { return [] }
        return ["--cacert=\(file)"]
    }

    private static let body = "segdl fetches files with GET only"
    private static let page = "segdl saves files only"

    private static let curlOptions: [ProgramOption] = [
        .init("-o --output", .output), .init("-O --remote-name", .remoteName),
        .init("--remote-name-all", .mark(.namesAllByURL)), .init("-J --remote-header-name", .mark(.namesByResponse)),
        .init("--url", .operand), .init("--output-dir", .renamed("--dir")),
        .init("--create-dirs", .spelled(["--create-dirs"])), .init("--no-clobber", .spelled(["--if-exists=rename"])),
        .init("-C --continue-at", .markFor("-", .resumes)), .init("-R --remote-time", .spelled(["--remote-time"])),
        .init("-L --location", .mark(.followsRedirects)),
        .init("--location-trusted", .refused("Write segdl --location-trusted URL")),
        .init("--max-redirs", .value { Int($0).flatMap { $0 < 0 ? nil : ["--max-redirs=\($0)"] } }),
        .init("-g --globoff", .spelled(["--no-glob"])), .init("--globon", .same),
        .init("-s --silent", .spelled(["--quiet"])), .init("-S --show-error", .same),
        .init("-f --fail", .same), .init("--fail-early", .same), .init("-v --verbose", .spelled(["--verbose"])),
        .init("-# --progress-bar", .spelled(["--progress=bar"])),
        .init("--no-progress-meter", .spelled(["--progress=none"])), .init("-N --no-buffer", .same),
        .init("-Z --parallel", .same), .init("--parallel-immediate", .same),
        .init("--parallel-max", .renamed("--max-concurrent-downloads")),
        .init("-H --header", .value { $0.hasPrefix("@") ? nil : ["--header=\($0)"] }),
        .init("-A --user-agent", .renamed("--user-agent")), .init("-e --referer", .renamed("--referer")),
        .init("-u --user", .renamed("--user")), .init("--oauth2-bearer", .renamed("--oauth2-bearer")),
        .init("--basic --anyauth --proxy-basic --proxy-digest --proxy-anyauth", .same),
        .init("--digest", .spelled(["--digest"])), .init("-n --netrc", .spelled(["--netrc-optional"])),
        .init("--netrc-optional", .spelled(["--netrc-optional"])),
        .init("--netrc-file", .value { ["--netrc-optional", "--netrc-file=\($0)"] }),
        .init("-b --cookie", .value { $0.isEmpty ? [] : ["--cookie=\($0 == "-" ? "/dev/fd/0" : $0)"] }),
        .init("-x --proxy", .renamed("--proxy")), .init("-U --proxy-user", .renamed("--proxy-user")),
        .init("--socks4", .value { ["--proxy=socks4://\($0)"] }),
        .init("--socks4a", .value { ["--proxy=socks4a://\($0)"] }),
        .init("--socks5", .value { ["--proxy=socks5://\($0)"] }),
        .init("--socks5-hostname", .value { ["--proxy=socks5h://\($0)"] }),
        .init("--noproxy", .renamed("--noproxy")), .init("-k --insecure", .spelled(["--insecure"])),
        .init("--cacert", .renamed("--cacert")), .init("--capath", .renamed("--capath")),
        .init("-E --cert", .value { $0.contains(":") ? nil : ["--cert=\($0)"] }), .init("--key", .renamed("--key")),
        // For FTP, which is refused.
        .init("--disable-epsv --disable-eprt", .same),
        .init("--tlsv1 --tlsv1.0 --tlsv1.1 --tlsv1.2", .same),
        .init("--http1.1 --http2", .same),
        // segdl decodes nothing. It fails instead of storing encoded bytes.
        .init("--compressed", .spelled(["--no-content-coding"])), .init("--proto", .renamed("--proto")),
        .init("--proto-default", .value { $0 == "http" ? [] : nil }),
        .init("-4 --ipv4", .spelled(["-4"])), .init("-6 --ipv6", .spelled(["-6"])),
        .init("--interface", .renamed("--interface")), .init("--resolve", .renamed("--resolve")),
        .init("--connect-timeout", .seconds("--connect-timeout")), .init("-m --max-time", .seconds("--max-time")),
        .init("--limit-rate", .renamed("--limit-rate")), .init("-Y --speed-limit", .renamed("--speed-limit")),
        .init("-y --speed-time", .seconds("--speed-time")), .init("--max-filesize", .renamed("--max-filesize")),
        .init("--retry", .renamed("--retry")), .init("--retry-delay", .seconds("--retry-delay")),
        .init("--retry-max-time", .seconds("--retry-max-time")),
        .init("--retry-all-errors --retry-connrefused", .same), .init("-q --disable", .same),
        .init("-X --request", .value { $0 == "GET" ? [] : nil }),
        .init("-V --version", .version),
        .init("-d --data --data-raw --data-binary -F --form --json", .refused(Self.body)),
        .init("-T --upload-file -G --get", .refused(Self.body)),
        .init("-I --head", .refused("Write segdl probe URL")), .init("-i --include", .refused(Self.page)),
        .init("-D --dump-header -w --write-out", .refused(Self.page)),
        .init("-c --cookie-jar", .refused("segdl keeps cookies until the end of the run only")),
        .init("-r --range", .value { ByteOffsets(argument: $0) == nil ? nil : ["--range=\($0)"] }),
        .init("-K --config", .refused("Write the options on the command line")),
        .init("-z --time-cond", .refused("Write segdl --if-exists newer -o FILE URL")),
    ]
}
