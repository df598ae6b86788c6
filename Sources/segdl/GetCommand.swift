import ArgumentParser
import SegmentedDownload

/// Fetches the files that URLs name.
struct GetCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: SegdlCommand.configuration.abstract,
        usage: """
            segdl [options] URL…
            segdl [options] -i FILE|-
            segdl resume PATH…
            segdl status [PATH…]
            segdl du|gc [DIR…]
            segdl bench URL
            """,
        discussion: """
            Each URL is a file, unless it is behind --mirror. What is fetched stands beside it as NAME.segdl-part until it is whole and verified; \
            after Ctrl-C, a crash or a power cut the same command, or segdl resume NAME, goes on with it.

              segdl https://example.org/file.iso
              segdl -s 8 -o file.iso --checksum sha256=9f86… https://example.org/download
              segdl -d isos https://example.org/a.iso https://example.org/b.iso
              segdl https://example.org/a.iso --mirror https://example.net/a.iso
              segdl -j 16 --limit-rate 10M -i list.txt
              segdl -i list.json --json-path '.list[]' --url-key path --name-key name

            A list has a URL a line, further URLs of the same file behind tabs, and options of the file as key=value \
            in indented lines below it; # begins a comment:

              https://example.org/a.iso<TAB>https://example.net/a.iso
                out=first.iso
                checksum=sha256=9f86…

            Sizes and rates take k, M, G and T (of 1024), times ms, s, m and h. \
            See segdl resume --help, segdl status --help, segdl du --help, segdl gc --help and segdl bench --help for the other commands.
            """,
        shouldDisplay: false
    )

    @Argument(help: ArgumentHelp("The files to fetch.", valueName: "URL"))
    var urls: [String] = []

    @OptionGroup(title: "Lists") var input: InputOptions
    @OptionGroup(title: "Where files go") var destination: DestinationOptions
    @OptionGroup var fetch: FetchOptions

    mutating func validate() throws {
        if MirrorArguments.count(self.urls) == 0, self.input.inputFile.isEmpty {
            throw ValidationError("there is nothing to fetch: give a URL, or a list with -i")
        }
    }

    func perform() async -> ExitCode {
        await self.fetch.run { () throws(DownloadError) in
            var requests: [DownloadRequest] = []
            for (url, mirrors) in try MirrorArguments.assigned(self.fetch.labels.mirror, among: self.urls) {
                requests.append(self.draft(try self.fetch.sources(url, mirrors: mirrors)).finished)
            }
            try self.input.read { entry, sources throws(ListProblem) in
                var draft = self.draft(sources)
                for option in entry.options { try draft.apply(option) }
                requests.append(draft.finished)
            }
            if self.destination.output != nil, requests.count > 1 {
                throw DownloadError(
                    .usage, "--output names one file, and there are \(requests.count)",
                    hint: "Name a directory with -d")
            }
            let lists = self.input.inputFile.map { InputFile(path: $0).name }.joined(separator: " and ")
            return FetchOptions.Work(
                requests: requests, remark: requests.isEmpty ? "there is nothing to fetch in \(lists)" : nil)
        }
    }

    private func draft(_ sources: [SourceURL]) -> RequestDraft {
        var request = DownloadRequest(sources[0])
        request.mirrors = Array(sources.dropFirst())
        self.fetch.apply(to: &request)
        self.destination.apply(to: &request)
        return RequestDraft(
            request: request, output: self.destination.output, dir: self.destination.dir,
            nameTemplate: self.destination.nameTemplate)
    }
}
