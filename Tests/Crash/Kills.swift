import ArgumentParser
import Foundation
import Origin
import SegmentedDownloadCore
import TestSupport

/// Kills the command at every file system call in turn, and at random moments; the same command then completes.
struct Kills: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Kill the command at every file system call in turn, and at random moments.")

    @OptionGroup var options: LabOptions

    @Option(help: "Number of downloads killed at random moments.")
    var random = 100

    @Option(help: "Number of kills at every call: threads interleave differently each time.")
    var rounds = 2

    private struct Case: CustomStringConvertible, Sendable {
        var scenario: Scenario
        var injection: Injection
        var round: Int

        var description: String { "\(self.scenario): \(self.injection), round \(self.round)" }
    }

    func run() async throws {
        try await Lab.run(self.options) { lab in
            let report = Report("kills")
            if lab.strace == nil {
                print("kills: skipping the kills at system calls: strace is not installed")
            } else {
                try await self.killAtCalls(lab, report)
            }
            try await self.killAtRandom(lab, report)
            try report.conclude(atLeast: "kills")
        }
    }

    // MARK: At system calls

    private func killAtCalls(_ lab: Lab, _ report: Report) async throws {
        var cases: [Case] = []
        for scenario in Scenario.all {
            let points = try await Census.take(scenario, calls: Census.changing, in: lab)
            for round in 0..<self.rounds {
                cases += points.map { Case(scenario: scenario, injection: $0.injection(.kill), round: round) }
            }
        }
        let chosen = self.options.chosen(cases)
        try await forEach(Array(chosen.enumerated()), atOnce: self.options.jobs) { index, one in
            try await lab.withBench("kill-\(index)") { bench in
                try await self.kill(one, bench, report)
            }
        }
    }

    private func kill(_ one: Case, _ bench: Bench, _ report: Report) async throws {
        try await bench.begin(one.scenario)
        let outcome = try await bench.run(one.scenario, one.injection)
        let replay = "segdl-crash kills --random 0 --only '\(one)'"
        switch outcome.status {
        case _ where outcome.wasKilled: report.count("kills")
        case 0: report.count("runs that made fewer calls")
        default: report.violation("\(one) ended with \(outcome)", replay: replay)
        }
        var violations = outcome.status == 0 ? [] : bench.violationsAfterFailure(one.scenario)
        violations += try await bench.violationsAfterFinishing(one.scenario)
        for violation in violations { report.violation("\(one): \(violation)", replay: replay) }
    }

    // MARK: At random moments

    /// The bytes that a killed segment may have to fetch again.
    private static let lossMax: Int64 = 1 << 20
    private static let segments = 4

    private func killAtRandom(_ lab: Lab, _ report: Report) async throws {
        let seeds = (0..<self.random).map { self.options.seed &* 1_000_003 &+ UInt64($0) }
        try await forEach(self.options.slice.of(seeds), atOnce: self.options.jobs) { seed in
            try await lab.withBench("random-\(seed)") { bench in
                try await self.killAtRandom(seed, bench, report)
            }
        }
    }

    /// Kills a download several times, each time after a random number of further bytes, and then lets it complete.
    private func killAtRandom(_ seed: UInt64, _ bench: Bench, _ report: Report) async throws {
        var generator = SplitMix64(seed: seed)
        // Slow enough that all but a few milliseconds' worth of what was sent is received.
        let scenario = Scenario(
            name: "random", size: "16M", query: "rate=8M", options: ["-s", "\(Self.segments)", "--continue", "auto"])
        let path = "/\(scenario.size)/\(bench.name)/"
        let log = bench.lab.origin.log
        let replay = "segdl-crash kills --rounds 0 --seed \(self.options.seed) --random \(self.random) (seed \(seed))"
        var kills = 0
        for _ in 0..<4 {
            let target = log.snapshot(path: path).bytesSent + Int64.random(in: 1...(6 << 20), using: &generator)
            let outcome = try await bench.run(bench.command(scenario)) { child in
                await log.waitForBytes(sent: target, path: path)
                child.signal(SIGKILL)
            }
            if outcome.status == 0 { break }
            guard outcome.wasKilled else {
                report.violation("a run to be killed ended with \(outcome)", replay: replay)
                break
            }
            kills += 1
            for violation in bench.violationsAfterFailure(scenario) { report.violation(violation, replay: replay) }
        }
        for violation in try await bench.violationsAfterFinishing(scenario) {
            report.violation(violation, replay: replay)
        }
        let twice = log.snapshot(path: path).bytesSent - scenario.length
        report.count("kills", kills)
        report.count("kills at random moments", kills)
        report.count("KiB fetched twice after them", Int(twice >> 10))
        if kills > 0 { report.peak("KiB at most per kill and download", Int(twice >> 10) / kills) }
        guard twice <= Int64(kills * Self.segments) * Self.lossMax else {
            report.violation("\(twice) bytes were fetched twice after \(kills) kills", replay: replay)
            return
        }
    }
}
