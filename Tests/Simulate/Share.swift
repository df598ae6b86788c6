import ArgumentParser
import Simulator
import Synchronization

/// Checks that downloads get their shares for any weights and after any change.
struct Share: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a range of seeds in which downloads share connections and bandwidth by weight.")

    @Option(help: "The first seed.") var first: UInt64 = 0
    @Option(help: "How many seeds.") var count: UInt64 = 1000
    @Option(help: "Worlds at once.") var workers = 2

    func run() throws {
        let totals = Mutex((worlds: 0, failed: 0, fairness: 1.0))
        runSeeds(from: self.first, count: self.count, workers: self.workers) {
            totals.withLock { $0.failed < 5 }
        } body: { seed in
            var trial = SharingTrial(seed: seed)
            let violations = trial.run()
            totals.withLock { totals in
                totals.worlds += 1
                totals.failed += violations.isEmpty ? 0 : 1
                totals.fairness = min(totals.fairness, trial.fairness)
            }
            for violation in violations { print("seed \(seed): \(violation)") }
        }
        let all = totals.withLock { $0 }
        print("\(all.worlds) worlds, lowest index \(all.fairness): \(all.failed) failed")
        if all.failed > 0 { throw ExitCode.failure }
    }
}
