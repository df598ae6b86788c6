import ArgumentParser
import SegmentedDownload

/// Goes on with interrupted downloads, from the manifests beside the files.
struct ResumeCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Goes on with interrupted downloads.",
        usage: """
            segdl resume [options] PATH…
            segdl resume [options] --all
            """,
        discussion: """
            A path is that of the file, of its part or of its manifest. The manifest keeps the URL and the digests, \
            but no header and no password: give those again.

              segdl resume file.iso
              segdl resume --all -d isos
              segdl resume --url 'https://example.org/file.iso?token=new' file.iso
            """
    )

    @Argument(help: ArgumentHelp("The files to go on with.", valueName: "PATH"))
    var paths: [String] = []

    @Flag(help: "Go on with every interrupted download in the directory.")
    var all = false

    @Option(
        name: [.customShort("d", allowingJoined: true), .long, .customShort("P", allowingJoined: true)],
        help: ArgumentHelp("The directory to look in.", valueName: "DIR"))
    var dir = "."

    @Option(help: ArgumentHelp("Another URL of the same file, for one whose link has expired.", valueName: "NEW"))
    var url: String?

    @OptionGroup(title: "How they are fetched") var transfer: TransferOptions
    @OptionGroup(title: "Servers") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(visibility: .private) var foreign: ForeignOptions

    mutating func validate() throws {
        if self.dir.isEmpty { throw ValidationError("--dir is empty") }
        if self.paths.isEmpty != self.all {
            throw ValidationError(
                self.all
                    ? "--all goes without paths"
                    : "there is no path. Name files, or say --all for those in the directory")
        }
        guard self.paths.count != 1 else { return }
        if self.url != nil { throw ValidationError("--url is for one path") }
        if !self.transfer.checksum.isEmpty { throw ValidationError("--checksum is for one path") }
    }

    func perform() async -> ExitCode {
        var configuration = DownloadConfiguration()
        self.transfer.apply(to: &configuration)
        self.network.apply(to: &configuration)
        let transfer = Transfer(configuration: configuration, output: self.output)
        do {
            let paths = self.all ? try SavedDownload.paths(in: self.dir) : self.paths.map { Path.join(self.dir, $0) }
            var requests: [DownloadRequest] = []
            var refused: [(path: String, error: DownloadError)] = []
            for path in paths {
                do {
                    requests.append(try self.request(at: path))
                } catch {
                    refused.append((path, error))
                }
            }
            try DuplicateDestinations.check(requests)
            if paths.isEmpty { transfer.say("there is nothing to go on with in \(self.dir.shown)") }
            return await transfer.run(requests, refused: refused)
        } catch {
            return transfer.refuse(error)
        }
    }

    private func request(at path: String) throws(DownloadError) -> DownloadRequest {
        let saved = try SavedDownload(at: path)
        var request = DownloadRequest(try SourceURL(self.url ?? saved.source), to: .file(saved.path))
        request.fields = self.network.fields
        request.digests = saved.digests
        self.transfer.apply(to: &request)
        return request
    }
}
