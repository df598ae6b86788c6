import ArgumentParser
import Foundation
import SegmentedDownloadCore
import TestSupport

/// Makes every file system call fail in turn. The run completes or reports what failed, and the next one completes.
struct Errors: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Make every file system call fail in turn, and cut writes short.")

    @OptionGroup var options: LabOptions

    @Option(help: "Number of downloads whose writes are cut short at random.")
    var shortWrites = 60

    /// The injected errors; the message must contain the system's text for them.
    private static let errors: [(name: String, number: Int32)] = [
        ("EIO", EIO), ("ENOSPC", ENOSPC), ("EDQUOT", EDQUOT), ("EINTR", EINTR), ("EMFILE", EMFILE), ("EACCES", EACCES),
    ]

    /// The other scenarios differ in what is fetched, not in the calls made.
    private static let scenarios = [
        "fresh", "fresh-small", "fresh-tiny", "named", "paused", "complete", "complete-named", "overwrite", "restart",
        "restart-small",
        "no-length", "by-link",
    ]

    private struct Case: CustomStringConvertible, Sendable {
        var scenario: Scenario
        var injection: Injection
        var number: Int32

        var description: String { "\(self.scenario): \(self.injection)" }
    }

    func run() async throws {
        try await Lab.run(self.options) { lab in
            let report = Report("errors")
            if lab.strace == nil {
                print("errors: skipping the failing system calls: strace is not installed")
            } else {
                try await self.failCalls(lab, report)
            }
            try await ShortWrites(options: self.options, count: self.shortWrites).run(lab, report)
            try report.conclude(atLeast: "faults")
        }
    }

    private func failCalls(_ lab: Lab, _ report: Report) async throws {
        var cases: [Case] = []
        for scenario in Scenario.all where Self.scenarios.contains(scenario.name) {
            let points = try await Census.take(scenario, calls: Census.changing + Census.looking, in: lab)
            // Starts with another error at each point, so that a slice covers all errors.
            for (index, point) in points.enumerated() {
                for turn in Self.errors.indices {
                    let error = Self.errors[(index + turn) % Self.errors.count]
                    cases.append(
                        Case(scenario: scenario, injection: point.injection(.error(error.name)), number: error.number))
                }
            }
        }
        try await forEach(Array(self.options.chosen(cases).enumerated()), atOnce: self.options.jobs) { index, one in
            try await lab.withBench("error-\(index)") { bench in
                try await self.fail(one, bench, report)
            }
        }
    }

    private func fail(_ one: Case, _ bench: Bench, _ report: Report) async throws {
        try await bench.begin(one.scenario)
        let outcome = try await bench.run(one.scenario, one.injection)
        let trace = String(decoding: FileManager.default.contents(atPath: bench.trace) ?? Data(), as: UTF8.self)
        // Permanent faults are in the trace too.
        let wasInjected = trace.split(separator: "\n").contains {
            $0.contains("(INJECTED)") && $0.contains("\(one.injection.call)(")
        }
        guard wasInjected else { return report.count("runs that made fewer calls") }
        report.count("faults")
        report.count(outcome.status == 0 ? "overcome" : "told")
        var violations: [String] = []
        if outcome.status == 0 {
            let destination = bench.destination(one.scenario)
            if destination != .right { violations.append("exit 0, but the destination holds \(destination)") }
        } else {
            violations += self.violations(of: outcome, after: one.number)
            violations += bench.violationsAfterFailure(one.scenario)
        }
        var scenario = one.scenario
        // Without the attribute the file is right, but a later run cannot verify it by its record.
        if outcome.status == 0, one.injection.call == "fsetxattr" { scenario.isProvable = false }
        violations += try await bench.violationsAfterFinishing(scenario)
        for violation in violations {
            report.violation(
                "\(one): \(violation)", replay: "segdl-crash errors --short-writes 0 --only '\(one)'")
        }
    }

    /// Checks that a failure has one of the expected statuses, and a message that contains the system's error.
    private func violations(of outcome: Child.Outcome, after number: Int32) -> [String] {
        guard [3, 12, 13].contains(outcome.status) else { return ["it ended with \(outcome)"] }
        let words = String(cString: strerror(number))
        return outcome.errors.contains("segdl: error[") && outcome.errors.contains(words)
            ? [] : ["the message does not name \"\(words)\": \(outcome)"]
    }
}
