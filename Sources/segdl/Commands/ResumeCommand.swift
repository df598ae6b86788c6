import ArgumentParser
import SegmentedDownload

/// Resumes interrupted downloads from the manifests beside the files.
struct ResumeCommand: FetchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resumes interrupted downloads.",
        usage: """
            segdl resume [options] PATH|ID|URL…
            segdl resume [options] --all
            """,
        discussion: """
            A path is that of the file, of its part or of its manifest. The manifest stores the URLs and the options \
            of the download, but no header fields and no passwords: give those again.

            A download of the background service is resumed there. If there is no manifest, a word means what it means to \
            segdl pause: a path or name, a URL, an ID or the beginning of one. --all without -d also resumes all paused and \
            failed downloads of the service.

              segdl resume file.iso
              segdl resume --all -d isos
              segdl resume --url 'https://example.org/file.iso?token=new' file.iso
            """
    )

    @Argument(help: ArgumentHelp("The downloads to resume.", valueName: "PATH|ID|URL"), completion: .file())
    var paths: [String] = []

    @Flag(help: "Resume every interrupted download in the directory and in the background service.")
    var all = false

    @Option(
        name: [.customShort("d", allowingJoined: true), .long, .customShort("P", allowingJoined: true)],
        help: ArgumentHelp("The directory to look in, without the background service. (default: .)", valueName: "DIR"),
        completion: .directory,
        transform: HomePath.directory)
    var dir: String?

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
        if self.dir?.isEmpty == true { throw ValidationError("--dir is empty") }
        let count = MirrorArguments.count(self.paths)
        if (count == 0) != self.all {
            throw ValidationError(
                self.all
                    ? "--all takes no paths"
                    : "there is no path. Give paths, or --all for every download in the directory")
        }
        if count != 1, self.url != nil { throw ValidationError("--url needs exactly one path") }
        if self.all, !self.labels.mirror.isEmpty { throw ValidationError("--mirror excludes --all") }
    }

    func perform(_ fetch: FetchRun) async -> ExitCode {
        await fetch.run { () async throws(DownloadError) in
            let isDry = self.output.dryRun
            var found = RequestCollection()
            var refused: [(path: String, error: DownloadError)] = []
            // A directory means its files only.
            var handedOver = self.all && self.dir == nil ? await ServiceOwner.resumeAll(isDry: isDry) : []
            for (path, mirrors) in try await self.targets() {
                do throws(DownloadError) {
                    guard let line = try await self.handOver(path, isDry: isDry) else {
                        try found.add(try await self.request(at: path, mirrors: mirrors, fetch), at: path)
                        continue
                    }
                    if !handedOver.contains(line) { handedOver.append(line) }
                } catch {
                    refused.append((path, error))
                }
            }
            var work = FetchRun.Work(found, remarks: [])
            work.refused += refused
            if self.labels.id == nil { DuplicateIDs.drop(&work.requests) }
            if !handedOver.isEmpty {
                work.remark = ((work.remark.map { [$0] } ?? []) + handedOver).joined(separator: "\nsegdl: ")
            } else if work.requests.isEmpty, work.refused.isEmpty {
                let place = self.dir.map(\.shown) ?? "this directory or in the background service"
                work.remark = "there is nothing to resume in \(place)"
            }
            return work
        }
    }

    /// Resumes a download of the background service.
    ///
    /// - Returns: What was done; nil if the service has no such download.
    /// - Throws: ``DownloadError`` with code `usage` if there are several, or the word can mean nothing else.
    private func handOver(_ word: String, isDry: Bool) async throws(DownloadError) -> String? {
        if let line = await ServiceOwner.resume(word, isDry: isDry) { return line }
        let isURL = word.contains("://")
        // The user's own file takes precedence over a name in the queue.
        let manifest = DestinationPaths(path: EntrySelector.file(of: word)).manifest
        guard self.dir == nil, isURL || FileFacts(manifest) == nil else { return nil }
        if let line = try await ServiceOwner.resume(named: word, isDry: isDry) { return line }
        guard !isURL else {
            throw DownloadError(
                .usage, "the background service has no download of this URL",
                hint: "Give the path of the file, and another URL of it with --url")
        }
        return nil
    }

    private func targets() async throws(DownloadError) -> [(path: String, mirrors: [String])] {
        let dir = self.dir ?? "."
        if self.all { return try await SavedDownload.paths(in: FilePath(dir)).map { ($0.string, []) } }
        return try MirrorArguments.assigned(self.labels.mirror, among: self.paths).map { path, mirrors in
            (Path.join(dir, path), mirrors)
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
