import SegmentedDownload

/// The options of a command that fetches files, with those of all layers, and the run itself.
struct FetchRun {
    /// The files of a run.
    struct Work {
        var requests: [DownloadRequest] = []
        /// The partial files of other programs to begin with, by the index of the request.
        var adopting: [Int: AdoptedPath] = [:]
        /// Files that cannot be requested, and why.
        var refused: [(path: String, error: DownloadError)] = []
        /// A message to print before the run begins.
        var remark: String?

        init(requests: [DownloadRequest] = []) { self.requests = requests }

        /// - Parameter remarks: Messages besides the collection's own.
        init(_ files: RequestCollection, remarks: [String]) {
            self.requests = files.requests
            self.refused = files.refused
            let all = remarks + (files.remark.map { [$0] } ?? [])
            self.remark = all.isEmpty ? nil : all.joined(separator: "; ")
        }
    }

    private let transfer: TransferOptions
    private let limits: LimitOptions
    private let labels: LabelOptions
    private let identity: IdentityOptions
    private let network: NetworkOptions
    let output: OutputOptions
    private let hooks: HookOptions
    /// The layers of file options, that of the command line last.
    let layers: OptionLayers

    init(_ command: some FetchingCommand, _ layers: OptionLayers) {
        self.transfer = command.transfer
        self.limits = command.limits
        self.labels = command.labels
        self.identity = command.identity
        self.network = command.network
        self.output = command.output
        self.hooks = command.hooks
        var layers = layers
        layers.line = command.edits
        self.layers = layers
    }

    /// The draft of a request for sources, with all layers applied.
    func draft(_ sources: [SourceURL]) throws(DownloadError) -> RequestDraft {
        var request = DownloadRequest(sources[0])
        request.mirrors = Array(sources.dropFirst())
        var draft = RequestDraft(request: request)
        try self.layers.apply(to: &draft)
        return draft
    }

    /// Applies only credentials and fields, to a request for something other than the files of the run.
    func identify(_ request: inout DownloadRequest) throws(DownloadError) {
        let draft = try self.draft([request.source])
        (request.fields, request.credentials) = (draft.request.fields, draft.request.credentials)
    }

    /// The URL and its mirrors from the command line.
    func sources(_ url: String, mirrors: [String]) throws(DownloadError) -> [SourceURL] {
        var sources = [try SourceURL(url)]
        for mirror in mirrors { sources.append(try SourceURL(mirror)) }
        return sources
    }

    /// Fetches the files that `prepare` returns, or reports why nothing is started.
    func run(_ prepare: () async throws(DownloadError) -> Work) async -> ExitCode {
        do {
            var (work, configuration) = try await self.prepared(prepare)
            let adopted = try await self.adopt(&work, configuration)
            if self.output.dryRun { return try await DryRun(output: self.output).run(work, configuration) }
            configuration.endsWithProcess = true
            let transfer = Transfer(
                configuration: configuration, output: self.output, hooks: self.hooks)
            if let remark = work.remark { transfer.say(remark) }
            return await transfer.run(
                RunFiles(work.requests, refused: work.refused) { index in
                    if let path = adopted[index] { try? await Adoption.removeControlFile(of: path) }
                })
        } catch {
            return Transfer(configuration: DownloadConfiguration(), output: self.output, hooks: self.hooks).refuse(
                error)
        }
    }

    /// The files that `prepare` returns, checked and with the digests of checksum lists, and the configuration for them.
    func prepared(
        _ prepare: () async throws(DownloadError) -> Work
    ) async throws -> (work: Work, configuration: DownloadConfiguration) {
        try self.checkArguments()
        var work = try await prepare()
        try self.check(work)
        let configuration = try self.configuration(for: work.requests)
        try await self.checksums.complete(&work.requests, configuration)
        if self.transfer.linkedMirrors { try await LinkedMirrors.complete(&work.requests, configuration) }
        return (work, configuration)
    }

    /// Probes a source with the header fields that a download would send.
    func probe(_ request: DownloadRequest) async throws -> RemoteFile {
        try await withDownloadClient(try self.configuration(for: [request])) { client in
            try await client.probe(request)
        }
    }

    /// The bytes of a list. Credentials and fields are sent to the server of a remote list.
    func contents(of list: InputFile) async throws(DownloadError) -> [UInt8] {
        guard list.isRemote else { return try list.contents() }
        let lengthMax = Metalink.lengthMax
        do {
            return try await self.withClient { client in
                try await list.contents(lengthMax: lengthMax, client) { (request) throws(DownloadError) in
                    try self.identify(&request)
                }
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// Runs `body` with a client for lists.
    func withClient<Answer: Sendable>(_ body: (DownloadClient) async throws -> Answer) async throws -> Answer {
        try await withDownloadClient(try self.configuration(for: []), body)
    }

    /// The expected digests of an existing file.
    func digests(of path: String) async throws -> [ExpectedDigest] {
        let given = self.transfer.checksum.compactMap { ExpectedDigest($0.text) }
        return given + (try await self.checksums.digests(of: path, try self.configuration(for: [])))
    }

    private var checksums: ChecksumSource {
        ChecksumSource(places: self.transfer.checksumFrom) { request throws(DownloadError) in
            try self.identify(&request)
        }
    }

    /// Checks the command line's options before any list is read, so that an error in them does not name a line of the
    /// list.
    private func checkArguments() throws(DownloadError) {
        var draft = try RequestDraft.sample()
        try self.layers.applyLine(to: &draft)
        try draft.request.validate()
    }

    private func check(_ work: Work) throws(DownloadError) {
        let count = work.requests.count + work.refused.count
        if count > 1 {
            for (option, isGiven) in [
                ("--checksum", !self.transfer.checksum.isEmpty), ("--id", self.labels.id != nil),
            ] where isGiven {
                throw DownloadError(.usage, "\(option) is for one file, and there are \(count)")
            }
        }
        try DuplicateIDs.check(work.requests)
    }

    func configuration(for requests: [DownloadRequest]) throws(DownloadError) -> DownloadConfiguration {
        var configuration = DownloadConfiguration()
        configuration.limits = self.limits.limits(for: requests)
        configuration.history = HistoryPolicy(path: self.output.keepHistory.map { FilePath($0) })
        // The run keeps its own list of results, so that a long list does not cost memory twice.
        configuration.history.listsFinished = false
        self.transfer.apply(to: &configuration)
        try self.identity.apply(to: &configuration, cookieFiles: self.layers.cookieFiles)
        try self.network.apply(to: &configuration)
        return configuration
    }
}
