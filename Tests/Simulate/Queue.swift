import ArgumentParser
import Simulator
import Synchronization

/// Runs the background service's queue with crashes of the process and of the machine between any two steps.
struct Queue: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a range of seeds of the service's queue, with kills and power cuts between any two steps.")

    @Option(help: "The first seed.") var first: UInt64 = 0
    @Option(help: "How many seeds.") var count: UInt64 = 1000
    @Option(help: "Worlds at once.") var workers = 2
    @Flag(help: "Print every command and request.") var trace = false

    func run() throws {
        let totals = Mutex((worlds: 0, runs: 0, crashes: 0, commands: 0, transactions: 0, failed: 0))
        runSeeds(from: self.first, count: self.count, workers: self.workers) {
            totals.withLock { $0.failed < 5 }
        } body: { seed in
            var simulation = QueueSimulation(seed: seed, isLogged: self.trace)
            let report = simulation.run()
            totals.withLock { totals in
                totals.worlds += 1
                totals.runs += report.runs
                totals.crashes += report.crashes
                totals.commands += report.commands
                totals.transactions += report.transactions
                totals.failed += report.violations.isEmpty ? 0 : 1
            }
            for line in report.log { print(line) }
            for violation in report.violations {
                print("seed \(seed): \(violation)\n  replay: segdl-simulate queue --first \(seed) --count 1 --trace")
            }
        }
        let all = totals.withLock { $0 }
        print(
            "\(all.worlds) worlds, \(all.runs) runs, \(all.crashes) crashes, \(all.commands) commands, "
                + "\(all.transactions) transactions: \(all.failed) failed")
        if all.failed > 0 { throw ExitCode.failure }
    }
}
