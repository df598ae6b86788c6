import ArgumentParser
import Dispatch
import Foundation
import Synchronization

/// Judges each mutation, with the fast judges first.
struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run tests and simulated worlds with each mutation, until one finds it.",
        discussion: "Mutations with a finding are skipped, unless other code was generated since.")

    @Option(help: "Mutations judged at once.") var workers = 2
    @Option(help: "Number of state-machine worlds.") var machineWorlds = 20_000
    @Option(help: "Number of worlds of the whole engine.") var engineWorlds = 2000
    @Option(
        parsing: .upToNextOption,
        help: "The judges: core-tests, machine, engine and other-tests, the tests of the library. (default: all)")
    var judges: [String] = []
    @Option(help: "Judge only these mutations, by number.") var only: [Int] = []
    @Option(help: "Judge only mutations whose file, function or text contains this.") var matching: String?
    @Option(name: .customLong("run-sample"), help: "Judge only this many, chosen as by generate.") var sample: Int?
    @Option(help: "Stop after this many minutes.") var minutesMax: Int?

    func run() throws {
        let workspace = Workspace()
        let mutations = Row.all(workspace)
        guard let last = mutations.last else { throw Problem("There are no mutations: generate them first.") }
        var judges = Judge.all(workspace, machineWorlds: self.machineWorlds, engineWorlds: self.engineWorlds)
        for name in self.judges where !judges.contains(where: { $0.name == name }) {
            throw Problem("There is no judge \(name); there are \(judges.map(\.name).joined(separator: ", ")).")
        }
        if !self.judges.isEmpty { judges.removeAll { !self.judges.contains($0.name) } }
        for index in judges.indices {
            try judges[index].learn(workspace, count: last.number)
            let seen = mutations.count { judges[index].seen.contains($0.number) }
            say("\(judges[index].name): \(Int(judges[index].seconds.rounded(.up))) s, evaluates \(seen) mutations")
        }
        let judged = Set(Finding.all(workspace).map(\.number))
        var chosen = mutations.filter { mutation in self.matching.map { mutation.key.contains($0) } ?? true }
        if let sample = self.sample { chosen = Sample(seed: 1).order(chosen, by: \.key).prefix(sample).map(\.self) }
        chosen.removeAll {
            self.only.isEmpty ? judged.contains($0.number) : !self.only.contains($0.number)
        }
        let left = chosen
        let end = self.minutesMax.map { Date().addingTimeInterval(Double($0) * 60) }
        let court = Court(workspace: workspace, judges: judges)
        DispatchQueue.concurrentPerform(iterations: self.workers) { worker in
            while end.map({ Date() < $0 }) ?? true, let mutation = court.next(of: left) {
                court.judge(mutation, worker: worker)
            }
        }
    }
}

/// The state that all workers share.
private final class Court: Sendable {
    private let workspace: Workspace
    private let judges: [Judge]
    private let count = Mutex(0)

    init(workspace: Workspace, judges: [Judge]) {
        self.workspace = workspace
        self.judges = judges
    }

    func next(of mutations: [Row]) -> Row? {
        self.count.withLock { count in
            guard count < mutations.count else { return nil }
            defer { count += 1 }
            return mutations[count]
        }
    }

    func judge(_ mutation: Row, worker: Int) {
        let start = Date()
        var finding = Finding(number: mutation.number, verdict: .unreached)
        for judge in self.judges where judge.seen.contains(mutation.number) {
            finding.verdict = .survived
            do {
                guard let how = try judge.judge(mutation.number, output: self.workspace.output(worker)) else {
                    continue
                }
                finding.verdict = .killed
                finding.judge = judge.name
                finding.how = how
            } catch {
                say("\(mutation.number): \(error)")
                return
            }
            break
        }
        finding.seconds = Date().timeIntervalSince(start)
        self.count.withLock { _ in
            finding.append(to: self.workspace)
            if finding.verdict != .killed { say("\(finding.verdict.rawValue)  \(mutation)") }
        }
    }
}
