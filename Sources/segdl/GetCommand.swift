import ArgumentParser
import SegmentedDownload

/// Fetches the files that URLs name.
struct GetCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: SegdlCommand.configuration.abstract,
        usage: """
            segdl [options] URL…
            segdl resume PATH…
            segdl status [PATH…]
            """,
        discussion: """
            Each URL is a file. What is fetched stands beside it as NAME.segdl-part until it is whole and verified; \
            after Ctrl-C, a crash or a power cut the same command, or segdl resume NAME, goes on with it.

              segdl https://example.org/file.iso
              segdl -s 8 -o file.iso --checksum sha256=9f86… https://example.org/download
              segdl -d isos https://example.org/a.iso https://example.org/b.iso

            Sizes take k, M, G and T (of 1024), times ms, s, m and h. \
            See segdl resume --help and segdl status --help for the other commands.
            """,
        shouldDisplay: false
    )

    @Argument(help: ArgumentHelp("The files to fetch.", valueName: "URL"))
    var urls: [String]

    @OptionGroup(title: "Where files go") var destination: DestinationOptions
    @OptionGroup(title: "How they are fetched") var transfer: TransferOptions
    @OptionGroup(title: "Servers") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(visibility: .private) var foreign: ForeignOptions

    mutating func validate() throws {
        if self.destination.output != nil, self.urls.count > 1 {
            throw ValidationError(
                "--output names one file, and there are \(self.urls.count) URLs; name a directory with -d")
        }
        if !self.transfer.checksum.isEmpty, self.urls.count > 1 {
            throw ValidationError("--checksum is for one file, and there are \(self.urls.count) URLs")
        }
    }

    func perform() async -> ExitCode {
        var configuration = DownloadConfiguration()
        self.transfer.apply(to: &configuration)
        self.network.apply(to: &configuration)
        let transfer = Transfer(configuration: configuration, output: self.output)
        do {
            return await transfer.run(try self.requests())
        } catch {
            return transfer.refuse(error)
        }
    }

    private func requests() throws(DownloadError) -> [DownloadRequest] {
        var requests: [DownloadRequest] = []
        for url in self.urls {
            var request = DownloadRequest(try SourceURL(url), to: self.destination.destination)
            request.fields = self.network.fields
            self.transfer.apply(to: &request)
            self.destination.apply(to: &request)
            requests.append(request)
        }
        try DuplicateDestinations.check(requests)
        return requests
    }
}
