import SegmentedDownload
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Fetches a task's share of lists, and records what is finished in the job's directory.
struct JobRun {
    let command: GetCommand
    let fetch: FetchRun

    func run() async -> ExitCode {
        let output = self.fetch.output
        do {
            let shard = try self.command.jobOptions.shard?.shard(in: ProcessInfo.processInfo.environment) ?? .only
            try self.check()
            let path = try self.directory()
            let configuration = try self.configuration(for: shard)
            let transfer = Transfer(configuration: configuration, output: output, hooks: self.command.hooks)
            let entries = try await JobEntries(self.command, self.fetch)
            let clock = SystemClock()
            let run = try await ShardRun(
                of: shard, in: JobDirectory(path), try self.settings(),
                machine: (MachineName.current, ProcessInfo.processInfo.processIdentifier, .random(in: 0 ... .max)),
                clock: clock
            ) { transfer.say($0) }
            let (command, fetch) = (self.command, self.fetch)
            let files = JobFiles(entries, of: run) { candidate throws(DownloadError) in
                try command.request(candidate, fetch)
            }
            var code = await run.reporting(clock) { await transfer.run(files) }
            if code == .ok, run.status.failed > 0 { code = .partial }
            let hasFailed = code != .ok || files.failure != nil
            try await run.end(
                code.isSignal ? .stopped : hasFailed ? .failed : .finished,
                isComplete: files.isExhausted && !code.isSignal, now: Double(clock.secondsSinceEpoch))
            if let failure = files.failure { return transfer.refuse(failure) }
            transfer.finish(saying: Self.summary(run, path))
            return code
        } catch {
            return Transfer(configuration: DownloadConfiguration(), output: output, hooks: self.command.hooks).refuse(
                error)
        }
    }

    private static func summary(_ run: ShardRun, _ path: String) -> String {
        let status = run.status
        var text = "task \(run.shard) of \(path.shown): \(status.completed) files finished"
        if status.skipped > 0 { text += ", \(status.skipped) before" }
        if status.failed > 0 {
            text += ", \(status.failed) failed" + (run.failuresPath.map { " (listed in \($0.shown))" } ?? "")
        }
        return text
    }

    // MARK: Options

    /// Refuses options that concern one file, or need all files at once.
    private func check() throws(DownloadError) {
        let destination = self.command.destination
        for (option, isGiven) in [
            ("--background", destination.background), ("--dry-run", self.command.output.dryRun),
            ("-o -", destination.writesStandardOutput), ("several -o", destination.outputs.count > 1),
            ("--checksum", !self.command.transfer.checksum.isEmpty), ("--id", self.command.labels.id != nil),
            ("--checksum-from", !self.command.transfer.checksumFrom.isEmpty),
            ("--linked-mirrors", self.command.transfer.linkedMirrors),
        ] where isGiven {
            throw DownloadError(
                .usage, "\(option) cannot be combined with --shard and --job",
                hint: "In a list, an indented line checksum=sha256=… applies to the file above it")
        }
    }

    /// The directory of the records.
    private func directory() throws(DownloadError) -> String {
        if let path = self.command.jobOptions.job { return path }
        let input = self.command.input
        guard let list = input.inputFile.first, input.inputFile.count == 1, input.listFrom.isEmpty,
            self.command.urls.isEmpty, !InputFile(path: list).isStandardInput, !InputFile(path: list).isRemote
        else {
            throw DownloadError(
                .usage, "--shard needs a directory for its records",
                hint:
                    "Name one with --job that all tasks share. For a single list file, it is LIST.segdl-job by default")
        }
        return "\(list).segdl-job"
    }

    /// The options that decide what a finished file contains, and where it is.
    private func settings() throws(DownloadError) -> JobSettings {
        let sample = try self.sample()
        let path = FilePath(sample.dir)
        let absolute = path.isAbsolute ? path : FilePath(FileManager.default.currentDirectoryPath).pushing(path)
        return JobSettings(
            directory: absolute.lexicallyNormalized().string, part: sample.request.part,
            nameTemplate: sample.nameTemplate?.text)
    }

    private func sample() throws(DownloadError) -> RequestDraft {
        var draft = try RequestDraft.sample()
        try self.fetch.layers.apply(to: &draft)
        return draft
    }

    /// The configuration of a task. Rates and connections to one server are divided among the tasks.
    private func configuration(for shard: Shard) throws(DownloadError) -> DownloadConfiguration {
        let request = try self.sample().finished
        try request.validate()
        // Two: for one alone, more connections are allowed.
        var configuration = try self.fetch.configuration(for: [request, request])
        configuration.divide(for: shard, dividesConnections: true)
        return configuration
    }
}

extension ListingCommand {
    /// What an entry of a job asks for.
    fileprivate func request(
        _ candidate: JobEntries.Candidate, _ fetch: FetchRun
    ) throws(DownloadError) -> DownloadRequest {
        do throws(ListProblem) {
            let sources =
                if let known = candidate.sources {
                    known
                } else {
                    try InputOptions.sources(of: candidate.entry, relativeTo: candidate.base)
                }
            return try self.request(candidate.entry, sources, of: candidate.list, fetch)
        } catch {
            throw DownloadError(error.code, error.message, hint: "Correct the entry; the others are fetched")
        }
    }
}
