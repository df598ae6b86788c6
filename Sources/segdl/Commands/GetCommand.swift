import ArgumentParser
import SegmentedDownload

/// Fetches files from URLs and lists.
struct GetCommand: FetchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: SegdlCommand.configuration.abstract,
        usage: """
            segdl [options] URL…
            segdl [options] -i FILE|URL|-
            segdl resume PATH…
            segdl status [PATH…]
            segdl du|gc [DIR…]
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
              segdl --dry-run 'https://example.org/part[001-100].bin'
              segdl --json -i list.txt | jq -r 'select(.event == "failed").message'

            Each line of a list has a URL, and after tabs other URLs of the same file. Indented lines below it are options of the \
            file. # begins a comment:

              https://example.org/a.iso<TAB>https://example.net/a.iso
                out=first.iso
                checksum=sha256=9f86…

            A list that begins with < is a metalink (RFC 5854, or version 3). Each of its files is fetched from its best source, with \
            the others as mirrors, and verified against its length and digest. In the place of a URL, NAME.meta4 or NAME.metalink \
            is a metalink, too.

            Sizes and rates take k, M, G and T (of 1024), times ms, s, m and h. Options can also stand in ~/.config/segdl/config, and \
            in variables: SEGDL_LIMIT_RATE=1M is --limit-rate 1M. Variables take precedence over the file, and options over both.

            segdl COMMAND --help describes resume, verify, status, probe, bench, du and gc.
            """,
        shouldDisplay: false
    )

    @Argument(help: ArgumentHelp("The files to fetch.", valueName: "URL"))
    var urls: [String] = []

    @OptionGroup(title: "Lists") var input: InputOptions
    @OptionGroup(title: "Destination") var destination: DestinationOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions
    @OptionGroup(title: "Limits") var limits: LimitOptions
    @OptionGroup(title: "Sources") var labels: LabelOptions
    @OptionGroup(title: "Requests") var identity: IdentityOptions
    @OptionGroup(title: "Network") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(title: "Hooks") var hooks: HookOptions

    mutating func validate() throws {
        if MirrorArguments.count(self.urls) == 0, self.input.inputFile.isEmpty {
            throw ValidationError("there is nothing to fetch: give a URL, or a list with -i")
        }
        if self.destination.output?.text == "-", self.output.json {
            throw ValidationError("--json and -o - would both write to standard output")
        }
    }

    var edits: [FileEdit] { self.destination.edits + self.sharedEdits }

    func perform(_ fetch: FetchRun) async -> ExitCode {
        await fetch.run { () async throws(DownloadError) in
            var requests: [DownloadRequest] = []
            var lists: [InputFile] = []
            for (url, mirrors) in try MirrorArguments.assigned(self.labels.mirror, among: self.urls) {
                let file = InputFile(path: url)
                guard !file.isMetalink || file.isRemote else {
                    try Self.refuse(mirrors, of: file)
                    lists.append(file)
                    continue
                }
                try self.instances(of: url, mirrors: mirrors) { instance, mirrors throws(DownloadError) in
                    let sources = try fetch.sources(
                        URLPattern.literal(instance.url), mirrors: mirrors.map { URLPattern.literal($0) })
                    var draft = try fetch.draft(sources)
                    draft.output = draft.output.map { instance.name($0) }
                    requests.append(draft.finished)
                }
            }
            lists = self.input.files(besides: lists)
            var remarks: [String] = []
            for file in lists {
                let bytes = try await fetch.contents(of: file)
                let leftOut = try self.input.read(bytes, of: file) { entry, sources throws(ListProblem) in
                    requests.append(try self.request(entry, sources, of: file, fetch))
                }
                if leftOut > 0 {
                    let what = leftOut == 1 ? "1 URL that is" : "\(leftOut) URLs that are"
                    remarks.append("left out of \(file.name): \(what) neither http nor https")
                }
            }
            if self.destination.output?.text == "-", StandardDescriptors.isOutputClosed.isRaised {
                throw DownloadError(.file, "standard output is closed, and -o - would write to it")
            }
            if self.destination.output?.text == "-", requests.count > 1 {
                throw DownloadError(
                    .usage, "-o - writes one file to standard output, and there are \(requests.count)",
                    hint: "Run segdl once for each: (segdl -o - A; segdl -o - B) | …")
            }
            if let output = self.destination.output?.text, !output.hasSuffix("/"), !output.contains("#"),
                requests.count > 1
            {
                throw DownloadError(
                    .usage, "--output names one file, and there are \(requests.count)",
                    hint: "Name a directory with -d")
            }
            if requests.isEmpty {
                remarks.append("there is nothing to fetch in \(lists.map(\.name).joined(separator: " and "))")
            }
            return FetchRun.Work(
                requests: requests, remark: remarks.isEmpty ? nil : remarks.joined(separator: "; "))
        }
    }

    private static func refuse(_ mirrors: [String], of list: InputFile) throws(DownloadError) {
        guard mirrors.isEmpty else {
            throw DownloadError(
                .usage, "--mirror cannot be used with the metalink \(list.name), which lists its own mirrors")
        }
    }

    /// What an entry of a list asks for.
    private func request(
        _ entry: InputList.Entry, _ sources: [SourceURL], of list: InputFile, _ fetch: FetchRun
    ) throws(ListProblem) -> DownloadRequest {
        var draft: RequestDraft
        do throws(DownloadError) {
            draft = try fetch.draft(sources)
            try draft.request.removeCredentialsAndFields(namedBy: list)
        } catch {
            throw ListProblem(entry.place, error.message, code: error.code)
        }
        draft.request.lengthExpected = entry.length
        for option in entry.options { try draft.apply(option) }
        do throws(DownloadError) {
            try draft.endLayer()
        } catch {
            throw ListProblem(entry.place, error.message, code: error.code)
        }
        return draft.finished
    }

    /// The files that a URL with its mirrors stands for.
    private func instances(
        of url: String, mirrors: [String],
        _ body: (URLPattern.Instance, [String]) throws(DownloadError) -> Void
    ) throws(DownloadError) {
        guard !self.destination.noGlob else { return try body(URLPattern.Instance(url: url, values: []), mirrors) }
        let pattern = try URLPattern(url)
        var others: [URLPattern] = []
        for mirror in mirrors { others.append(try URLPattern(mirror)) }
        if let other = others.first(where: { $0.count != pattern.count }) {
            throw DownloadError(
                .usage,
                "a mirror's pattern expands to \(other.count) URLs, but the URL before it to \(pattern.count)")
        }
        let instances = others.map(\.instances)
        for (number, instance) in pattern.instances.enumerated() {
            try body(instance, instances.map { $0[number].url })
        }
    }
}
