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
    @Option(help: "A limit of the origin, or a fault; repeat it for several. Without it, all limits.") var limit:
        [FleetScenario.Limit] =
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
        /// The time until the last good file is complete, as a multiple of that of a process alone, and seconds added.
        static let fault = (ratio: 2.0, seconds: 15.0)
    }

    func validate() throws {
        guard self.sizes.count == self.shards.split(separator: ",").count, self.sizes.allSatisfy({ $0 > 0 }),
            !self.sizes.isEmpty
        else { throw ValidationError("--shards is a list of numbers above 0, such as 10,100") }
        guard self.files > 0, self.length > 0, self.workers > 0 else {
            throw ValidationError("--files, --length and --workers are above 0")
        }
    }

    private var sizes: [Int] { self.shards.split(separator: ",").compactMap { Int($0) } }

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
            var lines = [Self.line(order[Int(number)], report, took: (clock.now - begin).inSeconds)]
            var complaints = report.violations
            if order[Int(number)].limit.isFault {
                var alone = order[Int(number)]
                alone.isAlone = true
                var simulation = FleetSimulation(alone, seed: self.seed)
                let other = simulation.run()
                lines.append(
                    String(
                        format: "  the last good file after %.1f s, and after %.1f s without the rules for tasks",
                        report.timeCompleted, other.timeCompleted))
                if self.check { complaints += Self.complaints(order[Int(number)], report, alone: other) }
            } else if self.check {
                complaints += Self.complaints(order[Int(number)], report)
            }
            let text = (simulation.traceLines + lines + complaints).joined(separator: "\n")
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
        var scenarios: [FleetScenario] = []
        for deaths in self.deaths.map({ [$0] }) ?? [0, 0.05] {
            let limits = FleetScenario.Limit.allCases.filter { !$0.isFault }
            for limit in self.limit.isEmpty ? limits : self.limit {
                for size in self.sizes {
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

    private static func complaints(
        _ scenario: FleetScenario, _ report: FleetReport, alone: FleetReport
    ) -> [String] {
        var complaints: [String] = []
        if report.filesFailed != scenario.shards * scenario.limit.filesBad {
            complaints.append("  other files were given up than those that are never served")
        }
        if report.timeCompleted > Bound.fault.ratio * alone.timeCompleted + Bound.fault.seconds {
            complaints.append("  good files waited for a fault")
        }
        return complaints
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
