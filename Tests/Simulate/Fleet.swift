import ArgumentParser
import Foundation
import SegmentedDownloadCore
import Simulator
import Synchronization

extension FleetScenario.Limit: ExpressibleByArgument {}

/// Fetches one job with many tasks, each with the production's decisions, from an origin with limits.
struct Fleet: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run the tasks of a job against an origin with limits, and compare with the fluid optimum.")

    @Option(help: "Numbers of tasks, separated by commas.") var shards = "10,100,1000,10000"
    @Option(help: "Files of each task.") var files = 60
    @Option(help: "The length of a file in bytes.") var length: Int64 = 1 << 20
    @Option(help: "A limit of the origin; repeat it for several. Without it, all.") var limit: [FleetScenario.Limit] =
        []
    @Option(help: "The share of the nodes that die each minute. Without it, none and 0.05.") var deaths: Double?
    @Option(help: "The seed.") var seed: UInt64 = 1
    @Option(help: "Fleets at once.") var workers = 2
    @Option(help: "Print what happens to this task, from 0.") var trace: Int?
    @Flag(help: "Let each task decide as a process alone, without the rules for tasks of a job.") var alone = false
    @Flag(help: "Fail if a fleet exceeds the limits of this program.") var check = false

    /// What must hold with `--check`.
    private enum Bound {
        static let ratio = 1.15
        static let ratioWithDeaths = 1.5
        static let refusedPerEpisode = 2.0
        static let fairness = 0.95
    }

    func run() throws {
        let order = self.scenarios()
        print(Self.heading)
        let printed = Mutex((waiting: [Int: String](), next: 0, failed: 0))
        runSeeds(from: 0, count: UInt64(order.count), workers: self.workers) {
            true
        } body: { number in
            let clock = ContinuousClock()
            let begin = clock.now
            var simulation = FleetSimulation(order[Int(number)], seed: self.seed, tracedShard: self.trace)
            let report = simulation.run()
            let line = Self.line(order[Int(number)], report, took: (clock.now - begin).inSeconds)
            let complaints = report.violations + (self.check ? Self.complaints(order[Int(number)], report) : [])
            let text = (simulation.traceLines + [line] + complaints).joined(separator: "\n")
            printed.withLock { printed in
                printed.failed += complaints.isEmpty ? 0 : 1
                printed.waiting[Int(number)] = text
                while let text = printed.waiting.removeValue(forKey: printed.next) {
                    print(text)
                    printed.next += 1
                }
            }
        }
        if printed.withLock({ $0.failed }) > 0 { throw ExitCode.failure }
    }

    private func scenarios() -> [FleetScenario] {
        let sizes = self.shards.split(separator: ",").compactMap { Int($0) }
        var scenarios: [FleetScenario] = []
        for deaths in self.deaths.map({ [$0] }) ?? [0, 0.05] {
            for limit in self.limit.isEmpty ? FleetScenario.Limit.allCases : self.limit {
                for size in sizes {
                    var scenario = FleetScenario(limit, shards: size, files: self.files, length: self.length)
                    scenario.deaths = deaths
                    scenario.isAlone = self.alone
                    scenarios.append(scenario)
                }
            }
        }
        return scenarios
    }

    private static let heading =
        "limit              deaths  tasks    time / optimum  refused/episode /served  fairness halfway  given up  peak/s  took"

    private static func line(_ scenario: FleetScenario, _ report: FleetReport, took: Double) -> String {
        String(
            format: "%@%7.2f%7d%8.1f%10.3f%17.2f%8.2f%10.3f%8.3f%10d%8d%6.0f",
            scenario.limit.rawValue.padding(toLength: 18, withPad: " ", startingAt: 0), scenario.deaths,
            scenario.shards, report.time, report.ratio, report.refusedPerEpisode, report.refusedPerServed,
            report.fairness, report.fairnessHalfway, report.filesFailed, report.requestsPeak, took)
    }

    private static func complaints(_ scenario: FleetScenario, _ report: FleetReport) -> [String] {
        var complaints: [String] = []
        if report.filesFailed > 0 { complaints.append("  files were given up") }
        if report.ratio > (scenario.deaths > 0 ? Bound.ratioWithDeaths : Bound.ratio) {
            complaints.append("  too slow")
        }
        if report.refusedPerEpisode > Bound.refusedPerEpisode { complaints.append("  refused too often") }
        if report.fairness < Bound.fairness { complaints.append("  unfair") }
        return complaints
    }
}
