import ArgumentParser
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

/// A subcommand that asks the background service.
protocol ServiceCommand: SegdlSubcommand {
    var service: ServiceOptions { get }
    /// What happens if the service does not run.
    var absence: ServiceClient.Absence { get }

    /// - Throws: ``ServiceFailure`` or ``DownloadError``.
    func run(_ client: ServiceClient, _ print: Printer) async throws -> ExitCode
}

/// The options of subcommands that ask the background service.
struct ServiceOptions: ParsableArguments {
    @Flag(help: "Do not start the background service if it does not run.")
    var noAutostart = false
}

/// Writes the results and messages of a subcommand.
struct Printer: Sendable {
    private let output = LineSink(descriptor: STDOUT_FILENO)
    let errors = LineSink(descriptor: STDERR_FILENO)

    /// Writes a result to standard output.
    func write(_ line: String) { self.output.send(line + "\n") }

    /// Writes a message to standard error.
    func say(_ text: String) { self.errors.send("segdl: \(text)\n") }

    /// Reports an error.
    ///
    /// - Returns: Its exit status.
    func fail(_ error: any Error) -> ExitCode {
        if let failure = error as? ServiceFailure {
            self.errors.send(failure.line.text + "\n")
            return .daemon
        }
        let error = DownloadError(wrapping: error)
        self.errors.send(FailureLine(error, of: nil).text + "\n")
        return ExitCode(error.code)
    }

    func drain() {
        self.output.drain()
        self.errors.drain()
    }
}

extension ServiceCommand {
    var absence: ServiceClient.Absence { self.service.noAutostart ? .fail : .start }

    func perform() async -> ExitCode {
        let print = Printer()
        defer { print.drain() }
        signal(SIGPIPE, SIG_IGN)
        do {
            return try await ServiceClient.run(self.absence) { try await self.run($0, print) }
        } catch {
            return print.fail(error)
        }
    }
}

/// A subcommand that does one thing with entries.
protocol EntryCommand: ServiceCommand {
    static var action: QueueControl.Action { get }
    var selection: EntrySelection { get }
}

extension EntryCommand {
    func run(_ client: ServiceClient, _ print: Printer) async throws -> ExitCode {
        var selection = self.selection
        selection.directory = FileManager.default.currentDirectoryPath
        let answer: EntrySelection.Answer = try await client.post("/downloads/\(Self.action.rawValue)", selection)
        var exit = ExitCode.ok
        for (_, failure) in answer.errors.sorted(by: { $0.key < $1.key }) { exit = print.fail(DownloadError(failure)) }
        return answer.errors.count > 1 || !answer.errors.isEmpty && !answer.changed.isEmpty ? .partial : exit
    }
}

/// The entries of a subcommand.
struct EntryArguments: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "IDs, beginnings of IDs, paths, names or URLs, as segdl list shows them.", valueName: "ID"),
        completion: .downloadIDs)
    var ids: [String] = []

    @Flag(help: "All to which this applies.")
    var all = false

    mutating func validate() throws {
        if self.ids.isEmpty != self.all {
            throw ValidationError(self.all ? "--all takes no IDs" : "there is no ID. Give IDs, or --all")
        }
    }

    var selection: EntrySelection { self.all ? EntrySelection(all: true) : EntrySelection(ids: self.ids) }
}
