import ArgumentParser
import SegmentedDownload

/// Puts a file into place whose tasks have all completed their ranges.
struct AssembleCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "assemble",
        abstract: "Completes a file that several tasks have fetched with --one-file.",
        usage: "segdl assemble [--checksum ALGO=HEX] FILE",
        discussion: """
            The last task of a job does the same. This command is for jobs whose last task was killed at that moment, and for \
            a digest that became known later.

            The records of all tasks must exist and be of one version of the file. The file is read: the CRC-32 of each range \
            is compared with that of the received bytes, and digests of --checksum, of the tasks' command line and of the \
            server are verified. Then FILE gets its name.

              segdl assemble file.iso
              segdl assemble --checksum sha256=9f86… file.iso
            """
    )

    @Argument(help: ArgumentHelp("The file.", valueName: "FILE"), completion: .file())
    var path: String

    @Option(help: ArgumentHelp("A digest that the file must have. Repeatable.", valueName: "ALGO=HEX"))
    var checksum: [String] = []

    @Flag(help: "Write one JSON object.")
    var json = false

    mutating func validate() throws {
        for text in self.checksum where ExpectedDigest(text) == nil {
            throw ValidationError("--checksum must be ALGO=HEX, not \(text.shown)")
        }
    }

    func perform() async -> ExitCode {
        let report = OneFileReport(json: self.json)
        do {
            let file = SharedFile(FilePath(self.path).string)
            guard let plan = try file.plan() else {
                throw DownloadError(
                    .state, "there is no \(file.directory.shown): no tasks have begun to fetch \(self.path.shown)",
                    hint: "Give the path that was given to the tasks with -o")
            }
            // The command has no policy of its own: it ends what the tasks began.
            let outcome = try await file.assemble(
                plan, digests: self.checksum.compactMap { ExpectedDigest($0) }, ifExists: plan.options.ifExists,
                run: .random(in: .min ... .max))
            return report.end(outcome, file, plan, after: nil)
        } catch {
            return report.fail(error)
        }
    }
}
