import ArgumentParser
import Simulator
import Synchronization

/// Runs many simulated worlds, or replays one.
@main
struct Simulate: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segdl-simulate",
        abstract: "Run the engine against simulated networks, origins and disks.",
        subcommands: [
            Run.self, Machine.self, Queue.self, Replay.self, Explore.self, Crashes.self, Share.self, Links.self,
            Scale.self, Fleet.self,
        ],
        defaultSubcommand: Run.self)
}

extension Faults: ExpressibleByArgument {
    public init?(argument: String) { self.init(argument) }
    public var defaultValueDescription: String { self.description }
}

struct Run: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Run a range of seeds.")

    @Option(help: "The first seed.") var first: UInt64 = 0
    @Option(help: "How many seeds.") var count: UInt64 = 1000
    @Option(help: "Worlds at once.") var workers = 2
    @Option(help: "Faults to inject: names separated by commas, all or none.") var faults = Faults.all
    @Option(help: "Stop after this many violations.") var failuresMax = 5

    func run() throws {
        let totals = Mutex(Totals())
        runSeeds(from: self.first, count: self.count, workers: self.workers) {
            totals.withLock { $0.failed < self.failuresMax }
        } body: { seed in
            guard var simulation = try? Simulation(seed: seed, faults: self.faults) else { return }
            let report = simulation.run()
            totals.withLock { $0.add(report) }
            for violation in report.violations {
                print("seed \(seed): \(violation)\n  replay: \(report.replay)")
            }
        }
        let all = totals.withLock { $0 }
        print(
            "\(all.worlds) worlds, \(all.runs) runs, \(all.crashes) crashes, \(all.operations) disk operations, "
                + "\(all.jobs) jobs: \(all.failed) failed")
        if all.failed > 0 { throw ExitCode.failure }
    }

    private struct Totals {
        var worlds = 0
        var failed = 0
        var runs = 0
        var crashes = 0
        var operations = 0
        var jobs = 0

        mutating func add(_ report: Simulation.Report) {
            self.worlds += 1
            self.failed += report.violations.isEmpty ? 0 : 1
            self.runs += report.runs
            self.crashes += report.crashes
            self.operations += report.operations
            self.jobs += report.jobs
        }
    }
}

struct Replay: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Replay one seed, and print what happens.")

    @Option(help: "The seed.") var seed: UInt64
    @Option(help: "The faults of the run to replay.") var faults = Faults.all

    func run() throws {
        var simulation = try Simulation(seed: self.seed, faults: self.faults, isLogged: true)
        print("seed \(self.seed), with \(simulation.faults)")
        let report = simulation.run()
        print(
            "\(report.runs) runs, \(report.crashes) crashes, \(report.operations) disk operations, \(report.jobs) "
                + "jobs, trace \(String(report.trace, radix: 16))")
        for line in report.log { print(line) }
        print("endings: \(report.endings.joined(separator: ", "))")
        for violation in report.violations { print("violation: \(violation)") }
        if !report.violations.isEmpty { throw ExitCode.failure }
    }
}

struct Explore: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Explore every order of events for one file of three segments on two connections.")

    @Option(help: "The number of events that may fail.") var faults = 1
    @Option(help: "Stop after this many states.") var statesMax = 20_000_000

    func run() throws {
        for resumes in [false, true] {
            let exploration = Exploration(
                of: SmallWorld(faults: self.faults, resumes: resumes), statesMax: self.statesMax)
            print(
                "\(resumes ? "resumed" : "fresh"), \(self.faults) faults: \(exploration.states) states, "
                    + "\(exploration.ends) ends, \(exploration.isComplete ? "all of them" : "not all")")
            if let (what, moves) = exploration.violation {
                for move in moves { print("  \(move)") }
                print("violation: \(what)")
                throw ExitCode.failure
            }
        }
    }
}

struct Machine: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run a range of seeds through the state machine alone, which is a thousand times faster.")

    @Option(help: "The first seed.") var first: UInt64 = 0
    @Option(help: "How many seeds.") var count: UInt64 = 10_000
    @Option(help: "Worlds at once.") var workers = 2
    @Flag(help: "Print every event and action.") var trace = false

    func run() throws {
        let totals = Mutex((worlds: 0, events: 0, failed: 0))
        runSeeds(from: self.first, count: self.count, workers: self.workers) {
            totals.withLock { $0.failed < 5 }
        } body: { seed in
            var world = MachineWorld(seed: seed)
            world.isTracing = self.trace
            let violations = world.run()
            for line in world.trace { print(line) }
            totals.withLock { totals in
                totals.worlds += 1
                totals.events += world.handled
                totals.failed += violations.isEmpty ? 0 : 1
            }
            for violation in violations { print("seed \(seed): \(violation)") }
        }
        let all = totals.withLock { $0 }
        print("\(all.worlds) worlds, \(all.events) events: \(all.failed) failed")
        if all.failed > 0 { throw ExitCode.failure }
    }
}
