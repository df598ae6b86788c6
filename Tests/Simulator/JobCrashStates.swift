package import SegmentedDownload
package import SegmentedDownloadCore

/// Cuts the power before every disk operation of some runs of a job, and reads the records that each cut may leave.
///
/// No state may contain an entry that was not finished, or lack one whose run had ended. The next run must begin.
package struct JobCrashStates {
    package private(set) var moments = 0
    package private(set) var states = 0
    package private(set) var violations: [String] = []

    /// A moment before a disk operation: what the disk may become, and which entries it may and must contain.
    private struct Moment {
        var image: DiskImage
        var finished: Set<EntryFingerprint>
        var durable: Set<EntryFingerprint>
    }

    /// What the runs have done so far. One thread uses it.
    private final class Ledger: @unchecked Sendable {
        /// What the last run found when it began.
        var found: FinishedEntries?
        var finished: Set<EntryFingerprint> = []
        var durable: Set<EntryFingerprint> = []
        var moments: [Moment] = []
        var problem: String?
        var isOver = false
    }

    private static let settings = JobSettings(directory: "/out")
    /// A stream: what a power cut leaves of the records does not depend on files.
    private static let file = EntryFile(path: nil)

    private let seed: UInt64
    private let statesMax: Int
    private let entries: [EntryFingerprint]
    /// The tasks that run, one after the other.
    private let shards: [Shard]

    /// - Parameter statesMax: The number of states after which the run stops.
    package init(seed: UInt64, statesMax: Int) {
        var generator = SplitMix64(seed: seed)
        self.seed = seed
        self.statesMax = statesMax
        self.entries = (0..<Int.random(in: 1...24, using: &generator)).map { _ in
            EntryFingerprint(high: generator.next(), share: UInt32(truncatingIfNeeded: generator.next()))
        }
        // Several runs of one task, so that its files are joined, and a change of the number of tasks.
        let count = Int.random(in: 1...3, using: &generator)
        let runs = Int.random(in: 1...7, using: &generator)
        self.shards = (0..<runs).compactMap { run in
            let tasks = run == runs - 1 ? Int.random(in: 1...3, using: &generator) : count
            return Shard(number: 1 + run % 2 % tasks, of: tasks)
        }
    }

    /// Runs the tasks, and looks at every state that a power cut may leave.
    package mutating func run() {
        let clock = SimulatedClock()
        let disk = SimulatedDisk(seed: self.seed, clock: clock)
        let ledger = Ledger()
        disk.onOperation = { _ in
            ledger.moments.append(
                Moment(image: disk.image(), finished: ledger.finished, durable: ledger.durable))
        }
        self.perform(self.shards, on: disk, clock, ledger, seed: self.seed)
        disk.onOperation = { _ in }
        if let problem = ledger.problem { self.violations.append("\(problem); undisturbed, seed \(self.seed)") }
        for (number, moment) in ledger.moments.enumerated() {
            guard self.violations.isEmpty, self.states < self.statesMax else { return }
            self.moments += 1
            var (states, violation) = (self.states, String?.none)
            moment.image.states { settled in
                states += 1
                violation = self.flaw(settled, moment)
                return violation == nil && states < self.statesMax
            }
            self.states = states
            if let violation {
                self.violations.append(
                    "\(violation); before operation \(number + 1), state \(states), seed \(self.seed)")
            }
        }
    }

    private func flaw(_ settled: DiskImage.Settled, _ moment: Moment) -> String? {
        let clock = SimulatedClock()
        let disk = SimulatedDisk(settled, seed: self.seed, clock: clock)
        let ledger = Ledger()
        guard let shard = Shard(number: 1, of: 1) else { return "no task" }
        self.perform([shard], on: disk, clock, ledger, seed: self.seed &+ 1)
        if let problem = ledger.problem { return "the next run fails: \(problem)" }
        guard let found = ledger.found else { return "the next run does not begin" }
        for entry in self.entries {
            let isFound = found.contains(Self.file.record(of: entry, nil))
            if isFound, !moment.finished.contains(entry) { return "an entry counts that was not finished" }
            if !isFound, moment.durable.contains(entry) { return "a recorded entry is lost" }
        }
        return nil
    }

    /// Runs tasks one after the other. Each finishes the entries that are left.
    private func perform(
        _ shards: [Shard], on disk: SimulatedDisk, _ clock: SimulatedClock, _ ledger: Ledger, seed: UInt64
    ) {
        let executor = SeededExecutor(seed: seed)
        let entries = self.entries
        _ = Task(executorPreference: executor) {
            var generator = SplitMix64(seed: seed)
            do {
                for shard in shards {
                    let run = try await ShardRun(
                        of: shard, in: JobDirectory("job", storage: disk.storage()), Self.settings,
                        machine: ("here", 1, generator.next()), clock: clock, waiting: { _ in })
                    ledger.found = run.finished
                    var ended = ledger.durable
                    for entry in entries where shard.owns(entry) && !run.isFinished(entry, Self.file) {
                        // Most runs are cut short.
                        guard Int.random(in: 0..<4, using: &generator) != 0 else { break }
                        if Int.random(in: 0..<8, using: &generator) == 0 {
                            try run.fail("http://host/\(entry.high)\n")
                        } else {
                            ledger.finished.insert(entry)
                            try run.finish(entry, Self.file, .simulated(at: "-", length: 0))
                            ended.insert(entry)
                        }
                    }
                    try await run.end(.stopped, isComplete: false, now: 0)
                    ledger.durable = ended
                }
            } catch {
                ledger.problem = "\(error)"
            }
            ledger.isOver = true
        }
        while !ledger.isOver {
            guard executor.runOne() || clock.advance() else {
                ledger.problem = "the run waits for nothing"
                return
            }
        }
    }
}

extension ShardRun {
    /// Whether an earlier run has finished an entry, and its file is as it was then.
    package func isFinished(_ entry: EntryFingerprint, _ file: EntryFile) -> Bool {
        self.finishedFile(entry, file) != nil
    }
}
