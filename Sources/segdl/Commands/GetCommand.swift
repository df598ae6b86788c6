import ArgumentParser
import SegmentedDownload

/// Fetches files from URLs and lists.
struct GetCommand: ListingCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        // With it, the parser does not look for a request for a completion script.
        _superCommandName: SegdlCommand._commandName,
        abstract: SegdlCommand.configuration.abstract,
        usage: """
            segdl [options] URL…
            segdl [options] -i FILE|URL|-
            segdl [options] --list-from URL
            segdl resume PATH…
            segdl status [PATH…]
            segdl du|gc [DIR…]
            segdl adopt FILE URL
            segdl verify [--repair] FILE [URL…]
            segdl bench|probe URL
            """,
        discussion: """
            Each URL is a file, except after --mirror. While it is fetched, the file is called NAME.segdl-part. After Ctrl-C, a crash \
            or a power cut the same command resumes it, and so does segdl resume NAME.

              segdl https://example.org/file.iso
              segdl -s 8 -o file.iso --checksum sha256=9f86… https://example.org/download
              segdl -d isos https://example.org/a.iso https://example.org/b.iso
              segdl https://example.org/a.iso --mirror https://example.net/a.iso
              segdl -j 16 --limit-rate 10M -i list.txt
              segdl -o - https://example.org/a.tar.gz | tar xz
              segdl -i list.json --json-path '.list[]' --url-key path --name-key name
              segdl -d isos file.iso.meta4
              segdl -i https://example.org/file.iso.meta4
              segdl --list-from https://huggingface.co/ORG/NAME --accept '*.safetensors' -d model
              segdl --dry-run 'https://example.org/part[001-100].bin'
              segdl --json -i list.txt | jq -r 'select(.event == "failed").message'

            Each line of a list has a URL, and after tabs other URLs of the same file. Indented lines below it are options of the \
            file. # begins a comment. A malformed entry fails alone, and a file that is named twice is fetched once:

              https://example.org/a.iso<TAB>https://example.net/a.iso
                out=first.iso
                checksum=sha256=9f86…

            A list that begins with < is a metalink (RFC 5854, or version 3). Each of its files is fetched from its best source, with \
            the others as mirrors, and verified against its length and digest. In the place of a URL, NAME.meta4 or NAME.metalink \
            is a metalink, too.

            Sizes and rates take k, M, G and T (of 1024), times ms, s, m and h. Options can also stand in ~/.config/segdl/config, and \
            in variables: SEGDL_LIMIT_RATE=1M is --limit-rate 1M. Variables take precedence over the file, and options over both.

            segdl COMMAND --help describes resume, adopt, verify, status, probe, bench, du and gc, and the commands of the \
            background service: daemon, add, list, show, pause, toggle, retry, cancel, remove, move, priority, limits, \
            attach, wait, history and stop; assemble completes a file of --one-file; git-lfs-agent and apt-method are for Git LFS and apt.
            """,
        version: SegdlCommand.configuration.version,
        shouldDisplay: false
    )

    @Argument(
        help: ArgumentHelp("The files to fetch.", valueName: "URL"),
        completion: .file(extensions: ["meta4", "metalink"]))
    var urls: [String] = []

    @OptionGroup(title: "Lists") var input: InputOptions
    @OptionGroup(title: "Destination") var destination: DestinationOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions
    @OptionGroup(title: "Speed") var limits: LimitOptions
    @OptionGroup(title: "Sources") var labels: LabelOptions
    @OptionGroup(title: "Requests") var identity: IdentityOptions
    @OptionGroup(title: "Network") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(title: "Hooks") var hooks: HookOptions
    @OptionGroup(title: "Jobs") var jobOptions: JobOptions

    mutating func validate() throws {
        try self.validateFiles()
        if self.destination.writesStandardOutput, self.output.json {
            throw ValidationError("--json and -o - would both write to standard output")
        }
    }

    func perform(_ fetch: FetchRun) async -> ExitCode {
        if self.jobOptions.oneFile { return await OneFileRun(self, fetch).run() }
        if self.jobOptions.isGiven { return await JobRun(command: self, fetch: fetch).run() }
        if self.destination.background { return await Submitter(output: self.output).run(self, fetch) }
        return await fetch.run { () async throws(DownloadError) in
            var work = try await self.work(fetch)
            if !self.output.dryRun {
                var streams = StreamDestinations(usesOutput: self.output.json)
                for index in work.requests.indices {
                    work.requests[index] = try streams.applied(to: work.requests[index])
                }
            }
            self.adopt(&work, hasDigests: !self.transfer.checksumFrom.isEmpty)
            return work
        }
    }

    /// With `--continue` and a digest, a partial file of another program is continued too, as curl, wget and aria2 do. The
    /// file itself stays as it is until a completed copy of it has the digest.
    private func adopt(_ work: inout FetchRun.Work, hasDigests: Bool) {
        guard let word = self.destination.continuation?.text, word != DownloadOptions.Continuation.no.rawValue else {
            return
        }
        for (index, request) in work.requests.enumerated() {
            guard hasDigests || !request.digests.isEmpty, request.ifExists == .verify,
                case .file(let path) = request.destination, FileFacts(path.string)?.isDirectory == false
            else { continue }
            work.adopting[index] = AdoptedPath(path: path, isCopied: true)
        }
    }
}
