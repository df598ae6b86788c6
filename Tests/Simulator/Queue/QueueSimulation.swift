import SegmentedDownload
import SegmentedDownloadCore
package import SegmentedDownloadService

/// One world with the background service's queue: the production queue and engine, with a simulated clock, network, disk
/// and database, and a user who adds files and sends commands.
///
/// First faults occur, over several runs of the service, most of which end by a kill or a power cut between any two
/// steps. Then the faults stop, and everything must complete. ``QueueLedger`` checks what the database contains.
package struct QueueSimulation {
    package struct Report: Hashable, Sendable {
        package let seed: UInt64
        package fileprivate(set) var violations: [String] = []
        /// The same for the same seed.
        package fileprivate(set) var trace: UInt64 = 0
        package fileprivate(set) var runs = 0
        package fileprivate(set) var crashes = 0
        package fileprivate(set) var commands = 0
        package fileprivate(set) var transactions = 0
        package fileprivate(set) var jobs = 0
        package fileprivate(set) var log: [String] = []
    }

    /// The directory of the files.
    static let directory = "/q"
    /// The faults of a world. A file that changes, and mirrors that differ, are the engine's concern: see ``Simulation``.
    private static let faults: Faults = [
        .refusal, .reset, .stall, .truncation, .unevenRates, .errors, .lies, .noRanges, .redirects, .shortWrites,
        .noSpace,
        .diskErrors, .slowDisk, .kill, .powerLoss,
    ]
    /// 4: enough runs for a crash in the recovery from a crash.
    private static let faultyRunsMax = 4
    /// 6: how often a failed entry is tried again without faults. Two attempts can end with an error from before.
    private static let calmAttemptsMax = 6
    /// A week of simulated time for a run.
    private static let patience = Duration.seconds(7 * 24 * 3600)
    /// Jobs in one run; exceeding it reveals an endless loop.
    private static let jobsMax = 4_000_000

    private var generator: SplitMix64
    private let faults: Faults
    private let clock = SimulatedClock()
    private let executor: SeededExecutor
    private let disk: SimulatedDisk
    private let network: SimulatedNetwork
    private let database: SimulatedQueueDatabase
    private let ledger: QueueLedger
    private let user: QueueUser
    private var configuration = DownloadConfiguration()
    private var report: Report
    private let isLogged: Bool

    package init(seed: UInt64, isLogged: Bool = false) {
        var generator = SplitMix64(seed: seed)
        self.isLogged = isLogged
        self.report = Report(seed: seed)
        self.executor = SeededExecutor(seed: generator.next())
        // A world with all faults at once never gets far: each has some of them.
        var mine = Self.faults
        for (_, fault) in Faults.names where Int.random(in: 0..<3, using: &generator) == 0 { mine.remove(fault) }
        self.faults = mine
        self.disk = SimulatedDisk(seed: generator.next(), clock: self.clock)
        let count = Int.random(in: 1...4, using: &generator)
        let origins = (0..<count).map { Simulation.origin($0, mine, &generator) }
        self.network = SimulatedNetwork(seed: generator.next(), clock: self.clock, origins: origins)
        self.database = SimulatedQueueDatabase(seed: generator.next(), clock: self.clock)
        self.ledger = QueueLedger(self.database, clock: self.clock)
        self.user = QueueUser(self.ledger, clock: self.clock, fileCount: count, seed: generator.next())
        self.generator = generator
        self.configure()
    }

    private mutating func configure() {
        let faultiness = [1, 1, 3, 10].randomElement(using: &self.generator) ?? 1
        (self.network.faults, self.disk.faults, self.database.faults) = (self.faults, self.faults, self.faults)
        (self.network.faultiness, self.disk.faultiness) = (faultiness, faultiness)
        self.database.faultiness = [0, 10, 100].randomElement(using: &self.generator) ?? 0
        self.network.latency = .milliseconds(Int.random(in: 1...200, using: &self.generator))
        self.network.rate = 1 << Int.random(in: 16...24, using: &self.generator)
        self.network.totalRate = self.network.rate << Int.random(in: 0...5, using: &self.generator)
        self.network.chunkMax = 1 << Int.random(in: 12...18, using: &self.generator)
        if self.faults.contains(.errors) { self.network.served = Int.random(in: 1...12, using: &self.generator) }
        self.configuration.limits.connections = Int.random(in: 1...12, using: &self.generator)
        self.configuration.limits.downloads = Int.random(in: 1...3, using: &self.generator)
        self.configuration.history.listsFinished = false
    }

    /// Runs the world to its end.
    package mutating func run() -> Report {
        self.disk.onName = { [ledger, network] name, inode in Self.check(name, inode, ledger, network) }
        for _ in 0..<Int.random(in: 1...Self.faultyRunsMax, using: &self.generator) where self.isRight {
            self.runOnce(isCalm: false)
        }
        self.calmDown()
        if self.isRight { self.runOnce(isCalm: true) }
        if self.isRight { self.ledger.checkEnd(self.disk, self.network) }
        self.report.violations = self.ledger.violations
        self.report.commands = self.user.commands
        self.report.transactions = self.database.transactions
        self.report.trace = self.disk.trace ^ self.network.trace
        return self.report
    }

    private var isRight: Bool { self.ledger.violations.isEmpty }

    private func calmDown() {
        (self.network.faults, self.disk.faults, self.database.faults) = ([], [], [])
        self.network.served = .max
        // A rate and a piece length at which no connection looks stalled.
        self.network.chunkMax = min(self.network.chunkMax, 1 << 14)
        self.network.rate = max(self.network.rate, 1 << 16)
        self.network.totalRate = max(self.network.totalRate, 1 << 20)
        for index in self.network.origins.indices { self.network.origins[index].tokenLifetime = .seconds(3600) }
    }

    private mutating func runOnce(isCalm: Bool) {
        self.report.runs += 1
        let outcome = Outcome(isLogged: self.isLogged)
        if self.isLogged {
            self.user.log = { outcome.log.append($0) }
            self.network.log = { outcome.log.append($0) }
            let clock = self.clock
            self.database.log = { outcome.log.append("\(clock.now) \($0)") }
        }
        let crashAt = isCalm ? Int.max : self.drawMoment()
        let isPower = Bool.random(using: &self.generator)
        let crash: Faults = isPower ? .powerLoss : .kill
        self.user.isCrashed = false
        let queue = self.makeQueue()
        let (user, clock, ledger) = (self.user, self.clock, self.ledger)
        let scripts = (0..<Int.random(in: 1...3, using: &self.generator)).map { _ in
            isCalm ? 0 : Int.random(in: 0...6, using: &self.generator)
        }
        let rest = Duration.milliseconds(Int.random(in: 0...60_000, using: &self.generator))
        let task = Task(executorPreference: self.executor) {
            defer { outcome.isOver = true }
            async let ending: Void = {
                do throws(DownloadError) {
                    try await queue.run()
                } catch {
                    outcome.endings.append(error.code.rawValue)
                }
            }()
            await withTaskGroup(of: Void.self) { tasks in
                for count in scripts { tasks.addTask { await user.act(on: queue, count) } }
            }
            if isCalm {
                for left in await user.finish(queue, attempts: Self.calmAttemptsMax) {
                    ledger.violate("without faults, an entry does not end: \(left)")
                }
            } else {
                // As long as the service runs before SIGTERM.
                try? await clock.sleep(until: clock.now + rest)
            }
            queue.shutdown()
            await ending
        }
        self.drive(task, outcome, crashAt: self.faults.contains(crash) ? crashAt : .max, isPower: isPower)
        if self.isLogged { self.report.log += ["run \(self.report.runs), \(outcome.endings):"] + outcome.log }
        if isCalm, !outcome.endings.isEmpty { self.ledger.violate("the last run ends with \(outcome.endings)") }
        if outcome.endings.contains("internal") { self.ledger.violate("a run ends with an internal error") }
        // The process ends, however it does.
        self.network.hangUp()
        self.disk.killProcess()
        self.database.killProcess()
        self.user.isCrashed = true
        while self.isRight, self.executor.runOne() || self.clock.advance() {}
        if self.isRight { self.ledger.check() }
    }

    private mutating func makeQueue() -> DownloadQueue {
        let client = DownloadClient(
            configuration: self.configuration, transport: self.network, storage: self.disk.storage(),
            clock: self.clock, seed: self.generator.next())
        let storage = self.database.open()
        let directory = FilePath(Self.directory)
        let service = DownloadService(self.configuration, directory: directory) { try await $0(client) }
        return DownloadQueue(
            service, limit: self.configuration.limits.downloads, directory: directory, clock: self.clock
        ) { () async throws(DownloadError) in
            try await storage.opening()
        }
    }

    /// Runs the jobs of a run until it is over, and crashes it at one of them.
    private mutating func drive(_ task: Task<Void, Never>, _ outcome: Outcome, crashAt: Int, isPower: Bool) {
        let deadline = self.clock.now + Self.patience
        var jobs = 0
        while !outcome.isOver, self.isRight {
            if self.executor.runOne() {
                jobs += 1
            } else if !self.clock.advance() {
                self.ledger.violate("no job and no timer is left, and the run is not over")
            }
            if jobs == crashAt {
                outcome.log.append("\(self.clock.now) \(isPower ? "the power is cut" : "the process is killed")")
                self.report.crashes += 1
                self.network.hangUp()
                self.user.isCrashed = true
                if isPower {
                    self.disk.cutPower()
                    self.database.cutPower()
                    self.ledger.hadPowerCut = true
                    self.ledger.check()
                } else {
                    self.disk.killProcess()
                    self.database.killProcess()
                }
                task.cancel()
            }
            if jobs > Self.jobsMax || self.clock.now > deadline {
                self.ledger.violate("the run does not end: \(jobs) jobs, \(self.clock.now)")
            }
        }
        self.report.jobs += jobs
    }

    /// Runs `body` with a function that opens a database, in simulated time.
    package static func withDatabase(
        _ body: @escaping @Sendable (@escaping @Sendable () async throws -> QueueOpening) async throws -> Void
    ) throws {
        let clock = SimulatedClock()
        let executor = SeededExecutor(seed: 0)
        let database = SimulatedQueueDatabase(seed: 0, clock: clock)
        let outcome = Outcome(isLogged: false)
        Task(executorPreference: executor) {
            defer { outcome.isOver = true }
            do {
                try await body {
                    database.killProcess()
                    return try await database.open().opening()
                }
            } catch {
                outcome.error = error
            }
        }
        while !outcome.isOver, executor.runOne() || clock.advance() {}
        if let error = outcome.error { throw error }
    }

    /// Draws the number's magnitude first, so that crashes come early as often as late.
    private mutating func drawMoment() -> Int {
        Int.random(in: 1...(1 << Int.random(in: 4...14, using: &self.generator)), using: &self.generator)
    }

    /// Checks that a file with its final name is one of the origins' that it may be.
    private static func check(
        _ name: String, _ inode: SimulatedDisk.Inode, _ ledger: QueueLedger, _ network: SimulatedNetwork
    ) {
        guard let files = ledger.files(at: name) else { return }
        let versions = files.flatMap { network.versions(of: $0) }
        if !versions.contains(where: { $0.bytes == inode.bytes }) {
            ledger.violate("\(name) gets its final name with wrong bytes")
        }
    }
}
