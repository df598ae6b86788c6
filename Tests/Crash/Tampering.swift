import ArgumentParser
import Foundation
import Origin
import SegmentedDownloadCore
import TestSupport

/// Damages what an interrupted download left, in every listed way; the runs after it end with the right file.
struct Tampering: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Cut, zero, flip and exchange part and manifest between runs.")

    @OptionGroup var options: LabOptions

    @Option(help: "Number of random places in each part.")
    var places = 60

    /// The interrupted downloads; the smaller one's manifest is damaged bit by bit.
    private static let unproven = "etag=none&last-modified=none"
    private static let subjects: [(scenario: Scenario, isFlipped: Bool)] = [
        (Scenario(name: "small", size: "2M", beginning: .paused, options: ["-s", "1"]), true),
        (Scenario(name: "large", beginning: .paused), false),
        (
            Scenario(
                name: "unproven", size: "3M", query: unproven, beginningQuery: unproven, beginning: .paused,
                isProvable: false), false
        ),
    ]

    func run() async throws {
        try await Lab.run(self.options) { lab in
            let report = Report("tampering")
            for (scenario, isFlipped) in Self.subjects {
                try await self.tamper(scenario, isFlipped: isFlipped, lab, report)
            }
            try await self.tamperWithFinished(lab, report)
            try report.conclude(atLeast: "states")
        }
    }

    private func tamper(_ scenario: Scenario, isFlipped: Bool, _ lab: Lab, _ report: Report) async throws {
        // One subject per worker: it is restored after every case, in its inode.
        let subjects = try await (0..<self.options.jobs).asyncMap {
            try await Subject(lab, scenario, name: "tampering-\(scenario)-\($0)")
        }
        try await forEach(Array(subjects.enumerated()), atOnce: self.options.jobs) { first, subject in
            // Each worker takes every n-th of its own damages: they are alike, but one manifest may have an additional
            // record.
            let specimen = subject.specimen
            var damages = specimen.manifestDamages() + specimen.partDamages(self.places, seed: self.options.seed)
            if isFlipped { damages += specimen.flips() }
            let chosen = self.options.chosen(damages)
            for index in stride(from: first, to: chosen.count, by: subjects.count) {
                try await self.try(chosen[index], on: subject, report)
            }
        }
    }

    private func `try`(_ damage: Damage, on subject: Subject, _ report: Report) async throws {
        try await subject.restore()
        try subject.inflict(damage)
        report.count("states")
        for violation in try await Self.violationsAfter(subject, report) {
            report.violation(
                "\(subject.scenario): \(damage): \(violation)",
                replay: "segdl-crash tampering --seed \(self.options.seed) --only '\(damage)'")
        }
    }

    /// Runs the command twice, then as the failure's message says: with other options, or after deletion of named files.
    private static func violationsAfter(
        _ subject: Subject, _ report: Report
    ) async throws -> [String] {
        let (bench, scenario) = (subject.bench, subject.scenario)
        let outcomes = ["repaired at once", "repaired by a second run", "repaired as the message says"]
        var more: [String] = []
        var last: Child.Outcome?
        for name in outcomes {
            if name == outcomes.last, let errors = last?.errors {
                more = Self.hint(in: errors)
                try subject.deleteFiles(namedBy: errors)
            }
            let outcome = try await bench.run(bench.command(scenario, more: more))
            let destination = bench.destination(scenario)
            last = outcome
            if outcome.status == 0 {
                report.count(name)
                let left = try FileManager.default.contentsOfDirectory(atPath: bench.files)
                return (destination == .right ? [] : ["exit 0, but the destination holds \(destination)"])
                    + (left == [Bench.fileName] ? [] : ["exit 0, but the directory holds \(left.sorted())"])
            }
            if outcome.status < 0 || outcome.status == 1 || outcome.isOverdue { return ["it ended with \(outcome)"] }
            if case .wrong(let offset) = destination {
                return ["it ended with \(outcome), and the destination exists and is wrong at \(offset)"]
            }
        }
        return ["no run completed: \(last.map { "\($0)" } ?? "")"]
    }

    /// The options that a failure's message suggests.
    private static func hint(in errors: String) -> [String] {
        for option in [["--on-change", "restart"], ["--continue", "no"], ["--if-exists", "overwrite"]]
        where errors.contains(option.joined(separator: " ")) {
            return option
        }
        return []
    }

    // MARK: Finished files

    /// An altered finished file is not accepted as the remote one.
    private func tamperWithFinished(_ lab: Lab, _ report: Report) async throws {
        var generator = SplitMix64(seed: self.options.seed)
        let scenario = Scenario(name: "finished", size: "1M", options: ["-s", "1"])
        let places = (0..<self.places).map { _ in Int.random(in: 0..<Int(scenario.length), using: &generator) }
        try await forEach(self.options.slice.of(places), atOnce: self.options.jobs) { place in
            try await lab.withBench("finished-\(place)") { bench in
                let replay = "segdl-crash tampering --seed \(self.options.seed), a finished file altered at \(place)"
                let first = try await bench.run(bench.command(scenario))
                guard first.status == 0 else { throw Bench.SetupFailure("a plain run ended with \(first)") }
                report.count("states")
                let path = bench.path(.destination)
                if place % 3 == 0 {
                    try Subject.resize(path, to: place)
                } else {
                    try Subject.flip(byte: place, bit: place % 8, of: path)
                }
                let second = try await bench.run(bench.command(scenario))
                if second.status != 12 { report.violation("an altered file: \(second)", replay: replay) }
                let third = try await bench.run(bench.command(scenario, more: Self.hint(in: second.errors)))
                guard third.status == 0, bench.destination(scenario) == .right else {
                    return report.violation("with --if-exists overwrite: \(third)", replay: replay)
                }
                report.count("repaired as the message says")
            }
        }
    }
}

extension Sequence {
    fileprivate func asyncMap<Answer>(_ body: (Element) async throws -> Answer) async throws -> [Answer] {
        var answers: [Answer] = []
        for element in self { answers.append(try await body(element)) }
        return answers
    }
}
