import Foundation
import Testing

/// Every subcommand with the spellings of its options, from the command's own dump.
struct CommandOutline {
    struct Option: Hashable {
        /// The subcommand; `get` for the default one.
        var command: String
        /// `-o`, `--output` and so on.
        var spellings: [String]
    }

    private struct Dump: Decodable {
        struct Command: Decodable {
            var commandName: String
            var arguments: [Argument]?
            var subcommands: [Command]?
        }

        struct Argument: Decodable {
            struct Name: Decodable {
                var kind: String
                var name: String
            }

            /// Nil for positional arguments.
            var names: [Name]?
        }

        var command: Command
    }

    let commands: [String]
    let options: [Option]

    init(_ command: Segdl) async throws {
        let outcome = try await command.run("--experimental-dump-help")
        let dump = try JSONDecoder().decode(Dump.self, from: Data(outcome.output.utf8))
        // The parser adds the subcommand help.
        let commands = (dump.command.subcommands ?? []).filter { $0.commandName != "help" }
        try #require(!commands.isEmpty)
        self.commands = commands.map(\.commandName)
        self.options = commands.flatMap { command in
            (command.arguments ?? []).compactMap { argument in
                let spellings = (argument.names ?? []).map { ($0.kind == "long" ? "--" : "-") + $0.name }
                return spellings.isEmpty ? nil : Option(command: command.commandName, spellings: spellings)
            }
        }
    }
}
