import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

extension Program {
    /// aria2c: all URLs are sources of one file.
    static let aria2c: Program = Program("aria2c", hasAttachedValues: true, Self.aria2Options) {
        program, line throws(CompatibilityOptions.Refusal) in
        var arguments = ["get", "--no-config", "--no-glob"]
        if !line.marks.contains(.ignoresNetrc) { arguments += Self.netrc }
        // Without --allow-overwrite=true, aria2 gives a number to a file that is newer.
        guard !line.marks.contains(.replacesOlder) || line.marks.contains(.overwrites) else {
            throw program.refusal("--conditional-get", "It needs --allow-overwrite=true")
        }
        let policy =
            if line.marks.contains(.replacesOlder) {
                "newer"
            } else if line.marks.contains(.resumes) {
                "verify"
            } else if line.marks.contains(.overwrites) {
                "overwrite"
            } else {
                line.marks.contains(.refusesExisting) ? "fail" : "rename"
            }
        arguments.append("--if-exists=\(policy)")
        arguments += line.options
        let links = LinkedDestinations(program, options: line.options, default: policy)
        if case .file(let path)? = line.outputs.last {
            arguments.append("--output=\(try links.target(of: path))")
        } else if let path = try program.linkTarget(for: line, links) {
            arguments.append("--output=\(path)")
        }
        let isSequence = line.marks.contains(.forcesSequence)
        for (number, operand) in line.operands.enumerated() {
            guard !operand.hasPrefix("magnet:"), !operand.hasSuffix(".torrent") else {
                throw program.refusal(operand, "segdl does not support BitTorrent")
            }
            let isFile = InputFile(path: operand).isMetalink && !operand.contains("://")
            let url = isFile ? operand : try program.url(operand)
            arguments.append(number > 0 && !isSequence && !isFile ? "--mirror=\(url)" : url)
        }
        return arguments
    }

    /// The target of the link with the name in the URL; nil if there is no such link.
    private func linkTarget(
        for line: ProgramLine, _ links: LinkedDestinations
    ) throws(CompatibilityOptions.Refusal) -> String? {
        for url in line.operands {
            guard let name = try? self.name(in: url, isDecoded: true, hasQuery: false), !name.isEmpty else {
                continue
            }
            let target = try links.target(of: HomePath.literal(name))
            guard target != HomePath.literal(name) else { continue }
            guard !line.marks.contains(.forcesSequence) else {
                throw self.refusal("-Z", "\(name.shown) is a symbolic link. Name each file with a command of its own")
            }
            return target
        }
        return nil
    }

    /// aria2 reads the file if only its owner may.
    private static var netrc: [String] {
        guard let home = getenv("HOME").map({ String(cString: $0) }) else { return [] }
        return FileFacts(Path.join(home, ".netrc"), followsLinks: true)?.isOpenToOthers == false
            ? ["--netrc-optional"] : []
    }

    private static let torrent = "segdl does not support BitTorrent"
    private static let hook = "Write segdl --on-complete CMD or --on-error CMD"

