import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Prints the disk space used by downloads.
struct UsageCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "du",
        abstract: "Prints the disk space used by finished and interrupted downloads.",
        usage: "segdl du [--json] [DIR…]",
        discussion: """
            Counts the files that segdl has demonstrably fetched: unaltered finished files, and parts with their \
            manifests. Includes subdirectories. The default is the current directory. Files that cannot be read are \
            skipped with a warning, and the exit status is 16.

              segdl du isos
              segdl du --json /srv | jq .bytes
            """
    )

    @Argument(help: ArgumentHelp("The directories to search.", valueName: "DIR"), completion: .directory)
    var directories: [String] = []

    @Flag(help: "Write one JSON object a line.")
    var json = false

    func perform() async -> ExitCode {
        await DirectoryReport.run(self.directories) { directory, write async throws(DownloadError) in
            let usage = try await DiskUsage(of: FilePath(directory))
            write(
                self.json
                    ? UsageRecord(usage, path: directory).jsonLine
                    : "\(directory.shown): \(DirectoryReport.text(usage))")
            return usage.problems
        }
    }
}

/// Deletes old interrupted downloads.
struct CleanCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "gc",
        abstract: "Deletes old interrupted downloads.",
        usage: "segdl gc [--older-than TIME] [--dry-run] [--json] [DIR…]",
        discussion: """
            Deletes parts and manifests. Keeps finished files, downloads that another process has locked, and files \
            that segdl has not demonstrably fetched. Includes subdirectories. The default is the current directory. \
            Files that cannot be read or deleted are skipped with a warning, and the exit status is 16.

              segdl gc --dry-run isos
              segdl gc --older-than 48h isos
            """
    )

    @Argument(help: ArgumentHelp("The directories to search.", valueName: "DIR"), completion: .directory)
    var directories: [String] = []

    @Option(help: ArgumentHelp("Delete only downloads that were last written longer ago than this.", valueName: "TIME"))
    var olderThan = Seconds(.seconds(30 * 86_400))

    @Flag(help: "Print what would be deleted, and delete nothing.")
    var dryRun = false

    @Flag(help: "Write one JSON object a line.")
    var json = false

    func perform() async -> ExitCode {
        await DirectoryReport.run(self.directories) { directory, write async throws(DownloadError) in
            let verb = self.dryRun ? "would delete" : "deleted"
            let deleted = try await DiskUsage.deleteInterrupted(
                in: FilePath(directory), olderThan: self.olderThan.duration, isTrial: self.dryRun
            ) { path, usage in
                write(
                    self.json
                        ? UsageRecord(usage, path: path.string).jsonLine
                        : "\(verb) \(path.string.shown): \(ByteCount(usage.total))")
            }
            if !self.json { write("\(directory.shown): \(verb) \(DirectoryReport.text(deleted))") }
            return deleted.problems
        }
    }
}

/// Examines directories one after another.
private enum DirectoryReport {
    /// Calls `look` for each directory, or for the current one if there is none.
    ///
    /// - Parameter look: Writes lines about the directory, and returns the errors of skipped files.
    static func run(
        _ directories: [String], _ look: (String, (String) -> Void) async throws(DownloadError) -> [DownloadError]
    ) async -> ExitCode {
        let output = LineSink(descriptor: STDOUT_FILENO)
        let errors = LineSink(descriptor: STDERR_FILENO)
        var failures: [DownloadError] = []
        var problemCount = 0
        for directory in directories.isEmpty ? ["."] : directories {
            do throws(DownloadError) {
                let problems = try await look(directory) { output.send($0 + "\n") }
                problemCount += problems.count
                for problem in problems { errors.send("segdl: warning: \(problem.message)\n") }
            } catch {
                failures.append(error)
                errors.send(FailureLine(error, of: nil).text + "\n")
            }
        }
        if problemCount > 0 {
            let what = problemCount == 1 ? "1 file or directory was" : "\(problemCount) files or directories were"
            errors.send(
                FailureLine(.partial, "\(what) skipped", hint: "Correct the cause, then run the same command again")
                    .text + "\n")
        }
        output.drain()
        errors.drain()
        guard let first = failures.first else { return problemCount > 0 ? .partial : .ok }
        return directories.count <= 1 ? ExitCode(first.code) : .partial
    }

    static func text(_ usage: DiskUsage) -> String {
        let files = "\(usage.files) \(usage.files == 1 ? "download" : "downloads"), \(ByteCount(usage.total))"
        guard usage.finished > 0, usage.parts + usage.manifests > 0 else { return files }
        return files
            + " (\(ByteCount(usage.finished)) finished, \(ByteCount(usage.parts + usage.manifests)) interrupted)"
    }
}

/// The disk space used by downloads, as a flat JSON object.
private struct UsageRecord: Encodable {
    let v = 1
    let path: String
    let files: Int
    let bytes: Int64
    let bytesFinished: Int64
    let bytesParts: Int64
    let bytesManifests: Int64
    let problems: Int

    init(_ usage: DiskUsage, path: String) {
        self.path = path
        self.files = usage.files
        self.bytes = usage.total
        self.bytesFinished = usage.finished
        self.bytesParts = usage.parts
        self.bytesManifests = usage.manifests
        self.problems = usage.problems.count
    }
}
