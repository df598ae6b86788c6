import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Says what downloads take on disk.
struct UsageCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "du",
        abstract: "Says what finished and interrupted downloads take on disk.",
        usage: "segdl du [--json] [DIR…]",
        discussion: """
            Only what is provably this program's counts: finished files that are unaltered, and parts with their manifests. \
            Without a directory: the current one. Directories within are looked at, too. What cannot be read is passed over \
            with a warning, and the exit status is 16.

              segdl du isos
              segdl du --json /srv | jq .bytes
            """
    )

    @Argument(help: ArgumentHelp("The directories to look in.", valueName: "DIR"))
    var directories: [String] = []

    @Flag(help: "One JSON object a line.")
    var json = false

    func perform() async -> ExitCode {
        DirectoryReport.run(self.directories) { directory, write throws(DownloadError) in
            let usage = try DiskUsage(of: directory)
            write(
                self.json
                    ? UsageRecord(usage, path: directory).jsonLine
                    : "\(directory.shown): \(DirectoryReport.text(usage))")
            return usage.problems
        }
    }
}

/// Deletes interrupted downloads that nobody has gone on with.
struct CleanCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "gc",
        abstract: "Deletes interrupted downloads that nobody has gone on with for long.",
        usage: "segdl gc [--older-than TIME] [--dry-run] [--json] [DIR…]",
        discussion: """
            Parts and manifests go, finished files stay, and so does what another process is at or is not provably this \
            program's. Without a directory: the current one. Directories within are looked at, too. What cannot be read or \
            deleted is passed over with a warning, and the exit status is 16.

              segdl gc --dry-run isos
              segdl gc --older-than 48h isos
            """
    )

    @Argument(help: ArgumentHelp("The directories to look in.", valueName: "DIR"))
    var directories: [String] = []

    @Option(help: ArgumentHelp("Only what was last written so long ago.", valueName: "TIME"))
    var olderThan = Seconds(.seconds(30 * 86_400))

    @Flag(help: "Delete nothing, say what would be.")
    var dryRun = false

    @Flag(help: "One JSON object a line.")
    var json = false

    func perform() async -> ExitCode {
        DirectoryReport.run(self.directories) { directory, write throws(DownloadError) in
            let verb = self.dryRun ? "would delete" : "deleted"
            let deleted = try DiskUsage.deleteInterrupted(
                in: directory, olderThan: self.olderThan.duration, isTrial: self.dryRun
            ) { path, usage in
                write(
                    self.json
                        ? UsageRecord(usage, path: path).jsonLine
                        : "\(verb) \(path.shown): \(ByteCount(usage.total))")
            }
            if !self.json { write("\(directory.shown): \(verb) \(DirectoryReport.text(deleted))") }
            return deleted.problems
        }
    }
}

/// What is said of directories, one after another.
private enum DirectoryReport {
    /// Has `look` look at each directory and write lines about it, and return what it had to pass over; the current one where there is
    /// none.
    static func run(
        _ directories: [String], _ look: (String, (String) -> Void) throws(DownloadError) -> [DownloadError]
    ) -> ExitCode {
        let output = LineSink(descriptor: STDOUT_FILENO)
        let errors = LineSink(descriptor: STDERR_FILENO)
        var failures: [DownloadError] = []
        var problemCount = 0
        for directory in directories.isEmpty ? ["."] : directories {
            do throws(DownloadError) {
                let problems = try look(directory) { output.send($0 + "\n") }
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
                FailureLine(.partial, "\(what) passed over", hint: "Put that right, then run the same command again")
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

/// What downloads take, as a flat object.
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
