import ArgumentParser

/// Crash tests of the real command and the background service on the real disk: kills, failing calls, damaged files and
/// power cuts.
///
/// After any fault, the runs that follow end with the right file. A violation is printed with the command to replay it.
@main
struct SegdlCrash: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segdl-crash",
        abstract:
            "Interrupts the real command at every file system call, and in worse ways, and checks that it resumes.",
        subcommands: [
            Kills.self, Errors.self, Tampering.self, Power.self, ServiceKills.self, ServicePower.self,
        ]
    )
}
