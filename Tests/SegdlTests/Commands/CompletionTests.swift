import Foundation
import Origin
import Testing

/// The completions, offered by the shells themselves.
@Suite("Completion")
struct CompletionTests {
    struct Case: Sendable {
        /// The line up to the cursor.
        let line: String
        /// What is offered, or a part of it.
        let offered: [String]
        /// What is not.
        var others: [String] = []
    }

    static let cases = [
        Case(line: "segdl --checks", offered: ["--checksum", "--checksum-from"], others: ["--cacert"]),
        Case(line: "segdl --rang", offered: ["--range"]), Case(line: "segdl --list-f", offered: ["--list-from"]),
        Case(
            line: "segdl --if-exists ", offered: ["verify", "update", "newer", "skip", "rename", "overwrite", "fail"]),
        Case(line: "segdl --progress m", offered: ["map"], others: ["log"]),
        Case(line: "segdl --metered ", offered: ["pause", "allow"]),
        Case(line: "segdl re", offered: ["resume", "retry", "remove"], others: ["status"]),
        Case(line: "segdl resume --ur", offered: ["--url"]), Case(line: "segdl -o fi", offered: ["file.list"]),
        Case(line: "segdl -q -i fi", offered: ["file.list"]), Case(line: "segdl resume fi", offered: ["file.list"]),
        Case(line: "segdl verify --rep", offered: ["--repair"]), Case(line: "segdl list --sta", offered: ["--state"]),
    ]

    /// A directory with a file, and with segdl in a directory of the search path.
    private static func withShell(_ body: (Segdl, [String: String]) async throws -> Void) async throws {
        try await withCommand { command in
            try FileManager.default.createDirectory(
                atPath: command.path("bin"), withIntermediateDirectories: false)
            try FileManager.default.createSymbolicLink(
                atPath: command.path("bin/segdl"), withDestinationPath: Segdl.path)
            try command.write("", to: "file.list")
            try await body(command, ["PATH": "\(command.path("bin")):/usr/bin:/bin"])
        }
    }

    /// Calls bash's completion function as bash does, with the words of `$line`.
    private static let bash = """
        source <("$0" --generate-completion-script bash)
        read -ra COMP_WORDS <<<"$line"
        [[ $line == *' ' ]] && COMP_WORDS+=('')
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line}
        $(complete -p segdl | sed 's/.*-F \\([^ ]*\\).*/\\1/') segdl "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
        printf '%s\\n' "${COMPREPLY[@]}"
        """

    @Test("bash completes options, their values, files and subcommands", arguments: Self.cases)
    func bash(example: Case) async throws {
        try await Self.withShell { command, environment in
            let outcome = try await command.run(
                [], shell: Self.bash, environment: environment.merging(["line": example.line]) { $1 })
            let words = outcome.output.split(whereSeparator: \.isNewline).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            #expect(outcome.status == 0 && Set(example.offered).isSubset(of: words), "\(example.line): \(outcome)")
            #expect(Set(example.others).isDisjoint(with: words), "\(example.line): \(outcome)")
        }
    }

    @Test(
        "fish completes options, their values, files and subcommands",
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/fish"), "fish is not installed"),
        arguments: Self.cases)
    func fish(example: Case) async throws {
        try await Self.withShell { command, environment in
            let script = #""$0" --generate-completion-script fish >fish; fish -c 'source fish; complete -C $line'"#
            // fish creates directories for its configuration.
            let variables = [
                "line": example.line, "HOME": command.directory, "XDG_CONFIG_HOME": command.path("config"),
            ]
            let outcome = try await command.run(
                [], shell: script, environment: environment.merging(variables) { $1 })
            let words = outcome.output.split(whereSeparator: \.isNewline).map { line in
                line.prefix { $0 != "\t" }.trimmingCharacters(in: .whitespaces)
            }
            #expect(Set(example.offered).isSubset(of: words), "\(example.line): \(outcome)")
            #expect(Set(example.others).isDisjoint(with: words), "\(example.line): \(outcome)")
        }
    }

    /// Types each line and a tab into a zsh on a pseudo-terminal, and waits for the completed word.
    private static let zsh = """
        mkdir functions; "$0" --generate-completion-script zsh >functions/_segdl
        exec zsh -f -c '
            zmodload zsh/zpty
            zpty z zsh -f -i
            zpty -w z "PS1=; fpath=(functions \\$fpath); autoload -U compinit; compinit -u -D; print READ\\"\\"Y"
            zpty -r z out "*READY*"
            while (( $# )); do
                zpty -w -n z "$1"$'"'\\t'"'
                zpty -r z out "*$2*" && print -- "$2"
                zpty -w -n z $'"'\\C-u'"'
                shift 2
            done
            zpty -d z' zsh "$@"
        """

    @Test(
        "zsh completes options, their values, files and subcommands",
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/zsh"), "zsh is not installed"))
    func zsh() async throws {
        try await Self.withShell { command, environment in
            let typed = [
                ("segdl --checksum-f", "--checksum-from"), ("segdl --list-f", "--list-from"),
                ("segdl --if-exists upd", "update"), ("segdl --progress ma", "map"), ("segdl resu", "resume"),
                ("segdl -o fil", "file.list"), ("segdl resume --ur", "--url"), ("segdl verify --rep", "--repair"),
            ]
            let outcome = try await command.run(
                typed.flatMap { [$0.0, $0.1] }, shell: Self.zsh, environment: environment)
            #expect(outcome.output.split(separator: "\n").map(String.init) == typed.map(\.1), "\(outcome)")
        }
    }

    @Test("The IDs of the service's downloads are completed, and no service is started for that")
    func downloads() async throws {
        try await Self.withShell { command, environment in
            let none = ["XDG_RUNTIME_DIR": command.path("none")]
            #expect(try await Self.downloads(command, environment.merging(none) { $1 }).isEmpty)
            try await withOrigin { origin in
                let outcome = try await Service.run(command) { service in
                    let ids = try await service.add("--paused", origin.url("/1M/a.bin"), origin.url("/1M/b.bin"))
                    let offered = try await Self.downloads(command, environment.merging(service.environment) { $1 })
                    #expect(ids.count == 2 && Set(offered) == Set(ids))
                }
                #expect(outcome.status == 0, "\(outcome)")
            }
        }
    }

    /// What bash offers for a download's ID.
    private static func downloads(_ command: Segdl, _ environment: [String: String]) async throws -> [String] {
        let line = ["line": "segdl pause "]
        let outcome = try await command.run([], shell: Self.bash, environment: environment.merging(line) { $1 })
        return outcome.output.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty }
    }
}
