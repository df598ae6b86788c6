import ArgumentParser

/// Crash tests of the real command on the real disk: kills, failing calls, damaged files and power cuts.
///
/// Whatever happens to a run, the runs after it end with the right file; a violation is printed with the command to replay it.
@main
struct SegdlCrash: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segdl-crash",
        abstract: "Stops the real command at every file system call, and in worse ways, and has it go on.",
        subcommands: [Kills.self, Errors.self, Tampering.self, Power.self]
    )
}
