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
        abstract: "Lists interrupted downloads and their progress.",
        usage: "segdl status [--json] [PATH…]",
        discussion: """
            Without a path, segdl lists every interrupted download in the current directory.

              segdl status
              segdl status --json file.iso

            For a file that several tasks fetch with --one-file, there is a line for each task.
            """
    )

    @Argument(help: ArgumentHelp("The downloads to list.", valueName: "PATH"), completion: .file())
    var paths: [String] = []

    @Flag(help: "Write one JSON object a line.")
    var json = false

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
