import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The command: reads the arguments, runs what they ask for, and exits as the contract says.
@main
struct SegdlCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segdl",
        abstract: "Fetches files over HTTP in segments, several at a time, and goes on where it stopped.",
        version: "segdl \(SegmentedDownloadVersion.string)",
        subcommands: [
            GetCommand.self, ResumeCommand.self, StatusCommand.self, UsageCommand.self, CleanCommand.self,
            BenchCommand.self,
        ],
        defaultSubcommand: GetCommand.self
    )

    static func main() async {
        StandardDescriptors.open()
        await Self.run(Array(CommandLine.arguments.dropFirst())).leave()
    }

    private static func run(_ arguments: [String]) async -> ExitCode {
        if ["-h", "--help", "help"].contains(where: { [$0] == arguments }) {
            return Self.print(self.helpMessage(for: GetCommand.self))
        }
        do {
            let arguments = MirrorArguments.marked(BareContinue.spelledOut(arguments))
            var command = try await self.asyncParseAsRoot(arguments)
            if let command = command as? any SegdlSubcommand {
                return await command.perform()
            }
            try command.run()  // The parser's own, which throws the help that was asked for.
            return .ok
        } catch {
            guard self.exitCode(for: error).isSuccess else { return Self.refuse(error) }
            return Self.print(self.fullMessage(for: error))
        }
    }

    private static func print(_ text: String) -> ExitCode {
        let output = LineSink(descriptor: STDOUT_FILENO)
        output.send(text + "\n")
        output.drain()
        return .ok
    }

    /// The parser's words as one failure line.
    private static func refuse(_ error: any Error) -> ExitCode {
        let words = self.message(for: error).split(whereSeparator: \.isNewline).joined(separator: " ")
        let errors = LineSink(descriptor: STDERR_FILENO)
        errors.send(FailureLine(.usage, words, hint: "Try segdl --help").text.shown + "\n")
        errors.drain()
        return .usage
    }
}

/// What a subcommand does once its arguments are read.
protocol SegdlSubcommand: AsyncParsableCommand {
    func perform() async -> ExitCode
}
