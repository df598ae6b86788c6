import ArgumentParser
import Foundation
import Simulator
import Synchronization

/// Compares the engine's choice of connections with the optimum, over random paths.
struct Links: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fetch one file over each of many random paths, and compare the time with the optimum for that path.")

    @Option(help: "The first seed.") var first: UInt64 = 0
    @Option(help: "How many seeds.") var count: UInt64 = 500
    @Option(help: "Worlds at once.") var workers = 2
    @Option(help: "Print this many paths, the worst first.") var worst = 0
    @Option(help: "The largest allowed median, as a multiple of the optimum.") var medianMax = 1.10
    @Option(help: "The largest allowed 95th percentile, as a multiple of the optimum.") var tailMax = 1.25
    @Option(help: "The largest share of any file that may be received twice.") var duplicatesMax = 0.02
    @Option(help: "The largest average share of a file in flight to closed connections.") var abandonedMax =
        0.02

    @Flag(help: "Print every event and action.") var trace = false

    func run() throws {
        let trials = Mutex<[(seed: UInt64, trial: LinkTrial)]>([])
        runSeeds(from: self.first, count: self.count, workers: self.workers) {
            true
        } body: { seed in
            let trial = LinkTrial(seed: seed, isTracing: self.trace)
            trials.withLock { $0.append((seed, trial)) }
        }
        let sorted = trials.withLock { $0 }.sorted { ($0.trial.ratio, $0.seed) < ($1.trial.ratio, $1.seed) }
        for (seed, trial) in sorted.suffix(self.worst).reversed() {
            print(
                String(
                    format:
                        "seed %d: %.2f times (%.1f of %.1f s), %.1f MB, %.1f %% twice, %.1f %% abandoned, "
                        + "%d connections, %d refused: ",
                    seed, trial.ratio, trial.time, trial.optimum, Double(trial.length) / 1e6, 100 * trial.duplicates,
                    100 * trial.abandoned, trial.connectionsPeak, trial.refusals) + trial.model.description)
        }
        for line in sorted.flatMap(\.trial.trace) { print(line) }
        let failed = sorted.filter { !$0.trial.violations.isEmpty }
        for (seed, trial) in failed { print("seed \(seed): \(trial.violations)") }
        let median = sorted[sorted.count / 2].trial.ratio
        let tail = sorted[min(sorted.count * 19 / 20, sorted.count - 1)].trial.ratio
        let duplicates = sorted.map(\.trial.duplicates).max() ?? 0
        let abandoned = sorted.map(\.trial.abandoned).reduce(0, +) / Double(sorted.count)
        print(
            String(
                format: "%d paths: %.3f times the optimum at the median, %.3f at the 95th percentile; "
                    + "%.2f %% received twice at most, %.2f %% abandoned on average",
                sorted.count, median, tail, 100 * duplicates, 100 * abandoned))
        guard failed.isEmpty, median <= self.medianMax, tail <= self.tailMax, duplicates <= self.duplicatesMax,
            abandoned <= self.abandonedMax
        else { throw ExitCode.failure }
    }
}
