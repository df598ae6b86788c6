import ArgumentParser

/// Changes the production code in very many small ways, and has the tests and the simulated worlds find each.
@main
struct SegdlMutants: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segdl-mutants",
        abstract: "Tests the tests: compiles many mutations of the code into one program and judges each.",
        subcommands: [All.self, Generate.self, Run.self, Report.self], defaultSubcommand: All.self)
}

/// The three in a row.
struct All: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Generate, run and report.")

    @OptionGroup var generating: Generate
    @OptionGroup var running: Run
    @OptionGroup var reporting: Report

    func run() throws {
        try self.generating.run()
        try self.running.run()
        try self.reporting.run()
    }
}
