import ArgumentParser
import Foundation

/// Runs segdl and its peers on the same work in turn, checks every file, and prints the figures.
@main
struct SegdlBenchmark: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segdl-benchmark",
        abstract: "Measure segdl and those of curl, aria2c, axel and wget2 that are installed.",
        discussion: """
            Scenarios:
            \(Scenario.all.map { "  \($0.name.padded(to: 18)) \($0.abstract)" }.joined(separator: "\n"))
            """
    )

    @Argument(help: ArgumentHelp("The scenarios to run. (default: all)", valueName: "scenario"))
    var names: [String] = []

    @Option(help: "Rounds that count; in each, every contestant runs once.")
    var rounds = 5

    @Option(help: ArgumentHelp("Run only contestants whose name contains one of these words.", valueName: "word"))
    var only: [String] = []

    @Option(help: "The command to test. (default: segdl beside this program)")
    var segdl: String?

    @Option(help: "The directory for temporary files.")
    var directory = NSTemporaryDirectory()

    @Option(help: "Write the figures of all runs to a file.")
    var json: String?

    @Option(help: "Draw a picture of every table into a directory.")
    var plots: String?

    func validate() throws {
        guard self.rounds > 0 else { throw ValidationError("--rounds is at least 1.") }
        for name in self.names where !Scenario.all.contains(where: { $0.name == name }) {
            throw ValidationError("There is no scenario '\(name)'.")
        }
    }

    func run() async throws {
        let lab = try Lab(directory: self.directory, segdl: self.segdl, rounds: self.rounds, only: self.only)
        defer { lab.remove() }
        let machine = Machine(lab)
        print(machine.description)
        var tables: [Table] = []
        for scenario in Scenario.all where self.names.isEmpty || self.names.contains(scenario.name) {
            if let lack = scenario.lack(lab) {
                print("\n\(scenario.name): left out: \(lack)")
                continue
            }
            for table in try await scenario.run(lab) {
                print("\n\(table.text)")
                fflush(nil)
                tables.append(table)
            }
        }
        if let json {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try encoder.encode(Results(machine: machine, tables: tables)).write(to: URL(fileURLWithPath: json))
        }
        if let plots {
            try FileManager.default.createDirectory(atPath: plots, withIntermediateDirectories: true)
            for table in tables {
                for (name, picture) in Plot.pictures(of: table) {
                    try picture.write(toFile: "\(plots)/\(name).svg", atomically: true, encoding: .utf8)
                }
            }
        }
        // A wrong file, or a failed run of segdl, fails the benchmark.
        let broken = tables.flatMap { table in
            table.rows.filter { $0.name.hasPrefix("segdl") }.flatMap { row in
                row.runs.compactMap(\.failure).map { "\(table.name), \(row.name): \($0)" }
            }
        }
        for line in broken { print("NOT AS IT SHOULD BE: \(line)") }
        if !broken.isEmpty { throw ExitCode(1) }
    }
}

/// The contents of the file of figures.
struct Results: Codable {
    var machine: Machine
    var tables: [Table]
}
