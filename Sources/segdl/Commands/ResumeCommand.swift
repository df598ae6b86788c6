import ArgumentParser
import SegmentedDownload

/// Resumes interrupted downloads from the manifests beside the files.
struct ResumeCommand: FetchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resumes interrupted downloads.",
        usage: """
            segdl resume [options] PATH…
            segdl resume [options] --all
            """,
        discussion: """
            A path is that of the file, of its part or of its manifest. The manifest stores the URLs and the options \
            of the download, but no header fields and no passwords: give those again.

              segdl resume file.iso
              segdl resume --all -d isos
              segdl resume --url 'https://example.org/file.iso?token=new' file.iso
            """
    )

    @Argument(help: ArgumentHelp("The downloads to resume.", valueName: "PATH"), completion: .file())
    var paths: [String] = []

    @Flag(help: "Resume every interrupted download in the directory.")
    var all = false

    @Option(
        name: [.customShort("d", allowingJoined: true), .long, .customShort("P", allowingJoined: true)],
        help: ArgumentHelp("The directory to look in.", valueName: "DIR"), completion: .directory,
        transform: HomePath.directory)
    var dir = "."

    @Option(help: ArgumentHelp("Another URL of the same file, if the first one has expired.", valueName: "NEW"))
    var url: String?

    @OptionGroup(title: "Transfer") var transfer: TransferOptions
    @OptionGroup(title: "Speed") var limits: LimitOptions
    @OptionGroup(title: "Sources") var labels: LabelOptions
    @OptionGroup(title: "Requests") var identity: IdentityOptions
    @OptionGroup(title: "Network") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(title: "Hooks") var hooks: HookOptions

    mutating func validate() throws {
        if self.dir.isEmpty { throw ValidationError("--dir is empty") }
        let count = MirrorArguments.count(self.paths)
        if (count == 0) != self.all {
            throw ValidationError(
                self.all
                    ? "--all takes no paths"
                    : "there is no path. Give paths, or --all for every download in the directory")
        }
        if count != 1, self.url != nil { throw ValidationError("--url needs exactly one path") }
        if self.paths.contains(where: { $0.contains("://") }) {
            throw ValidationError("a URL is no path: give the path of the file, and another URL of it with --url")
        }
        if self.all, !self.labels.mirror.isEmpty { throw ValidationError("--mirror excludes --all") }
    }

    func perform(_ fetch: FetchRun) async -> ExitCode {
        await fetch.run { () async throws(DownloadError) in
            var found = RequestCollection()
            var refused: [(path: String, error: DownloadError)] = []
            var handedOver: [String] = []
            for (path, mirrors) in try await self.targets() {
                if let line = await ServiceOwner.resume(path) {
                    handedOver.append(line)
                    continue
                }
                do throws(DownloadError) {
                    try found.add(try await self.request(at: path, mirrors: mirrors, fetch), at: path)
                } catch {
                    refused.append((path, error))
                }
            }
            var work = FetchRun.Work(found, remarks: [])
            work.refused += refused
            if self.labels.id == nil { DuplicateIDs.drop(&work.requests) }
            if !handedOver.isEmpty {
                work.remark = handedOver.joined(separator: "\nsegdl: ")
            } else if work.requests.isEmpty, work.refused.isEmpty {
                work.remark = "there is nothing to resume in \(self.dir.shown)"
            }
            return work
        }
    }

    private func targets() async throws(DownloadError) -> [(path: String, mirrors: [String])] {
        if self.all { return try await SavedDownload.paths(in: FilePath(self.dir)).map { ($0.string, []) } }
        return try MirrorArguments.assigned(self.labels.mirror, among: self.paths).map { path, mirrors in
            (Path.join(self.dir, path), mirrors)
        }
    }

    private func request(
        at path: String, mirrors: [String], _ fetch: FetchRun
    ) async throws(DownloadError) -> DownloadRequest {
        guard !SharedFile.containsTask(path), try SharedFile(path).plan() == nil else {
            throw DownloadError(
                .state, "several tasks fetch it with --one-file",
                hint: "Run the commands of those tasks again that were interrupted")
        }
        let saved = try await SavedDownload(at: FilePath(path))
        let known = self.url == nil ? saved.mirrors : []
        let sources = try fetch.sources(self.url ?? saved.source, mirrors: known + mirrors)
        var draft = try fetch.draft(sources)
        // The saved options take precedence over the configuration, and the command line over both.
        if saved.hasOptions {
            draft.request.options = saved.options.resuming
            try fetch.layers.applyLine(to: &draft)
        } else {
            let own = draft.request.digests.filter { !saved.options.digests.contains($0) }
            draft.request.digests = saved.options.digests + own
        }
        var request = draft.request
        request.destination = .file(saved.path)
        request.resumesPart = true
        // The user names the place.
        request.rootDirectory = nil
        request.foreignSources = Set(saved.foreignSources.compactMap { try? SourceURL($0) })
        if request.id == nil { request.id = saved.id }
        request.userInfo.merge(saved.userInfo) { own, _ in own }
        return request
    }
}
