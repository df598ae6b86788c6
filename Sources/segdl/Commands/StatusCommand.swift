import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Lists interrupted downloads.
struct StatusCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Lists interrupted downloads, or the progress of a job.",
        usage: """
            segdl status [--json] [PATH…]
            segdl status --job DIR [--json|--failed]
            """,
        discussion: """
            Without a path, segdl lists every interrupted download in the current directory.

            With --job it reports the tasks of a job that was started with --shard or --job. The exit status is 0 if every \
            task has finished and no file has failed, otherwise 16.

              segdl status
              segdl status --json file.iso
              segdl status --job list.segdl-job
              segdl status --job list.segdl-job --failed > again.txt

            For a file that several tasks fetch with --one-file, there is a line for each task.
            """
    )

    @Argument(help: ArgumentHelp("The downloads to list.", valueName: "PATH"), completion: .file())
    var paths: [String] = []

    @Option(help: ArgumentHelp("Report the progress of a job's tasks.", valueName: "DIR"), completion: .directory)
    var job: String?

    @Flag(help: "With --job, print the failed entries as a list that -i reads.")
    var failed = false

    @Flag(help: "Write one JSON object a line.")
    var json = false

    func validate() throws {
        if self.job != nil, !self.paths.isEmpty { throw ValidationError("--job and PATH are two things to report") }
        if self.failed, self.job == nil { throw ValidationError("--failed applies to --job, and there is none") }
    }

    func perform() async -> ExitCode {
        let output = LineSink(descriptor: STDOUT_FILENO)
        let errors = LineSink(descriptor: STDERR_FILENO)
        let code = await self.write(to: output, errors: errors)
        output.drain()
        errors.drain()
        return code
    }

    private func write(to output: LineSink, errors: LineSink) async -> ExitCode {
        var failures: [DownloadError] = []
        func fail(_ error: DownloadError, of path: String?) {
            failures.append(error)
            errors.send(FailureLine(error, of: path).text + "\n")
        }
        if let job {
            let now = Double(SystemClock().secondsSinceEpoch)
            do throws(DownloadError) {
                return try JobReport(path: job, json: self.json, failed: self.failed).run(now: now, to: output)
            } catch {
                fail(error, of: nil)
                return ExitCode(error.code)
            }
        }
        var paths = self.paths
        do throws(DownloadError) {
            if paths.isEmpty { paths = try await SavedDownload.paths(in: ".").map(\.string) }
        } catch {
            fail(error, of: nil)
        }
        for path in paths {
            do throws(DownloadError) {
                let shared = SharedFile(path)
                if let plan = try shared.plan() {
                    for task in try shared.tasks(plan) {
                        let record = TaskRecord(task, of: path, plan)
                        output.send((self.json ? record.jsonLine : record.text) + "\n")
                    }
                    continue
                }
                let saved = try await SavedDownload(at: FilePath(path))
                output.send((self.json ? StatusRecord(saved).jsonLine : Self.line(saved)) + "\n")
            } catch {
                fail(error, of: path)
            }
        }
        guard let first = failures.first else { return .ok }
        return paths.count <= 1 ? ExitCode(first.code) : .partial
    }

    private static func line(_ saved: SavedDownload) -> String {
        let amount = ByteCount(saved.bytesDone).description(of: ByteCount(saved.bytesTotal))
        let fraction = saved.bytesTotal == 0 ? 1 : Double(saved.bytesDone) / Double(saved.bytesTotal)
        var parts = ["\(saved.path.string.shown): \(amount) (\(Int(fraction * 100))%)"]
        if let validator = saved.validator { parts.append(validator) }
        parts += saved.options.digests.map(\.description)
        parts.append("from \(saved.sourceDescription)")
        return parts.joined(separator: ", ")
    }
}

/// A manifest, as a flat JSON object.
struct StatusRecord: Encodable {
    let v = 1
    let path: String
    let url: String
    let bytesDone: Int64
    let bytesTotal: Int64
    let validator: String?
    let digests: [String]

    init(_ saved: SavedDownload) {
        self.path = saved.path.string
        self.url = saved.sourceDescription
        self.bytesDone = saved.bytesDone
        self.bytesTotal = saved.bytesTotal
        self.validator = saved.validator
        self.digests = saved.options.digests.map(\.description)
    }
}
