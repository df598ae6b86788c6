import SegmentedDownload
import Testing

@testable import segdl

/// What the command says of itself.
@Suite("Options that explain")
struct HelpOptionTests {
    /// Those that have to be named.
    private static let commands = SegdlCommand.subcommandNames.subtracting(["get", "help"]).sorted()

    @Test("The version is a line that names the program, also behind a subcommand")
    func version() async throws {
        try await withCommand { command in
            for arguments in [["--version"]] + Self.commands.map({ [$0, "--version"] }) {
                let outcome = try await command.run(arguments)
                #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(arguments): \(outcome)")
                #expect(outcome.output == "segdl \(SegmentedDownloadVersion.string)\n", "\(arguments)")
            }
        }
    }

    @Test(
        "Help explains every option of what is fetched, and how to write its values",
        arguments: ["-h", "--help", "help"])
    func help(option: String) async throws {
        try await withCommand { command in
            let outcome = try await command.run(option)
            #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome)")
            for option in try await CommandOutline(command).options where option.command == "get" {
                #expect(option.spellings.allSatisfy { outcome.output.contains($0) }, "\(option)")
            }
            // A default is told in words, not as it is kept, wherever lines end.
            let words = outcome.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(words.contains("(default: http,https)") && !words.contains("Set(["))
        }
    }

    @Test("The help of a subcommand is the same by option and by name, and says how it is called")
    func subcommands() async throws {
        try await withCommand { command in
            for name in Self.commands {
                let help = try await command.run("help", name)
                #expect(help.status == 0 && help.output.contains("USAGE: segdl \(name)"), "\(help)")
                for option in ["-h", "--help"] {
                    #expect(try await command.run(name, option).output == help.output, "\(name) \(option)")
                }
            }
        }
    }
}
