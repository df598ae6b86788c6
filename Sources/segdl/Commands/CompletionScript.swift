import ArgumentParser

/// The scripts with which shells complete command lines: `segdl --generate-completion-script SHELL`.
///
/// The parser's own script for a command with a default subcommand lacks the options of that subcommand. So the script is
/// made for a command that has both.
struct CompletionScript: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: SegdlCommand.configuration.commandName,
        abstract: SegdlCommand.configuration.abstract,
        version: SegdlCommand.configuration.version,
        subcommands: SegdlCommand.configuration.subcommands.filter { $0 != GetCommand.self })

    // The operands are left out: the parser offers either them or subcommands.
    @OptionGroup var input: InputOptions
    @OptionGroup var destination: DestinationOptions
    @OptionGroup var transfer: TransferOptions
    @OptionGroup var limits: LimitOptions
    @OptionGroup var labels: LabelOptions
    @OptionGroup var identity: IdentityOptions
    @OptionGroup var network: NetworkOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var hooks: HookOptions

    /// The parser's option that asks for a script.
    static let option = "--generate-completion-script"

    /// - Returns: The script; nil if the arguments ask for something else, or for another shell.
    static func text(for arguments: [String]) -> String? {
        guard let first = arguments.first, first.hasPrefix(Self.option) else { return nil }
        let name =
            first.hasPrefix("\(Self.option)=")
            ? String(first.dropFirst(Self.option.count + 1)) : arguments.dropFirst().first
        return name.flatMap { CompletionShell(rawValue: $0) }.map { self.completionScript(for: $0) }
    }
}

extension CompletionKind {
    /// The downloads of the background service.
    static var downloadIDs: CompletionKind {
        .shellCommand(#"segdl list --no-autostart --json 2>/dev/null | sed -n 's/.*"id":"\([^"]*\)".*/\1/p'"#)
    }
}
