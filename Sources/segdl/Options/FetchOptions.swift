import ArgumentParser
import SegmentedDownload

/// Options for fetching files, for the first time or to go on with them, and the run itself.
struct FetchOptions: ParsableArguments {
    /// What a run is about.
    struct Work {
        var requests: [DownloadRequest] = []
        /// Files that cannot even be tried, and why.
        var refused: [(path: String, error: DownloadError)] = []
        /// Something worth knowing before it begins.
        var remark: String?
    }

    @OptionGroup(title: "How they are fetched") var transfer: TransferOptions
    @OptionGroup(title: "What they may use") var limits: LimitOptions
    @OptionGroup(title: "Sources and names") var labels: LabelOptions
    @OptionGroup(title: "What servers are told") var identity: IdentityOptions
    @OptionGroup(title: "How they are reached") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(title: "Hooks") var hooks: HookOptions

    /// What the configuration file says of hosts; not the parser's.
    var hosts: HostProfiles?

    private enum CodingKeys: CodingKey {
        case transfer, limits, labels, identity, network, output, hooks
    }

    /// The options for the files of a source's host.
    func options(for source: SourceURL) throws(DownloadError) -> FetchOptions {
        try self.hosts?.command(for: source)?.fetch ?? self
    }

    func apply(to request: inout DownloadRequest) throws(DownloadError) {
        try self.identity.apply(to: &request)
        self.transfer.apply(to: &request)
        self.limits.apply(to: &request)
        self.labels.apply(to: &request)
    }

    /// A source with its mirrors, as the command line has them.
    func sources(_ url: String, mirrors: [String]) throws(DownloadError) -> [SourceURL] {
        var sources = [try SourceURL(url)]
        for mirror in mirrors { sources.append(try SourceURL(mirror)) }
        return sources
    }

    /// Fetches what `prepare` makes of the arguments, or says why nothing is begun.
    func run(_ prepare: () async throws(DownloadError) -> Work) async -> ExitCode {
        do {
            try self.checkArguments()
            var work = try await prepare()
            try self.check(work)
            let configuration = try self.configuration(for: work.requests)
            let identity = try work.requests.first.map { try self.options(for: $0.source).identity } ?? self.identity
            let checksums = ChecksumSource(places: self.transfer.checksumFrom, identity: identity)
            try await checksums.complete(&work.requests, configuration)
            try await LinkedMirrors.complete(&work.requests, configuration) { request throws(DownloadError) in
                try self.options(for: request.source).transfer.linkedMirrors
            }
            if self.output.dryRun { return try await DryRun(output: self.output).run(work, configuration) }
            let transfer = Transfer(
                configuration: configuration, output: self.output, hooks: self.hooks)
            if let remark = work.remark { transfer.say(remark) }
            return await transfer.run(work.requests, refused: work.refused)
        } catch {
            return Transfer(configuration: DownloadConfiguration(), output: self.output, hooks: self.hooks).refuse(
                error)
        }
    }

    /// What a source has, asked as a download would ask.
    func probe(_ request: DownloadRequest) async throws -> RemoteFile {
        try await withDownloadClient(try self.configuration(for: [request])) { client in
            try await client.probe(request)
        }
    }

    /// What a list holds, also one that a server has: that one is told what the user says of himself.
    func contents(of list: InputFile) async throws(DownloadError) -> [UInt8] {
        guard list.isRemote else { return try list.contents() }
        let (identity, lengthMax) = (self.identity, Metalink.lengthMax)
        do {
            return try await withDownloadClient(try self.configuration(for: [])) { client in
                try await list.contents(lengthMax: lengthMax, client, identity) { _ in true }
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// The digests that a file that is there should have.
    func digests(of path: String) async throws -> [ExpectedDigest] {
        let checksums = ChecksumSource(places: self.transfer.checksumFrom, identity: self.identity)
        return self.transfer.checksum + (try await checksums.digests(of: path, try self.configuration(for: [])))
    }

    /// What the command line says of every file is looked at before any list is read, so that no line is blamed for it.
    private func checkArguments() throws(DownloadError) {
        var request = DownloadRequest(try SourceURL("http://localhost/"))
        try self.apply(to: &request)
        try request.validate()
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
        try DuplicateDestinations.check(work.requests)
        try DuplicateIDs.check(work.requests)
    }

    private func configuration(for requests: [DownloadRequest]) throws(DownloadError) -> DownloadConfiguration {
        var configuration = DownloadConfiguration()
        configuration.limits = self.limits.limits(for: requests)
        configuration.history = HistoryPolicy(path: self.output.keepHistory)
        // Whoever waits for a file holds it: a long list is not to be paid for in memory.
        configuration.history.listsFinished = false
        self.transfer.apply(to: &configuration)
        try self.identity.apply(to: &configuration)
        try self.network.apply(to: &configuration)
        return configuration
    }
}
