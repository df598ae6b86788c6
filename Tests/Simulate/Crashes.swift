import ArgumentParser
import Simulator
import Synchronization

struct Crashes: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "crash-states",
        abstract: "Cut the power before every disk operation, and resume from every state that this may leave.")

    private struct Totals {
        var runs = 0
        var moments = 0
        var states = 0
        var failed = 0
    }

    @Option(help: "The first seed.") var first: UInt64 = 0
    @Option(help: "The number of states to check.") var count = 10_000
    @Option(help: "The largest number of states of one seed (5000, with --one-file 500).") var each: Int?
    @Option(help: "Seeds at once.") var workers = 2
    @Flag(help: "Only files that stay in memory until they are complete.") var short = false
    @Flag(help: "Downloads without syncs; the power is cut after them.") var unsynced = false
    @Flag(help: "The records of jobs instead of downloads.") var jobs = false
    @Flag(help: "The tasks of one file instead of downloads.") var oneFile = false
    @Option(help: "With --one-file, only this state of the first seed, as a violation names it.") var state: String?

    func validate() throws {
        guard !self.jobs || !self.oneFile else { throw ValidationError("--jobs and --one-file exclude each other") }
        guard !self.unsynced || !self.jobs && !self.oneFile else {
            throw ValidationError("--unsynced is for downloads")
        }
        guard self.state == nil || self.oneFile else { throw ValidationError("--state needs --one-file") }
    }

    func run() throws {
        if let state { return try self.replay(state) }
        let each = self.each ?? (self.oneFile ? OneFileCrashStates.statesMaxDefault : 5000)
        let totals = Mutex(Totals())
        var seed = self.first
        // Each seed has its number of states before it runs, so that the same command tries the same states. What seeds
        // lack that have fewer, the next ones have.
        while case let left = self.count - totals.withLock(\.states), left > 0, totals.withLock(\.failed) < 5 {
            let seeds = UInt64((left - 1) / each + 1)
            let first = seed
            runSeeds(from: first, count: seeds, workers: self.workers) {
                totals.withLock { $0.failed < 5 }
            } body: { seed in
                let found = self.run(seed, statesMax: min(each, left - Int(seed - first) * each))
                totals.withLock { totals in
                    totals.runs += 1
                    totals.moments += found.moments
                    totals.states += found.states
                    totals.failed += found.violations.isEmpty ? 0 : 1
                }
                for violation in found.violations { print(violation) }
            }
            seed += seeds
        }
        let all = totals.withLock { $0 }
        print(
            "\(all.runs) \(self.jobs ? "jobs" : self.oneFile ? "shared files" : "downloads"), \(all.moments) moments, "
                + "\(all.states) states after a power cut: \(all.failed) failed")
        if all.failed > 0 { throw ExitCode.failure }
    }

    private func run(_ seed: UInt64, statesMax: Int) -> (moments: Int, states: Int, violations: [String]) {
        if self.jobs {
            var crashes = JobCrashStates(seed: seed, statesMax: statesMax)
            crashes.run()
            return (crashes.moments, crashes.states, crashes.violations)
        }
        if self.oneFile {
            var crashes = OneFileCrashStates(seed: seed, statesMax: statesMax)
            crashes.run()
            return (crashes.moments, crashes.states, crashes.violations)
        }
        guard !self.short || CrashStates.usesMemory(seed: seed),
            var crashes = try? CrashStates(seed: seed, statesMax: statesMax, isSynced: !self.unsynced)
        else { return (0, 0, []) }
        crashes.run()
        return (crashes.moments, crashes.states, crashes.violations)
    }

    private func replay(_ text: String) throws {
        guard let name = OneFileCrashStates.StateName(text) else {
            throw ValidationError("--state must be three numbers, such as 12.3.4")
        }
        var crashes = OneFileCrashStates(seed: self.first, statesMax: 1)
        crashes.replay(name)
        for line in crashes.log { print(line) }
        for violation in crashes.violations { print("violation: \(violation)") }
        if !crashes.violations.isEmpty { throw ExitCode.failure }
    }
}
