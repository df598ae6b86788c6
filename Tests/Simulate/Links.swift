import ArgumentParser
import Foundation
import Simulator
import Synchronization

/// Compares the engine's own choice of connections with the best there is, over random paths.
struct Links: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fetch a file each over a range of random paths, and compare with a downloader that knows each path.")

    @Option(help: "The first seed.") var first: UInt64 = 0
    @Option(help: "How many seeds.") var count: UInt64 = 500
    @Option(help: "Worlds at once.") var workers = 2
    @Option(help: "Say of so many what they were like, the worst first.") var worst = 0
    @Option(help: "What the middle one may take, as a multiple of the best.") var medianMax = 1.10
    @Option(help: "What nineteen of twenty may take, as a multiple of the best.") var tailMax = 1.25
    @Option(help: "What may come twice, as a part of any file.") var duplicatesMax = 0.02
    @Option(help: "What may be on its way to connections that are closed, as a part of all files.") var abandonedMax =
        0.02

    @Flag(help: "Say everything that happens.") var trace = false

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
                        "seed %d: %.2f times (%.1f of %.1f s), %.1f MB, %.1f %% twice, %.1f %% abandoned, %d connections, %d refused: ",
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
                format: "%d paths: %.3f times the best at the median, %.3f at the 95th percentile; "
                    + "%.2f %% came twice at most, %.2f %% were abandoned on average",
                sorted.count, median, tail, 100 * duplicates, 100 * abandoned))
        guard failed.isEmpty, median <= self.medianMax, tail <= self.tailMax, duplicates <= self.duplicatesMax,
            abandoned <= self.abandonedMax
        else { throw ExitCode.failure }
    }
}
