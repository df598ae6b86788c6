import Testing

@testable import segdl

/// The command's help.
@Suite("Help")
struct HelpTests {
    private static let commands = SegdlCommand.subcommandNames.subtracting(["help"]).sorted()

    @Test(
        "Every command's help has an example, names its arguments, and shows no Swift syntax", arguments: Self.commands)
    func example(name: String) async throws {
        try await withCommand { command in
            let help = try await command.run(name, "--help")
            #expect(help.status == 0 && help.errors.isEmpty, "\(help)")
            let examples = help.output.split(separator: "\n").filter { $0.hasPrefix("  segdl ") }
            #expect(!examples.isEmpty)
            if name != "get" {
                #expect(examples.allSatisfy { $0.hasPrefix("  segdl \(name) ") || $0 == "  segdl \(name)" })
            }
            for code in ["Optional(", "Set(", "[\"", "segdl."] { #expect(!help.output.contains(code), "\(code)") }
            #expect(!help.output.contains(#/\(default:[^()]*\)\s*\(default:/#))
        }
    }

    @Test("The main help names every other command")
    func names() async throws {
        try await withCommand { command in
            let help = try await command.run("help", "all").output
            #expect(Self.commands.count > 7)
            for name in Self.commands where name != "get" {
                #expect(help.contains(try Regex("COMMAND --help[^.]*\\b\(name)\\b")), "\(name)")
            }
        }
    }
}
