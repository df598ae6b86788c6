import ArgumentParser

/// Makes many small changes to the production code, and checks that tests or simulated worlds detect each.
@main
struct SegdlMutants: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segdl-mutants",
        abstract: "Test the tests: compile many mutations of the code into one program and judge each.",
        subcommands: [All.self, Generate.self, Run.self, Report.self, Listed.self], defaultSubcommand: All.self)
}

/// The three subcommands in sequence.
struct All: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Generate, run and report in sequence.")

    @OptionGroup var generating: Generate
    @OptionGroup var running: Run
    @OptionGroup var reporting: Report

    func run() throws {
        try self.generating.run()
        try self.running.run()
        try self.reporting.run()
    }
}
