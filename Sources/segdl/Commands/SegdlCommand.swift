import ArgumentParser
import CPortable
import SegmentedDownload

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

/// The command: reads the arguments, runs the subcommand, and exits with a status of ``ExitCode``.
@main
struct SegdlCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segdl",
        abstract: "Fetches files over HTTP in parallel segments, and resumes interrupted downloads.",
        version: VersionPage.line,
        subcommands: [
            GetCommand.self, ResumeCommand.self, AdoptCommand.self, StatusCommand.self, UsageCommand.self,
            CleanCommand.self,
            BenchCommand.self, ProbeCommand.self, VerifyCommand.self, DaemonCommand.self,
            AddCommand.self, ListCommand.self, ShowCommand.self, PauseCommand.self, ToggleCommand.self,
            RetryCommand.self,
            CancelCommand.self,
            RemoveCommand.self, MoveCommand.self, PriorityCommand.self, LimitsCommand.self, AttachCommand.self,
            WaitCommand.self, HistoryCommand.self, StopCommand.self, GitLFSCommand.self,
            AptCommand.self, AssembleCommand.self,
        ],
        defaultSubcommand: GetCommand.self
    )

    /// Not `async`: that would end the main thread with `pthread_exit(3)`, which unwinds its stack. In a program that is
    /// linked statically, the first unwinding sorts the frames of all functions, which takes 35 ms.
    static func main() {
        segdl_restore_environment()
        StandardDescriptors.open()
        let arguments = Array(CommandLine.arguments.dropFirst())
        let program = Program.named(CommandLine.arguments.first ?? "")
        // The parser takes some milliseconds, and writing in order needs a thread.
        if program == nil, arguments == ["--version"], Self.printsVersion() { ExitCode.ok.leave() }
        // The arguments are copied, so both need not wait for each other.
        Task.detached { await Self.run(arguments, as: program).leave() }
        SecretArguments.hide()
        while true { pause() }
    }

    /// - Parameter program: The program that segdl replaces.
    private static func run(_ typed: [String], as program: Program?) async -> ExitCode {
        let arguments: [String]
        do throws(CompatibilityOptions.Refusal) {
            arguments =
                try program.map { program throws(CompatibilityOptions.Refusal) in
                    try program.translated(typed, environment: ProcessInfo.processInfo.environment)
                }
                ?? typed
        } catch {
            return Self.refuse("\(error.word) is not supported", hint: error.hint)
        }
        // yt-dlp and other programs look for a version after the first word, and for a third one.
        if let program, arguments == ["--version"] {
            return Self.print("\(self.configuration.version) in place of \(program.name)")
        }
        if let text = VersionPage.text(for: arguments) { return Self.print(text) }
        if let word = arguments.first, ["-h", "-help", "--help", "help"].contains(word) {
            guard let topic = arguments.dropFirst().first else { return Self.print(HelpPage.short) }
            if let page = HelpPage.page(topic) { return Self.print(page) }
            // Otherwise the parser prints the subcommand's help.
            guard word == "help", self.subcommandNames.contains(topic) else {
                return Self.refuse(
                    "there is no command or topic \(topic.shown)",
                    hint: "The topics are all, \(HelpPage.topics.joined(separator: ", "))")
            }
        }
        if let script = CompletionScript.text(for: arguments) { return Self.print(script) }
        do {
            let prepared = try ArgumentPipeline(arguments, environment: ProcessInfo.processInfo.environment)
            var command = try await self.parsed(prepared)
            if let command = command as? any FetchingCommand {
                return await command.perform(FetchRun(command, prepared.layers))
            }
            if let command = command as? any SegdlSubcommand {
                return await command.perform()
            }
            try command.run()  // The parser's own, which throws the help that was asked for.
            return .ok
        } catch let problem as ConfigurationFile.Problem {
            return Self.refuse(problem.message, hint: problem.hint, code: problem.code)
        } catch let refusal as CompatibilityOptions.Refusal {
            return Self.refuse("\(refusal.word) is no option here", hint: refusal.hint)
        } catch {
            guard self.exitCode(for: error).isSuccess else { return Self.refuse(error, about: arguments) }
            return Self.print(self.fullMessage(for: error))
        }
    }

    static let subcommandNames = Set(
        Self.configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"])

    /// - Throws: The parser's error, or ``ConfigurationFile/Problem`` if the reason is a stored setting.
    private static func parsed(_ prepared: ArgumentPipeline) async throws -> any ParsableCommand {
        do {
            return try await Self.parsed(prepared.arguments)
        } catch {
            guard !self.exitCode(for: error).isSuccess else { throw error }
            for setting in prepared.settings {
                if let problem = Self.problem(of: setting, arguments: prepared.arguments) { throw problem }
            }
            throw error
        }
    }

    /// The default subcommand is read on its own: on its way through this command the parser defines all of the default
    /// subcommand's options once more, and twice tries to read a request for a completion script.
    private static func parsed(_ arguments: [String]) async throws -> any ParsableCommand {
        let isOfDefault = arguments.first.map { !Self.subcommandNames.contains($0) } ?? false
        let isOfParser = arguments.contains { argument in
            [CompletionScript.option, "---completion", "--experimental-dump-help"].contains { argument.hasPrefix($0) }
        }
        guard isOfDefault, !isOfParser else { return try await self.asyncParseAsRoot(arguments) }
        return try GetCommand.parseAsRoot(arguments)
    }

    /// Why the parser does not accept a stored setting, with the place of the setting; nil if it does.
    private static func problem(of setting: Setting, arguments: [String]) -> ConfigurationFile.Problem? {
        let isDaemon = arguments.first == DaemonCommand.configuration.commandName
        let command: any ParsableCommand.Type = isDaemon ? DaemonCommand.self : GetCommand.self
        do {
            _ = try command.parse(setting.arguments + (isDaemon ? [] : ["http://localhost/"]))
            return nil
        } catch {
            let words = Self.words(of: command.message(for: error), about: setting.arguments)
            return ConfigurationFile.Problem(message: "\(setting.place): \(words)")
        }
    }

    /// Prints the version with one system call.
    ///
    /// - Returns: Whether it was written. If not, it is printed as any other text.
    private static func printsVersion() -> Bool {
        var text = self.configuration.version + "\n"
        return text.withUTF8 { SystemCalls.writeBytes(STDOUT_FILENO, UnsafeRawBufferPointer($0)) } > 0
    }

    private static func print(_ text: String) -> ExitCode {
        let output = LineSink(descriptor: STDOUT_FILENO)
        output.send(text + "\n")
        output.drain()
        return .ok
    }

    /// The parser's words about some arguments, in one line and without their secrets.
    private static func words(of message: String, about arguments: [String]) -> String {
        let words = SecretArguments.removed(from: message, about: arguments)
        return OptionSuggestion.kept(in: words.split(whereSeparator: \.isNewline).joined(separator: " "))
    }

    private static func refuse(_ error: any Error, about arguments: [String]) -> ExitCode {
        Self.refuse(Self.words(of: self.message(for: error), about: arguments), hint: "Try segdl --help")
    }

    private static func refuse(_ words: String, hint: String, code: ExitCode = .usage) -> ExitCode {
        let errors = LineSink(descriptor: STDERR_FILENO)
        errors.send(FailureLine(code, words, hint: hint).text.shown + "\n")
        errors.drain()
        return code
    }
}

/// What a subcommand does once its arguments are read.
protocol SegdlSubcommand: AsyncParsableCommand {
    func perform() async -> ExitCode
}

/// A subcommand that fetches files.
///
/// Each declares the groups of options itself. In a group of their own they would be one level deeper, and a debug build
/// of the parser validates each level five times for each one above it: that took four fifths of a command's start.
protocol FetchingCommand: AsyncParsableCommand {
    var transfer: TransferOptions { get }
    var limits: LimitOptions { get }
    var labels: LabelOptions { get }
    var identity: IdentityOptions { get }
    var network: NetworkOptions { get }
    var output: OutputOptions { get }
    var hooks: HookOptions { get }
    /// The file options of the command line.
    var edits: [FileEdit] { get }

    func perform(_ fetch: FetchRun) async -> ExitCode
}

extension FetchingCommand {
    /// The file options of the groups that all of these commands have.
    var sharedEdits: [FileEdit] { self.transfer.edits + self.limits.edits + self.labels.edits + self.identity.edits }

    var edits: [FileEdit] { self.sharedEdits }
}
