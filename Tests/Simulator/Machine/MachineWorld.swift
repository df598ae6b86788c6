import SegmentedDownloadCore

/// A world without threads and with its own time for ``GroupStateMachine``: origins, connections, disks and a user.
///
/// Everything follows from the seed. First faults occur, then they stop, and every download must end well.
package struct MachineWorld {
    struct Download {
        let id: DownloadID
        var settings: DownloadSettings
        var origin: ModelOrigin
        var disk = ModelDisk()
        var leases: Set<LeaseID> = []
        /// The user's last command; `goOn` at the beginning.
        var lastWord = LastWord.goOn
        /// Whether the run has concluded.
        var hasConcluded = false
        /// Whether a write failed since the last survey or preparation.
        var hasFailedWrite = false
        var conclusions: [DownloadConclusion] = []
        var isWritingManifest = false
        /// Manifest writes that run one after another: a revision, or `nil` for a checkpoint.
        var manifestStepsWaiting: [Revision?] = []
        var length: Int64?
        /// The segments reported as done by a run that started from nothing; `nil` after a resume or a restart.
        var told: [Range<Int64>]?
        /// Absent if the URL leads to one file in one place.
        var identity: ModelIdentity?
        /// The contents of the answers since the last survey.
        var answered: Set<ModelContent> = []
        /// Whether the download reported that the part file is to be set aside.
        var mustSetAside = false
    }

    enum LastWord: Hashable { case goOn, pause, cancel }

    /// A disk step under way.
    struct DiskStep {
        let id: DownloadID
        let at: Duration
        let event: MachineEvent
        var snapshot: [ModelDisk.Run] = []
        var generation = 0
    }

    let seed: UInt64
    var generator: SplitMix64
    /// A generator of its own, so that worlds without identity faults stay as they were.
    var identityGenerator: SplitMix64
    /// Whether answers may come from other files, places and nodes than earlier ones.
    let hasIdentity: Bool
    var limits: GroupStateMachine.Limits
    /// Until this time more connections than allowed may be open, because the limit was lowered.
    var excessUntil: Duration = .zero
    var connectionsBefore = 0
    var machine: GroupStateMachine
    var now: Duration = .zero
    private var tickAt: Duration = .zero
    var downloads: [Download] = []
    var connections: [ModelConnection] = []
    var inbox: [GroupEvent] = []
    var steps: [DiskStep] = []
    private(set) var violations: [String] = []
    /// Whether events and actions are kept in ``trace``.
    package var isTracing = false
    package internal(set) var trace: [String] = []
    private(set) var isCalm = false
    /// The percentage of moves that fail.
    let faultiness: Int
    /// The number of connections the host serves at once.
    let served: Int
    package internal(set) var handled = 0

    package init(seed: UInt64) {
        self.seed = seed
        self.identityGenerator = SplitMix64(seed: seed ^ 0x6964_656E_7469_7479)
        self.hasIdentity = Int.random(in: 0..<3, using: &self.identityGenerator) == 0
        var generator = SplitMix64(seed: seed)
        var limits = GroupStateMachine.Limits()
        limits.connections = Int.random(in: 1...12, using: &generator)
        limits.connectionsPerHost = Int.random(in: 1...8, using: &generator)
        limits.downloads = Int.random(in: 1...3, using: &generator)
        limits.shortDownloads = Self.shortDownloads(limits)
        self.limits = limits
        self.machine = GroupStateMachine(limits: limits)
        self.faultiness = [0, 1, 5, 20].randomElement(using: &generator) ?? 0
        self.served = Int.random(in: 1...10, using: &generator)
        self.generator = generator
        for number in 0..<Int.random(in: 1...3, using: &self.generator) {
            self.add(DownloadID(number))
        }
    }

    /// The same, more or fewer. It follows from the other limits, so that older seeds keep their other decisions.
    private static func shortDownloads(_ limits: GroupStateMachine.Limits) -> Int {
        limits.downloads + [0, 2, -1][(limits.connections + limits.connectionsPerHost) % 3]
    }

    private mutating func add(_ id: DownloadID) {
        var settings = DownloadSettings()
        let count = Int.random(in: 0...8, using: &self.generator)
        settings.segments = count == 0 ? .automatic : .exactly(count)
        settings.splitLengthMinimum = 1 << Int64.random(in: 6...20, using: &self.generator)
        settings.stealLengthMinimum = max(
            settings.planLengthMinimum >> Int64.random(in: 0...6, using: &self.generator), 1)
        settings.onChange = Bool.random(using: &self.generator) ? .fail : .restart
        settings.stallTimeout = .seconds(5)
        settings.headTimeout = .seconds(4)
        settings.host = "host"
        let magnitude = Int64.random(in: 0...24, using: &self.generator)
        var origin = ModelOrigin(lengths: [Int64.random(in: 0...(1 << magnitude), using: &self.generator)])
        origin.validation = [.strong, .strong, .weak, .date, .none].randomElement(using: &self.generator) ?? .strong
        origin.ranges =
            [.always, .always, .always, .never, .sometimes].randomElement(using: &self.generator) ?? .always
        origin.tellsLength = Int.random(in: 0..<4, using: &self.generator) != 0
        origin.dislikesIfRange = Int.random(in: 0..<4, using: &self.generator) == 0
        if Int.random(in: 0..<4, using: &self.generator) == 0 {
            origin.rangeLengthMax = origin.length / 8 + 1
        }
        let identity = self.hasIdentity ? ModelIdentity(&origin, using: &self.identityGenerator) : nil
        self.downloads.append(Download(id: id, settings: settings, origin: origin, identity: identity))
        let seed = self.generator.next()
        self.handle(.added(id, settings, seed: seed))
    }

    // MARK: Running

    /// How long everything may take once the faults have stopped: retries wait half a minute, trials of a higher limit
    /// a minute.
    static let patience: Duration = .seconds(3 * 3600)

    /// Runs to the end; returns the violations.
    package mutating func run() -> [String] {
        for _ in 0..<Int.random(in: 20...160, using: &self.generator) where self.violations.isEmpty {
            self.round()
            if Int.random(in: 0..<40, using: &self.generator) == 0 { self.userActs() }
            if self.hasIdentity { self.beginNextRuns() }
        }
        self.calmDown()
        let deadline = self.now + Self.patience
        while self.violations.isEmpty, !self.isOver {
            self.round()
            if self.now > deadline {
                self.violate(
                    "does not end: \(self.downloads.map(\.conclusions)), \(self.connections.count) connections")
            }
        }
        if self.violations.isEmpty { self.checkEnds() }
        return self.violations
    }

    private var isOver: Bool {
        self.machine.isIdle && self.inbox.isEmpty && self.steps.isEmpty && self.connections.isEmpty
    }

    /// Stops the faults, and resumes every download that the user did not pause or cancel last.
    private mutating func calmDown() {
        self.isCalm = true
        for index in self.downloads.indices {
            if self.downloads[index].origin.ranges == .sometimes { self.downloads[index].origin.ranges = .never }
        }
        // Operations under way settle first, so that pauses and failures are complete.
        for _ in 0..<100 where self.violations.isEmpty { self.round() }
        for download in self.downloads where download.lastWord == .goOn {
            self.user(.resume, download.id)
        }
    }

    private mutating func round() {
        let isBusy = !self.inbox.isEmpty || !self.connections.allSatisfy { $0.isStalled || $0.headAt == nil }
        let pace = self.isCalm && !isBusy ? 1000 : 100
        self.now += .milliseconds(Int.random(in: 1...pace, using: &self.generator))
        for index in self.connections.indices.shuffled(using: &self.generator) { self.move(index) }
        self.connections.removeAll { $0.isDone }
        for step in self.steps where step.at <= self.now { self.post(step) }
        self.steps.removeAll { $0.at <= self.now }
        if self.now >= self.tickAt {
            self.tickAt = self.now + .milliseconds(100)
            self.inbox.append(.tick)
        }
        for _ in 0..<Int.random(in: 0...(self.inbox.count + 1), using: &self.generator) where !self.inbox.isEmpty {
            self.deliver(self.inbox.removeFirst())
        }
    }

    private mutating func userActs() {
        guard let id = self.downloads.randomElement(using: &self.generator)?.id else { return }
        switch Int.random(in: 0..<18, using: &self.generator) {
        case 0..<5: self.user(.pause, id)
        case 5..<11: self.user(.resume, id)
        case 11..<14:
            var limits = self.limits
            limits.connections = Int.random(in: 1...12, using: &self.generator)
            limits.connectionsPerHost = Int.random(in: 1...8, using: &self.generator)
            limits.downloads = Int.random(in: 1...3, using: &self.generator)
            limits.shortDownloads = Self.shortDownloads(limits)
            self.inbox.append(.limits(limits))
        case 14, 15:
            let count = Int.random(in: 0...8, using: &self.generator)
            self.inbox.append(.segments(id, count == 0 ? .automatic : .exactly(count)))
        case 16:
            self.inbox.append(.priority(id, Double.random(in: 0...1, using: &self.generator)))
        default: self.user(.cancel(keepingPartial: Bool.random(using: &self.generator)), id)
        }
    }

    mutating func user(_ event: MachineEvent, _ id: DownloadID) {
        self.inbox.append(.download(id, event))
    }

    mutating func chance(_ percent: Int) -> Bool {
        !self.isCalm && Int.random(in: 0..<100, using: &self.generator) < percent
    }

    mutating func violate(_ what: String) {
        self.violations.append("\(what) at \(self.now)")
    }
}
