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
    @OptionGroup(title: "Servers") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(title: "Hooks") var hooks: HookOptions
    @OptionGroup(visibility: .private) var foreign: ForeignOptions

    func apply(to request: inout DownloadRequest) {
        request.fields = self.network.fields
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
    func run(_ prepare: () throws(DownloadError) -> Work) async -> ExitCode {
        do {
            try self.checkArguments()
            let work = try prepare()
            try self.check(work)
            let transfer = Transfer(
                configuration: self.configuration(for: work.requests), output: self.output, hooks: self.hooks)
            if let remark = work.remark { transfer.say(remark) }
            return await transfer.run(work.requests, refused: work.refused)
        } catch {
            return Transfer(configuration: DownloadConfiguration(), output: self.output, hooks: self.hooks).refuse(
                error)
        }
    }

    /// What the command line says of every file is looked at before any list is read, so that no line is blamed for it.
    private func checkArguments() throws(DownloadError) {
        var request = DownloadRequest(try SourceURL("http://localhost/"))
        self.apply(to: &request)
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

    private func configuration(for requests: [DownloadRequest]) -> DownloadConfiguration {
        var configuration = DownloadConfiguration()
        configuration.limits = self.limits.limits(for: requests)
        configuration.history = HistoryPolicy(path: self.output.keepHistory)
        // Whoever waits for a file holds it: a long list is not to be paid for in memory.
        configuration.history.listsFinished = false
        self.transfer.apply(to: &configuration)
        self.network.apply(to: &configuration)
        return configuration
    }
}
