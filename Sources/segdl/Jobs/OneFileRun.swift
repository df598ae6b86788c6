import SegmentedDownload
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Fetches a task's range of one file, and puts the file into place if it is the last.
struct OneFileRun {
    private struct Arguments {
        var shard: Shard
        /// For the complete file.
        var request: DownloadRequest
        var path: String
        /// With this task's share of the limits.
        var configuration: DownloadConfiguration
    }

    private let command: GetCommand
    private let fetch: FetchRun
    private let report: OneFileReport

    init(_ command: GetCommand, _ fetch: FetchRun) {
        self.command = command
        self.fetch = fetch
        self.report = OneFileReport(command.output)
    }

    func run() async -> ExitCode {
        let arguments: Arguments
        do {
            arguments = try await self.prepared()
        } catch {
            return self.report.fail(error)
        }
        do {
            return try await self.run(arguments)
        } catch {
            // Events and hooks are those of any file that cannot be fetched.
            return await self.transfer(arguments.configuration).run(
                RunFiles([], refused: [(arguments.path, DownloadError(wrapping: error))]))
        }
    }

    private func transfer(_ configuration: DownloadConfiguration) -> Transfer {
        Transfer(configuration: configuration, output: self.command.output, hooks: self.command.hooks)
    }

    private func run(_ arguments: Arguments) async throws -> ExitCode {
        let (shard, request, path, configuration) = (
            arguments.shard, arguments.request, arguments.path, arguments.configuration
        )
        let file = SharedFile(path)
        if let plan = try file.plan(), try file.isAssembled(plan) {
            return try await self.assemble(file, plan, request)
        }
        if request.ifExists == .skip, FileFacts(path) != nil { return self.report.say("\(path.shown) exists") }
        let (resource, length, digest) = try await self.probe(request, configuration)
        // There is nothing to divide.
        guard length > 0 else {
            guard shard.number == 1 else { return .ok }
            return await self.transfer(configuration).run(RunFiles([request]))
        }
        if let code = try self.settled(file, resource, request) { return code }
        let plan = try await file.begin(
            id: .random(in: .min ... .max), request, of: resource, count: shard.count, length: length,
            announced: digest)
        if plan.division.count == shard.count {
            try plan.check(resource, directory: file.directory)
            let patience = self.command.jobOptions.stealAfter
            let takeOver = try patience.map {
                try TakeOver(
                    of: file, plan, request, resource, by: shard, id: .random(in: .min ... .max), after: $0.duration)
            }
            let code = try await self.fetchRange(of: shard, file, plan, request, configuration)
            // Others may have fetched the range and completed the file meanwhile.
            guard try code == .ok || file.isAssembled(plan) else { return code }
            if let takeOver, let patience {
                return try await self.finish(takeOver, after: patience, file, plan, configuration, as: shard)
            }
        } else if try file.tasks(plan).contains(where: { !$0.isComplete }) {
            throw DownloadError(
                .exists,
                "\(path.shown) is being fetched by \(plan.division.count) tasks, and this is task \(shard)",
                hint:
                    "Use --shard I/\(plan.division.count). To start over, stop all tasks and remove \(file.directory.shown)"
            )
        }
        return try await self.assemble(file, plan, request, after: shard)
    }

    // MARK: Before the download

    private static func usage(_ message: String, hint: String? = nil) -> DownloadError {
        DownloadError(.usage, message, hint: hint)
    }

    /// What the command line asks for.
    private func prepared() async throws -> Arguments {
        guard let argument = self.command.jobOptions.shard else { throw Self.usage("--one-file requires --shard I/N") }
        let shard = try argument.shard(in: ProcessInfo.processInfo.environment)
        let output = self.command.output
        guard !output.dryRun, !self.command.destination.background else {
            throw Self.usage("--one-file excludes --dry-run and --background")
        }
        var (work, configuration) = try await self.fetch.prepared { () async throws(DownloadError) in
            try await self.command.work(self.fetch)
        }
        guard work.requests.count == 1, let request = work.requests.first else {
            throw Self.usage("--one-file divides one file, and there are \(work.requests.count)")
        }
        guard case .file(let path) = request.destination else {
            throw Self.usage(
                "--one-file needs -o FILE, so that all tasks write to the same file", hint: "Write -o FILE")
        }
        guard request.part == nil else {
            throw Self.usage("--one-file excludes --range: each task has a range already")
        }
        guard request.ifExists != .rename else {
            throw Self.usage("--one-file excludes --if-exists rename: the tasks would choose different names")
        }
        guard self.command.jobOptions.stealAfter == nil || request.mirrors.isEmpty else {
            // Mirrors are compared in samples only, so two tasks could write different bytes to one place.
            throw Self.usage(
                "with --steal-after the file must have one source, and it has \(1 + request.mirrors.count)",
                hint: "Leave out the mirrors, or --steal-after")
        }
        configuration.divide(
            for: shard, dividesConnections: self.command.limits.maxConnectionPerServer != nil)
        return Arguments(
            shard: shard, request: request, path: path.string, configuration: configuration)
    }

