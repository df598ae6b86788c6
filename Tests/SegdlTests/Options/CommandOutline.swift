import Foundation

/// What the command takes, as it says itself: every subcommand with the spellings of its options.
struct CommandOutline {
    struct Option: Hashable {
        /// The subcommand, `get` for the one that needs no name.
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

            /// Absent for what is known by its place.
            var names: [Name]?
        }

        var command: Command
    }

    let commands: [String]
    let options: [Option]

    init(_ command: Segdl) async throws {
        let outcome = try await command.run("--experimental-dump-help")
        let dump = try JSONDecoder().decode(Dump.self, from: Data(outcome.output.utf8))
        // The one called help is the parser's own.
        let commands = (dump.command.subcommands ?? []).filter { $0.commandName != "help" }
        self.commands = commands.map(\.commandName)
        self.options = commands.flatMap { command in
            (command.arguments ?? []).compactMap { argument in
                let spellings = (argument.names ?? []).map { ($0.kind == "long" ? "--" : "-") + $0.name }
                return spellings.isEmpty ? nil : Option(command: command.commandName, spellings: spellings)
            }
        }
    }
}
