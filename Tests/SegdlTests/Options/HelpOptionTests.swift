import Foundation
import SegmentedDownload
import Testing

@testable import segdl

/// The version and the help texts.
@Suite("Options that explain")
struct HelpOptionTests {
    /// The commands other than the default one.
    private static let commands = SegdlCommand.subcommandNames.subtracting(["get", "help"]).sorted()

    @Test("The version is a line with the program's name, also after a subcommand")
    func version() async throws {
        try await withCommand { command in
            for arguments in [["--version"]] + Self.commands.map({ [$0, "--version"] }) {
                let outcome = try await command.run(arguments)
                #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(arguments): \(outcome)")
                #expect(outcome.output == "segdl \(SegmentedDownloadVersion.string)\n", "\(arguments)")
            }
        }
    }

    @Test("Version, help and completions are printed after other options, too")
    func afterOptions() async throws {
        try await withCommand { command in
            let version = try await command.run("-q", "--version")
            #expect(version.status == 0 && version.output == "segdl \(SegmentedDownloadVersion.string)\n")
            let help = try await command.run("-q", "--help")
            #expect(help.status == 0 && help.output.contains("USAGE: segdl [options] URL"))
            let script = try await command.run("-q", "--generate-completion-script", "bash")
            #expect(script.status == 0 && script.output.contains("complete -o filenames -F _segdl segdl"))
        }
    }

    @Test("With -v the version has what the program is made of", arguments: ["-v", "--verbose"])
    func detailedVersion(option: String) async throws {
        try await withCommand { command in
            let outcome = try await command.run("--version", option)
            #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome)")
            #expect(try await command.run(option, "--version").output == outcome.output)
            let lines = outcome.output.split(separator: "\n").map(String.init)
            #expect(lines.first == "segdl \(SegmentedDownloadVersion.string)")
            #expect(lines.allSatisfy { $0.count <= 80 && !$0.contains("\u{A0}") }, "\(lines)")
            let names = lines.dropFirst().compactMap { $0.hasPrefix(" ") ? nil : $0.split(separator: " ").first }
            #expect(names == ["commit", "compiler", "packages", "libraries"])
            for library in ["zlib", "libdeflate", "nettle", "expat", "sqlite"] {
                #expect(outcome.output.contains(try Regex("\(library) [0-9]+\\.[0-9]+")), "\(library)")
            }
        }
    }

    @Test("Help is one screen, and names the subcommands and topics", arguments: ["-h", "-help", "--help", "help"])
    func screen(option: String) async throws {
        try await withCommand { command in
            let outcome = try await command.run(option)
            #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome)")
            let lines = outcome.output.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(lines.count <= 32 && lines.allSatisfy { $0.count <= 80 }, "\(lines.count) lines")
            for word in Self.commands + HelpPage.topics { #expect(outcome.output.contains(word), "\(word)") }
        }
    }

    @Test("Each topic has a page with its options, and all pages together have every option")
    func topics() async throws {
        try await withCommand { command in
            var shown = ""
            for topic in HelpPage.topics {
                let page = try await command.run("--help", topic)
                #expect(page.status == 0 && page.errors.isEmpty && page.output.count > 100, "\(topic): \(page)")
                #expect(try await command.run("help", topic).output == page.output)
                shown += page.output
            }
            for option in try await CommandOutline(command).options where option.command == "get" {
                let isOwn = option.spellings.contains { ["--help", "--version"].contains($0) }
                #expect(isOwn || option.spellings.allSatisfy { shown.contains($0) }, "\(option)")
            }
            for code in ExitCode.allCases { #expect(shown.contains(" \(code.rawValue)  \(code.word)"), "\(code)") }
            let unknown = try await command.run("--help", "everything")
            #expect(unknown.status == 2 && unknown.errors.contains("transfer"), "\(unknown)")
        }
    }

    @Test("The article on the command line gives each exit status the word and meaning that the help gives it")
    func exitStatuses() throws {
        let path = JSONSchema.directory.appending(path: "CommandLine.md")
        let page = try String(contentsOf: path, encoding: .utf8)
        // The article has one row for all signals.
        for code in ExitCode.allCases where code.word != "signal" {
            #expect(page.contains("| \(code.rawValue) | `\(code.word)` | \(code.meaning) |\n"), "\(code)")
        }
    }

    @Test("The whole help explains every option, and how to write its values", arguments: ["--help", "help"])
    func help(option: String) async throws {
        try await withCommand { command in
            let outcome = try await command.run(option, "all")
            #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome)")
            for option in try await CommandOutline(command).options where option.command == "get" {
                #expect(option.spellings.allSatisfy { outcome.output.contains($0) }, "\(option)")
            }
            // Defaults are printed as text, not as Swift values. Lines may break anywhere.
            let words = outcome.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(words.contains("(default: http,https)") && !words.contains("Set(["))
        }
    }

    @Test("help NAME and NAME --help print the same, with the command's usage")
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