    /// What the server says about the file. Many tasks start at the same time, so a server that is busy is asked again.
    private func probe(
        _ request: DownloadRequest, _ configuration: DownloadConfiguration
    ) async throws -> (resource: RemoteResource, length: Int64, digest: ExpectedDigest?) {
        try await withDownloadClient(configuration) { client in
            var attempts = 0
            while true {
                do throws(DownloadError) {
                    let found = try await client.probe(request)
                    let (resource, length) = try found.divisible(hasDigest: !request.digests.isEmpty)
                    try Self.check(length, request)
                    return (resource, length, found.digest)
                } catch {
                    attempts += 1
                    guard error.isTransient, attempts <= request.retries ?? Self.attemptsMax else { throw error }
                    // Random, so that the tasks do not ask again at the same time.
                    let delay = error.retryAfter ?? .seconds(Double.random(in: 0.1...1) * Double(min(attempts, 10)))
                    try await Task.sleep(for: request.retryDelay ?? delay)
                }
            }
        }
    }

    /// 10: as often as a download tries without progress.
    private static let attemptsMax = 10

    private static func check(_ length: Int64, _ request: DownloadRequest) throws(DownloadError) {
        if let expected = request.lengthExpected, expected != length {
            throw DownloadError(.integrity, "the file has \(length) bytes, not \(expected)")
        }
        guard length <= request.lengthMaximum else {
            throw DownloadError(.space, "the file has \(length) bytes, more than --max-filesize allows")
        }
    }

    /// The exit code if there is nothing to do, because the destination exists; nil otherwise.
    private func settled(
        _ file: SharedFile, _ resource: RemoteResource, _ request: DownloadRequest
    ) throws(DownloadError) -> ExitCode? {
        guard request.ifExists != .overwrite,
            let isComplete = try file.isComplete(resource, digests: request.digests)
        else { return nil }
        let path = file.paths.destination.shown
        if isComplete, request.ifExists != .fail { return self.report.say("\(path) is already complete") }
        guard request.ifExists == .update else {
            throw DownloadError(
                .exists, "\(path) exists, and is not the server's file",
                hint: "Replace it with --if-exists overwrite, or choose another name with -o")
        }
        return nil
    }

    // MARK: The download

    private func fetchRange(
        of shard: Shard, _ file: SharedFile, _ plan: SharedFilePlan, _ request: DownloadRequest,
        _ configuration: DownloadConfiguration
    ) async throws -> ExitCode {
        let range = plan.division.range(of: shard)
        guard !range.isEmpty else {
            _ = self.report.say("the file is too short for \(shard.count) tasks: \(shard) has nothing to fetch")
            return .ok
        }
        if try file.isComplete(shard, plan) { return .ok }
        // One that cannot be read is of no use.
        try await file.removeRecord(of: shard)
        let clock = SystemClock()
        let run = try await ShardRun(
            of: shard, in: file.job, JobSettings(directory: file.paths.name),
            machine: (MachineName.current, getpid(), .random(in: .min ... .max)), clock: clock
        ) { _ = self.report.say($0) }
        run.update { ($0.bytesTotal, $0.bytesDone) = (Int64(range.count), 0) }
        let task = file.request(for: shard, plan, of: request)
        let code = await run.reporting(
            clock, prepare: { run.update { $0.bytesDone = file.bytesDone(of: shard) } }
        ) { await self.transfer(configuration).run(RunFiles([task])) }
        func end(_ state: ShardStatus.State) async {
            run.update { $0.failed = state == .failed ? 1 : 0 }
            try? await run.end(state, isComplete: true, now: Double(clock.secondsSinceEpoch))
        }
        do {
            let record = try file.record(of: shard)
            if code == .ok, let record {
                try await file.check(record, of: shard, plan, hasDigest: !request.digests.isEmpty)
            }
            run.update { $0.bytesDone = record?.length ?? file.bytesDone(of: shard) }
        } catch {
            await end(.failed)
            throw error
        }
        await end(code.isSignal ? .stopped : code == .ok ? .finished : .failed)
        return code
    }

    /// Waits for the other tasks, and fetches the ranges of those that make no progress.
    private func finish(
        _ takeOver: TakeOver, after patience: Seconds, _ file: SharedFile, _ plan: SharedFilePlan,
        _ configuration: DownloadConfiguration, as shard: Shard
    ) async throws -> ExitCode {
        var code = ExitCode.ok
        let outcome = try await takeOver.run { piece in
            let count = plan.division.pieces(of: piece.shard).count
            _ = self.report.say(
                "task \(piece.shard) has recorded no progress for \(patience): fetching piece \(piece.index + 1) of \(count) of its range"
            )
        } fetch: { task in
            code = await self.transfer(configuration).run(RunFiles([task]))
            return code == .ok
        }
        guard let outcome else { return code }
        return self.report.end(outcome, file, plan, after: shard)
    }

    private func assemble(
        _ file: SharedFile, _ plan: SharedFilePlan, _ request: DownloadRequest, after shard: Shard? = nil
    ) async throws -> ExitCode {
        let outcome = try await file.assemble(plan, digests: request.digests)
        return self.report.end(outcome, file, plan, after: shard)
    }
}
