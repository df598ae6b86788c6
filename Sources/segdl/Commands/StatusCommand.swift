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

    @Option(
        help: ArgumentHelp("Report the progress of a job's tasks.", valueName: "DIR"), completion: .directory,
        transform: HomePath.directory)
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
                        TaskRecord(task, of: path, plan).write(json: self.json, to: output)
                    }
                    continue
                }
                StatusRecord(try await SavedDownload(at: FilePath(path))).write(json: self.json, to: output)
            } catch {
                fail(error, of: path)
            }
        }
        guard let first = failures.first else { return .ok }
        return paths.count <= 1 ? ExitCode(first.code) : .partial
    }
}

/// How much of a file is there, as a flat JSON object or a line.
protocol AmountRecord: Encodable {
    var name: String { get }
    var url: String { get }
    var bytesDone: Int64 { get }
    var bytesTotal: Int64 { get }
    var validator: String? { get }
    var digests: [String] { get }
}

extension AmountRecord {
    /// `file.iso: 128 MiB of 1.00 GiB (12%), ETag "a", from https://example.org/file.iso`
    var text: String {
        let amount = ByteCount(self.bytesDone).description(of: ByteCount(self.bytesTotal))
        let fraction = self.bytesTotal == 0 ? 1 : Double(self.bytesDone) / Double(self.bytesTotal)
        var parts = ["\(self.name): \(amount) (\(Int(fraction * 100))%)"]
        if let validator { parts.append(validator) }
        parts += self.digests + ["from \(self.url)"]
        return parts.joined(separator: ", ")
    }

    /// Writes the record in one of its forms.
    func write(json: Bool, to output: LineSink) { output.send((json ? self.jsonLine : self.text) + "\n") }
}

/// A manifest, as a flat JSON object.
struct StatusRecord: AmountRecord {
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

    var name: String { self.path.shown }
}
