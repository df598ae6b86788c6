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
        if request.ifExists == .skip, try file.kept(digests: request.digests) != nil {
            if let leftover = try file.leftover() { try await file.clear(leftover) }
            return self.report.say("\(path.shown) exists")
        }
        let patience = self.command.jobOptions.stealAfter
        let task = SharedFileTask(
            shard, of: file, request, takingOverAfter: patience?.duration,
            selection: configuration.selection(of: request), id: .random(in: .min ... .max),
            machine: (MachineName.current, getpid(), .random(in: .min ... .max)))
        var code = ExitCode.ok
        let ending = try await task.run {
            try await self.probe(request, configuration)
        } note: {
            _ = self.report.say($0)
        } noteTakeOver: { piece, plan in
            let count = plan.division.pieces(of: piece.shard).count
            let time = patience.map { "\($0)" } ?? ""
            _ = self.report.say(
                "task \(piece.shard) has recorded no progress for \(time): fetching piece \(piece.index + 1) of \(count) of its range"
            )
        } fetch: { request in
            var transfer = self.transfer(configuration)
            // Once others have completed the file, the files of this part are gone, which is no failure.
            transfer.isSuperseded = { request.window.flatMap { try? file.isAssembled($0) } ?? false }
            code = await transfer.run(RunFiles([request]))
            return code.isSignal ? .stopped : code == .ok ? .finished : .failed
        }
        return try await self.exitCode(ending, after: code, of: task, configuration)
    }

    /// - Parameter code: That of the last transfer.
    private func exitCode(
        _ ending: SharedFileTask.Ending, after code: ExitCode, of task: SharedFileTask,
        _ configuration: DownloadConfiguration
    ) async throws -> ExitCode {
        let path = task.file.paths.destination.shown
        switch ending {
        case .ended(let outcome, let plan): return self.report.end(outcome, task.file, plan, after: task.shard)
        case .failed: return code
        case .alreadyComplete: return self.report.say("\(path) is already complete")
        case .different:
            throw DownloadError(
                .exists, "\(path) exists, and is not the server's file",
                hint: "Replace it with --if-exists overwrite, or choose another name with -o")
        case .empty:
            guard task.shard.number == 1 else { return .ok }
            return await self.transfer(configuration).run(RunFiles([task.request]))
        case .divided(let plan):
            throw DownloadError(
                .exists,
                "\(path) is being fetched by \(plan.division.count) tasks, and this is task \(task.shard)",
                hint:
                    "Use --shard I/\(plan.division.count). To start over, stop all tasks and remove \(task.file.directory.shown)"
            )
        }
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
        if let refused = work.refused.first { throw refused.error }
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
        guard request.pieceDigests == nil || !request.digests.isEmpty else {
            throw Self.usage("--one-file cannot verify the digests of pieces that the metalink has")
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
    ) async throws -> SharedFileTask.Found {
        try await withDownloadClient(configuration) { client in
            try await client.repeating(request) { error, attempt, delay in
                _ = self.report.say("retry \(attempt) in \(Seconds(delay)): \(error.message)")
            } _: { () throws(DownloadError) in
                let found = try await client.probe(request)
                let (resource, length) = try found.divisible(hasDigest: !request.digests.isEmpty)
                try Self.check(length, request)
                return (resource, length)
            }
        }
    }

    private static func check(_ length: Int64, _ request: DownloadRequest) throws(DownloadError) {
        if let expected = request.lengthExpected, expected != length {
            throw DownloadError(.integrity, "the file has \(length) bytes, not \(expected)")
        }
        guard length <= request.lengthMaximum else {
            throw DownloadError(.space, "the file has \(length) bytes, more than --max-filesize allows")
        }
    }
}
