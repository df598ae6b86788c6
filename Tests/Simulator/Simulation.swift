import SegmentedDownload
import SegmentedDownloadCore

/// One world: the production engine on a seeded executor, with a simulated clock, network, origins and disk.
///
/// Everything follows from the seed. First faults occur, over several runs of the same command, some of which end by a
/// kill or a power cut. Then the faults stop, and the command must complete. ``Checker`` checks every step.
package struct Simulation {
    package struct Report: Hashable, Sendable {
        package let seed: UInt64
        package let faults: Faults
        package fileprivate(set) var violations: [String] = []
        /// The same for the same seed, to the byte of the manifest.
        package fileprivate(set) var trace: UInt64 = 0
        package fileprivate(set) var jobs = 0
        package fileprivate(set) var runs = 0
        package fileprivate(set) var crashes = 0
        package fileprivate(set) var operations = 0
        package fileprivate(set) var endings: [String] = []
        /// The events, one per line, if requested.
        package fileprivate(set) var log: [String] = []

        /// The command that runs this seed again.
        package var replay: String {
            ".build/release/segdl-simulate replay --seed \(self.seed) --faults \(self.faults)"
        }
    }

    /// How a run is interrupted.
    private enum Crash { case kill, power }

    /// 3: enough runs for a crash in a resume of a resume.
    private static let faultyRunsMax = 3
    /// Runs that a user starts at most after the faults stop: one finds the change, one starts over, and two are spare.
    private static let calmRunsMax = 4
    /// A day of simulated time for a run: thirty times the longest legal wait.
    private static let patience = Duration.seconds(24 * 3600)
    /// Jobs in one run; exceeding it reveals an endless loop.
    private static let jobsMax = 4_000_000

    package let seed: UInt64
    package let faults: Faults
    private var generator: SplitMix64
    /// Generators of their own, so that their decisions change nothing else in a world.
    private var memoryGenerator: SplitMix64
    private var readingGenerator: SplitMix64
    private var identityGenerator: SplitMix64
    var statementsGenerator: SplitMix64
    /// The files of which a user stated something that stays with the part.
    var hasDemanded: Set<Int> = []
    private let clock = SimulatedClock()
    private let executor: SeededExecutor
    let disk: SimulatedDisk
    let network: SimulatedNetwork
    let checker: Checker
    private var stranger: Stranger
    var requests: [DownloadRequest] = []
    private var configuration = DownloadConfiguration()
    private var report: Report
    private let isLogged: Bool
    /// Whether short files stay in memory until they are complete.
    private let usesMemory: Bool

    /// - Parameter usesMemory: Whether short files stay in memory until they are complete; `nil` to draw it.
    package init(
        seed: UInt64, faults: Faults = .all, isLogged: Bool = false, usesMemory: Bool? = nil
    ) throws {
        self.seed = seed
        // Drawn apart, so that older seeds keep their other decisions.
        var shortGenerator = SplitMix64(seed: seed ^ 0x7368_6F72_74)
        let drawn = Bool.random(using: &shortGenerator)
        self.usesMemory = usesMemory ?? drawn
        self.isLogged = isLogged
        var generator = SplitMix64(seed: seed)
        self.executor = SeededExecutor(seed: generator.next())
        // A world with all faults at once never gets far: each has some of them.
        var mine = faults
        for (_, fault) in Faults.names where Int.random(in: 0..<3, using: &generator) == 0 { mine.remove(fault) }
        // Drawn apart, so that older seeds keep their other decisions.
        var identityGenerator = SplitMix64(seed: seed ^ 0x6964_656E_7469_7479)
        if Int.random(in: 0..<3, using: &identityGenerator) != 0 { mine.remove(.identity) }
        var overwritingGenerator = SplitMix64(seed: seed ^ 0x6F76_6572_7772_6974)
        // An origin whose answers cannot be believed cannot confirm that a file did not change.
        if !mine.isDisjoint(with: [.lies, .noRanges]) || Bool.random(using: &overwritingGenerator) {
            mine.remove(.overwriting)
        }
        var statementsGenerator = SplitMix64(seed: seed ^ 0x7374_6174_656D)
        if Int.random(in: 0..<3, using: &statementsGenerator) != 0 { mine.remove(.statements) }
        self.faults = mine
        self.disk = SimulatedDisk(seed: generator.next(), clock: self.clock)
        self.disk.hasUnnamedFiles = Int.random(in: 0..<4, using: &shortGenerator) != 0
        var origins: [SimulatedOrigin] = []
        for number in 0..<[1, 1, 1, 2, 3][Int.random(in: 0..<5, using: &generator)] {
            origins.append(Self.origin(number, mine, &generator))
            Self.confuse(&origins[number], mine, &identityGenerator)
        }
        self.network = SimulatedNetwork(seed: generator.next(), clock: self.clock, origins: origins)
        if Int.random(in: 0..<3, using: &generator) == 0 {
            self.network.others = origins.map { Self.others($0, mine, &generator) }
        }
        if mine.contains(.identity), self.network.others.isEmpty {
            self.network.twins = Set(origins.indices.filter { _ in Bool.random(using: &identityGenerator) })
        }
        self.identityGenerator = identityGenerator
        Self.makeState(self.network, mine, &statementsGenerator)
        self.disk.hasWholeSeconds = mine.contains(.statements) && Bool.random(using: &statementsGenerator)
        self.statementsGenerator = statementsGenerator
        self.report = Report(seed: seed, faults: faults)
        self.memoryGenerator = SplitMix64(seed: seed ^ 0x6D65_6D6F_7279)
        self.readingGenerator = SplitMix64(seed: seed ^ 0x7265_6164_696E_67)
        self.generator = generator
        self.checker = Checker(disk: self.disk, network: self.network)
        self.checker.ledger.isForgetful =
            !mine.isDisjoint(with: [.noSpace, .diskErrors, .powerLoss]) || mine.contains(.differingMirrors)
        self.checker.mayDiffer = mine.contains(.statements)
        self.stranger = Stranger(disk: self.disk, network: self.network)
        try self.configure()
    }

    // MARK: The world

    /// At times has the next run request another file with the same length and tag, at the same destination.
    private mutating func redrawTwins() throws {
        for file in self.network.twins.sorted()
        where !self.network.origins[file].hasVariants && Int.random(in: 0..<3, using: &self.identityGenerator) == 0 {
            let isTwin = Bool.random(using: &self.identityGenerator)
            let url = "http://origin/file\(file)" + (isTwin ? "/twin" : "")
            self.requests[file].source = try SourceURL(url)
            self.checker.expectsTwin[file] = isTwin
        }
    }

    /// Has another user plant files in the directory in some runs.
    private mutating func haveStrangerPlant() {
        guard self.faults.contains(.identity) else { return }
        for file in self.requests.indices where Int.random(in: 0..<6, using: &self.identityGenerator) == 0 {
            self.stranger.plant(for: file, using: &self.identityGenerator)
        }
        let plants = self.stranger.plants
        self.checker.isPlanted = { inode in plants.contains { $0.inode === inode } }
    }

    private mutating func configure() throws {
        self.network.faults = self.faults
        self.disk.faults = self.faults
        self.network.faultiness = [1, 1, 3, 10].randomElement(using: &self.generator) ?? 1
        self.disk.faultiness = [1, 1, 5, 20].randomElement(using: &self.generator) ?? 1
        self.network.latency = .milliseconds(Int.random(in: 1...200, using: &self.generator))
        self.network.rate = 1 << Int.random(in: 14...24, using: &self.generator)
        self.network.totalRate = self.network.rate << Int.random(in: 0...5, using: &self.generator)
        self.network.chunkMax = 1 << Int.random(in: 10...18, using: &self.generator)
        if self.faults.contains(.errors) { self.network.served = Int.random(in: 1...12, using: &self.generator) }
        if self.faults.contains(.noSpace), Int.random(in: 0..<3, using: &self.generator) == 0 {
            self.disk.capacity = Int.random(in: 0...(1 << 22), using: &self.generator)
        }
        self.configuration.limits.connections = Int.random(in: 1...12, using: &self.generator)
        self.configuration.limits.connectionsPerHost = Int.random(in: 1...12, using: &self.generator)
        self.configuration.limits.downloads = Int.random(in: 1...3, using: &self.generator)
        self.configuration.limits.drawShortDownloads()
        if Int.random(in: 0..<4, using: &self.generator) == 0 {
            self.configuration.limits.bytesPerSecond = 1 << Int64.random(in: 16...23, using: &self.generator)
        }
        self.configuration.limits.memory = self.drawMemory()
        // Pieces too long to fit all at once.
        if self.configuration.limits.memory != nil { self.network.chunkMax = 1 << 18 }
        for number in self.network.origins.indices {
            var request = DownloadRequest(
                try SourceURL("http://origin/file\(number)"), to: .file(FilePath("file\(number)")))
            if !self.network.others.isEmpty {
                request.mirrors = try self.network.others[number].indices.map {
                    try SourceURL("http://other\($0)/file\(number)")
                }
            }
            let count = Int.random(in: 0...8, using: &self.generator)
            request.segments = count == 0 ? .automatic : .exactly(count)
            request.splitLengthMinimum = 1 << Int64.random(in: 8...20, using: &self.generator)
            request.onChange = Bool.random(using: &self.generator) ? .fail : .restart
            request.stallTimeout = .seconds(5)
            request.headTimeout = .seconds(4)
            request.allocates = Bool.random(using: &self.generator)
            request.priority = Double.random(in: 0.01...1, using: &self.generator)
            self.haveRead(&request)
            request.options.part = self.network.parts[number]
            self.requests.append(request)
            self.checker.segments.append(count == 0 ? nil : count)
        }
    }

    /// In some worlds files are read while they are fetched.
    private mutating func haveRead(_ request: inout DownloadRequest) {
        guard Int.random(in: 0..<3, using: &self.readingGenerator) == 0 else { return }
        request.computedDigests =
            [[.sha256], [.md5], [.sha1, .sha512]].randomElement(using: &self.readingGenerator) ?? []
        request.windowLength = 1 << Int64.random(in: 12...21, using: &self.readingGenerator)
    }

    // MARK: Running

    /// Runs the world to its end.
    package mutating func run() -> Report {
        let faultyRuns = self.faults.isEmpty ? 0 : Int.random(in: 1...Self.faultyRunsMax, using: &self.generator)
        for _ in 0..<faultyRuns where self.checker.violations.isEmpty { self.runOnce(isCalm: false) }
        self.calmDown()
        if self.faults.contains(.change), !self.faults.contains(.noRanges), !self.faults.contains(.lies) {
            for file in self.network.origins.indices { self.network.replaceSilently(file) }
        }
        for _ in 0..<Self.calmRunsMax where self.checker.violations.isEmpty {
            self.runOnce(isCalm: true)
            if self.checker.isDone { break }
            // Changed files are downloaded anew, and so are those that are not as they were stated to be, as the error messages
            // suggest.
            for index in self.requests.indices {
                self.requests[index].onChange = .restart
                let isRejected =
                    self.checker.endings.indices.contains(index) && self.checker.endings[index] == "integrity"
                self.requests[index].continuation = isRejected ? .no : .auto
            }
        }
        if self.checker.violations.isEmpty {
            self.checker.checkEnd(wasFaultless: self.faults.isEmpty, endings: self.report.endings)
        }
        self.report.violations = self.checker.violations
        self.report.operations = self.disk.operations
        self.report.trace = self.disk.trace ^ self.network.trace ^ self.checker.digest
        return self.report
    }

    private mutating func calmDown() {
        self.network.faults = []
        self.disk.faults = []
        self.disk.capacity = .max
        self.network.served = .max
        // A rate and a piece length at which no connection looks stalled.
        self.network.chunkMax = min(self.network.chunkMax, 1 << 14)
        self.network.rate = max(self.network.rate, 1 << 16)
        self.network.totalRate = max(self.network.totalRate, 1 << 20)
        for index in self.network.origins.indices {
            self.network.origins[index].tokenLifetime = .seconds(3600)
            self.network.origins[index].digests?.wrong = 0
            self.network.origins[index].digests?.damaged = 0
        }
    }

    /// At times has the next run request another number of connections.
    private mutating func redrawSegments() {
        guard Int.random(in: 0..<3, using: &self.generator) == 0 else { return }
        for index in self.requests.indices {
            let count = Int.random(in: 0...4, using: &self.generator)
            self.requests[index].segments = count == 0 ? .automatic : .exactly(count)
            self.checker.segments[index] = count == 0 ? nil : count
        }
    }

    private mutating func runOnce(isCalm: Bool) {
        self.report.runs += 1
        self.checker.begin()
        if self.report.runs > 1 {
            self.redrawSegments()
            if !isCalm { try? self.redrawTwins() }
            if !isCalm { self.haveFilesEdited() }
        }
        if !isCalm { self.redrawVariants() }
        self.redrawDemands(isCalm: isCalm)
        if !isCalm { self.haveStrangerPlant() }
        let crash = isCalm ? nil : self.drawCrash()
        let crashAt = crash == nil ? Int.max : self.drawMoment()
        let outcome = Outcome(isLogged: self.isLogged)
        if self.isLogged { self.network.log = { outcome.log.append($0) } }
        self.checker.hold(to: self.configuration.limits)
        let session = Session(
            client: DownloadClient(
                configuration: self.configuration, transport: self.network, storage: self.disk.storage(),
                clock: self.clock, seed: self.generator.next(), memory: self.usesMemory ? PartMemory() : nil),
            requests: self.requests, clock: self.clock,
            pauses: !isCalm && self.faults.contains(.user) ? self.drawPauses() : [],
            changes: !isCalm && self.faults.contains(.user) ? self.drawChanges() : [], checker: self.checker)
        let task = Task(executorPreference: self.executor) { await session.run(outcome) }
        let deadline = self.clock.now + Self.patience
        var jobs = 0
        while !outcome.isOver, self.checker.violations.isEmpty {
            if self.executor.runOne() {
                jobs += 1
                self.checker.check()
            } else if !self.clock.advance() {
                self.checker.violate("no job and no timer is left, and the run is not over")
            }
            if jobs == crashAt, let crash {
                self.perform(crash)
                task.cancel()
            }
            if jobs > Self.jobsMax || self.clock.now > deadline {
                self.checker.violate("the run does not end: \(jobs) jobs, \(self.clock.now)")
            }
        }
        self.report.jobs += jobs
        self.report.endings += outcome.endings
        self.report.log += ["run \(self.report.runs):"] + outcome.log
        self.checker.end(wasKilled: jobs >= crashAt)
        for violation in self.checker.ledger.end(jobs < crashAt ? outcome.endings : nil) {
            self.checker.violate(violation)
        }
        if jobs < crashAt { self.checker.note(outcome.endings, isCalm: isCalm) }
        let demands = self.checker.ledger.demands
        let violations = self.stranger.leave(jobs < crashAt ? outcome.endings : nil) { file in
            demands[file]?.digest != nil || demands[file]?.pieces != nil
        }
        for violation in violations { self.checker.violate(violation) }
        // Connections and files close when the process ends, however it ends.
        self.network.hangUp()
        self.disk.killProcess()
        while self.checker.violations.isEmpty, self.executor.runOne() || self.clock.advance() {}
    }

    private mutating func drawCrash() -> Crash? {
        var choices: [Crash] = []
        if self.faults.contains(.kill) { choices.append(.kill) }
        if self.faults.contains(.powerLoss) { choices.append(.power) }
        return choices.randomElement(using: &self.generator)
    }

    /// Draws the number's magnitude first, so that crashes come early as often as late.
    private mutating func drawMoment() -> Int {
        Int.random(in: 1...(1 << Int.random(in: 4...14, using: &self.generator)), using: &self.generator)
    }

    private mutating func perform(_ crash: Crash) {
        self.report.crashes += 1
        self.network.hangUp()
        switch crash {
        case .kill: self.disk.killProcess()
        case .power: self.disk.cutPower()
        }
        self.checker.checkAfterCrash()
    }

    /// The changes of limits, and the delay before each.
    private mutating func drawChanges() -> [(after: Duration, limits: DownloadLimits)] {
        (0..<Int.random(in: 0...4, using: &self.generator)).map { _ in
            var limits = DownloadLimits()
            limits.connections = Int.random(in: 1...12, using: &self.generator)
            limits.connectionsPerHost = Int.random(in: 1...12, using: &self.generator)
            limits.downloads = Int.random(in: 1...3, using: &self.generator)
            limits.drawShortDownloads()
            if Bool.random(using: &self.generator) {
                limits.bytesPerSecond = 1 << Int64.random(in: 14...23, using: &self.generator)
            }
            if Int.random(in: 0..<4, using: &self.generator) == 0 {
                limits.bytesPerSecondPerHost = 1 << Int64.random(in: 14...23, using: &self.generator)
            }
            limits.memory = self.drawMemory()
            return (.milliseconds(Int.random(in: 0...10_000, using: &self.generator)), limits)
        }
    }

    /// Mostly no limit; otherwise from less than one share to more than all connections could hold.
    private mutating func drawMemory() -> Int64? {
        guard Int.random(in: 0..<3, using: &self.memoryGenerator) == 0 else { return nil }
        return Int64.random(
            in: 0...(1 << Int64.random(in: 16...22, using: &self.memoryGenerator)), using: &self.memoryGenerator)
    }

    private mutating func drawPauses() -> [Duration] {
        (0..<Int.random(in: 0...2, using: &self.generator)).map { _ in
            .milliseconds(Int.random(in: 0...20_000, using: &self.generator))
        }
    }
}

extension DownloadLimits {
    /// The same as of long files, or more. It follows from the other limits, so that older seeds keep their other
    /// decisions.
    fileprivate mutating func drawShortDownloads() {
        self.shortDownloads += 2 * ((self.connections + self.connectionsPerHost) % 2)
    }
}
