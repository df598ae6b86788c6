import ArgumentParser
import SegmentedDownload

/// Completes a partial file of another program.
struct AdoptCommand: FetchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "adopt",
        abstract: "Completes a partial file of curl, wget, aria2, axel or a browser.",
        usage: "segdl adopt [-o FILE] [--checksum ALGO=HEX] FILE URL",
        discussion: """
            segdl compares places in FILE with the server's file and fetches what is missing or differs. The control \
            files of aria2 (FILE.aria2) and axel (FILE.st) are read. FILE becomes NAME.segdl-part, and NAME once it is \
            complete: FILE without .crdownload, .opdownload, .partial, .part, .aria2 or .st. If the places show another \
            file, FILE stays as it is.

            The comparison does not notice short damage. With --checksum the complete file is verified, and what was \
            adopted is fetched again if it does not match. Changes that you made to FILE are lost then; segdl -c \
            --checksum keeps FILE until a copy of it is complete and verified.

              segdl adopt file.iso https://example.org/file.iso
              segdl adopt --checksum sha256=9f86… file.iso https://example.org/file.iso
              segdl adopt -o file.iso Unconfirmed.crdownload https://example.org/file.iso
              segdl adopt --dry-run file.iso https://example.org/file.iso
            """
    )

    @Argument(help: ArgumentHelp("The partial file and its URL.", valueName: "FILE"), completion: .file())
    var arguments: [String]

    @Option(file: "output") var name: FileEdit?

    @OptionGroup(title: "Transfer") var transfer: TransferOptions
    @OptionGroup(title: "Speed") var limits: LimitOptions
    @OptionGroup(title: "Sources") var labels: LabelOptions
    @OptionGroup(title: "Requests") var identity: IdentityOptions
    @OptionGroup(title: "Network") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(title: "Hooks") var hooks: HookOptions

    mutating func validate() throws {
        guard MirrorArguments.count(self.arguments) == 2 else {
            throw ValidationError("adopt needs a partial file and its URL")
        }
        if let name = self.name?.text, name == "-" || name.hasSuffix("/") {
            throw ValidationError("-o names the complete file")
        }
    }

    func perform(_ fetch: FetchRun) async -> ExitCode {
        await fetch.run { () async throws(DownloadError) in
            let words = try MirrorArguments.assigned(self.labels.mirror, among: self.arguments)
            let request = try self.request(from: words[1].argument, words[0].mirrors + words[1].mirrors, fetch)
            let path = FilePath(words[0].argument)
            var work = FetchRun.Work(requests: [request])
            // A run that was killed has already renamed the file.
            if await Self.isAdopted(path, request) {
                work.remark = "\(path.string.shown) was adopted before; the download is resumed"
                work.adopting[0] = AdoptedPath(path: path, isBegun: true)
            } else {
                work.adopting[0] = AdoptedPath(path: path)
            }
            return work
        }
    }

    private func request(
        from url: String, _ mirrors: [String], _ fetch: FetchRun
    ) throws(DownloadError) -> DownloadRequest {
        var request = try fetch.draft(try fetch.sources(url, mirrors: mirrors)).request
        request.destination = .file(
            self.name.map { FilePath($0.text) } ?? Adoption.destination(of: FilePath(self.arguments[0])))
        // The user names the place.
        request.rootDirectory = nil
        // A default for new downloads would discard the file.
        if request.continuation == .no { request.continuation = .auto }
        return request
    }

    /// Whether the file is gone, and there is an interrupted download of the destination.
    private static func isAdopted(_ path: FilePath, _ request: DownloadRequest) async -> Bool {
        guard FileFacts(path.string) == nil, case .file(let destination) = request.destination else { return false }
        return (try? await SavedDownload(at: destination)).map { $0.bytesDone > 0 } ?? false
    }
}