    private static let aria2Options: [ProgramOption] = [
        .init("-o --out", .output), .init("-d --dir", .renamed("--dir")),
        .init("-i --input-file", .renamed("--input-file")), .init("-Z --force-sequential", .mark(.forcesSequence)),
        .init("-M --metalink-file", .renamed("--input-file")),
        .init("-c --continue", .mark(.resumes)), .init("--allow-overwrite", .mark(.overwrites)),
        .init("--auto-file-renaming", .mark(.refusesExisting, inverted: true)),
        .init("--remove-control-file", .choice(["true": ["--continue=no"], "false": []])),
        .init("--always-resume", .choice(["true": [], "false": []])),
        .init("--conditional-get", .mark(.replacesOlder)),
        .init("-R --remote-time", .choice(["true": ["--remote-time"], "false": []])),
        .init("--checksum", .renamed("--checksum")),
        .init("-x --max-connection-per-server", .renamed("--max-connection-per-server")),
        .init("-s --split", .renamed("--segments")), .init("-k --min-split-size", .renamed("--min-split-size")),
        .init("-j --max-concurrent-downloads", .renamed("--max-concurrent-downloads")),
        .init("-m --max-tries", .attempts), .init("--retry-wait", .value { $0 == "0" ? [] : ["--retry-delay=\($0)"] }),
        .init("-t --timeout", .seconds("--stall-timeout", "--head-timeout")),
        .init("--connect-timeout", .seconds("--connect-timeout")),
        .init("--lowest-speed-limit", .renamed("--speed-limit")),
        .init("--max-download-limit", .renamed("--limit-rate-per-file")),
        .init("--max-overall-download-limit", .renamed("--limit-rate")),
        .init("--header", .renamed("--header")), .init("-U --user-agent", .renamed("--user-agent")),
        .init("--referer", .renamed("--referer")), .init("--http-user", .renamed("--user")),
        .init("--http-passwd", .renamed("--password")), .init("--load-cookies", .renamed("--load-cookies")),
        .init("-n --no-netrc", .mark(.ignoresNetrc)),
        .init(
            "--netrc-path",
            .value { path in
                let isIgnored = FileFacts(HomePath.expanded(path) ?? path, followsLinks: true)?.isOpenToOthers != false
                return ["--netrc-optional", "--netrc-file=\(isIgnored ? "/dev/null" : path)"]
            }),
        .init("--all-proxy", .renamed("--proxy")), .init("--no-proxy", .renamed("--noproxy")),
        .init("--check-certificate", .choice(["true": [], "false": ["--insecure"]])),
        .init("--ca-certificate", .renamed("--cacert")), .init("--certificate", .renamed("--cert")),
        .init("--private-key", .renamed("--key")), .init("--interface", .renamed("--interface")),
        .init("--disable-ipv6", .choice(["true": ["-4"], "false": []])),
        .init(
            "-a --file-allocation",
            .value { text in
                let words = ["none": "none", "trunc": "trunc", "falloc": "falloc", "prealloc": "auto"]
                return words[text].map { ["--file-allocation=\($0)"] }
            }),
        .init("-q --quiet", .choice(["true": ["--quiet"], "false": []])),
        .init("--show-console-readout", .choice(["true": [], "false": ["--progress=none"]])),
        // segdl decodes nothing. It fails instead of storing encoded bytes.
        .init(
            "--http-accept-gzip", .choice(["true": ["--no-content-coding"], "false": ["--content-coding"]])),
        .init("-v --version", .version),
        // They change how aria2 works or what it prints, but not the files.
        .init(
            """
            --no-conf --enable-color --human-readable --truncate-console-readout \
            --enable-http-keep-alive --enable-http-pipelining --async-dns --realtime-chunk-checksum \
            --http-no-cache --http-auth-challenge --use-head --enable-mmap --deferred-input \
            --enable-async-dns6 --optimize-concurrent-downloads --keep-unfinished-download-result \
            --force-save
            """, .same),
        .init(
            """
            --console-log-level --summary-interval --download-result --auto-save-interval \
            --uri-selector --stream-piece-selector --piece-length --disk-cache \
            --max-resume-failure-tries --max-file-not-found --log-level --server-stat-timeout \
            --save-session-interval --no-file-allocation-limit --event-poll --rlimit-nofile \
            --max-download-result
            """, value: true, .same),
        // segdl refuses a torrent itself, so these change nothing.
        .init(
            """
            --bt-detach-seed-only --bt-enable-hook-after-hash-check --bt-enable-lpd --bt-force-encryption \
            --bt-hash-check-seed --bt-load-saved-metadata --bt-metadata-only --bt-remove-unselected-file \
            --bt-require-crypto --bt-save-metadata --bt-seed-unverified --enable-dht --enable-dht6 \
            --enable-peer-exchange
            """, .same),
        .init(
            """
            --bt-exclude-tracker --bt-external-ip --bt-lpd-interface --bt-max-open-files --bt-max-peers \
            --bt-min-crypto-level --bt-prioritize-piece --bt-request-peer-speed-limit --bt-stop-timeout --bt-tracker \
            --bt-tracker-connect-timeout --bt-tracker-interval --bt-tracker-timeout --dht-entry-point --dht-entry-point6 \
            --dht-file-path --dht-file-path6 --dht-listen-addr6 --dht-listen-port --dht-message-timeout --listen-port \
            --max-overall-upload-limit --max-upload-limit --peer-agent --peer-id-prefix --seed-ratio --seed-time
            """, value: true, .same),
        .init("-T --torrent-file --select-file --follow-torrent", .refused(Self.torrent)),
        .init("--http-proxy --https-proxy", .refused("Write --all-proxy, or set http_proxy and https_proxy")),
        .init("--on-download-complete --on-download-error --on-download-start", .refused(Self.hook)),
        .init("--enable-rpc", .refused("Write segdl daemon --rpc-listen 127.0.0.1:6800")),
        .init("-D --daemon", .refused("Write segdl --background URL")),
        .init("-l --log", .refused("Redirect standard error instead")),
        .init("-V --check-integrity", .refused("Write segdl verify FILE")),
        .init("--save-session", .refused("Manifests beside the files keep the state; write segdl resume")),
        .init("--conf-path", .refused("Write the options on the command line", off: ["/dev/null"])),
    ]
}
