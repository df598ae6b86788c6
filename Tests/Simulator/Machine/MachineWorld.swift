import HTTPTypes
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
    private(set) var generator: SplitMix64
    /// A generator of its own, so that worlds without identity faults stay as they were.
    var identityGenerator: SplitMix64
    /// Whether answers may come from other files, places and nodes than earlier ones.
    let hasIdentity: Bool
    private(set) var limits: GroupStateMachine.Limits
    /// Until this time more connections than allowed may be open, because the limit was lowered.
    private(set) var excessUntil: Duration = .zero
    var connectionsBefore = 0
    var machine: GroupStateMachine
    private(set) var now: Duration = .zero
    private var tickAt: Duration = .zero
    var downloads: [Download] = []
    private(set) var connections: [ModelConnection] = []
    private(set) var inbox: [GroupEvent] = []
    private(set) var steps: [DiskStep] = []
    private(set) var violations: [String] = []
    package private(set) var trace: [String] = []
    private(set) var isCalm = false
    /// The percentage of moves that fail.
    let faultiness: Int
    /// The number of connections the host serves at once.
    private let served: Int
    package private(set) var handled = 0

    package init(seed: UInt64) {
        self.seed = seed
        self.identityGenerator = SplitMix64(seed: seed ^ 0x6964_656E_7469_7479)
        self.hasIdentity = Int.random(in: 0..<3, using: &self.identityGenerator) == 0
        var generator = SplitMix64(seed: seed)
        var limits = GroupStateMachine.Limits()
        limits.connections = Int.random(in: 1...12, using: &generator)
        limits.connectionsPerHost = Int.random(in: 1...8, using: &generator)
        limits.downloads = Int.random(in: 1...3, using: &generator)
        self.limits = limits
        self.machine = GroupStateMachine(limits: limits)
        self.faultiness = [0, 1, 5, 20].randomElement(using: &generator) ?? 0
        self.served = Int.random(in: 1...10, using: &generator)
        self.generator = generator
        for number in 0..<Int.random(in: 1...3, using: &self.generator) {
            self.add(DownloadID(number))
        }
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

    private mutating func chance(_ percent: Int) -> Bool {
        !self.isCalm && Int.random(in: 0..<100, using: &self.generator) < percent
    }

    mutating func violate(_ what: String) {
        self.violations.append("\(what) at \(self.now)")
    }

    // MARK: The engine's part

    private mutating func deliver(_ event: GroupEvent) {
        self.handled += 1
        switch event {
        case .added, .moved, .removed: break
        case .limits(let limits):
            self.limits = limits
            self.excessUntil = self.now + Self.yieldingTime
            for index in self.downloads.indices { self.observe(index) }
        case .segments(let id, let segments):
            self.downloads[id.rawValue].settings.segments = segments
            self.excessUntil = self.now + Self.yieldingTime
            for index in self.downloads.indices { self.observe(index) }
        case .tick, .priority, .rateChanged:
            for index in self.downloads.indices { self.observe(index) }
        case .download(let id, let event):
            let index = id.rawValue
            self.observe(index)
            self.note(event, index)
        }
        self.handle(event)
        if case .download(let id, .ended(let lease, _)) = event {
            for index in self.connections.indices
            where self.connections[index].order.lease == lease && self.connections[index].download == id {
                self.connections[index].isDone = true
            }
            self.connections.removeAll { $0.isDone }
        }
        if case .download(let id, let event) = event { self.beginNextManifestStep(event, id.rawValue) }
        self.check()
    }

    private mutating func note(_ event: MachineEvent, _ index: Int) {
        switch event {
        case .resume:
            guard self.downloads[index].lastWord != .cancel else { return }
            self.downloads[index].lastWord = .goOn
            switch self.machine.machine(self.downloads[index].id)?.conclusion {
            case .paused, .failed: self.downloads[index].hasConcluded = false
            case .completed, .alreadyComplete, .cancelled, nil: break
            }
        case .pause:
            if self.downloads[index].lastWord == .goOn { self.downloads[index].lastWord = .pause }
        case .cancel:
            self.downloads[index].lastWord = .cancel
            switch self.machine.machine(self.downloads[index].id)?.conclusion {
            case .paused, .failed: self.downloads[index].hasConcluded = false
            case .completed, .alreadyComplete, .cancelled, nil: break
            }
        case .ended(let lease, .storageFailed):
            // A sample only reads: if that fails, no byte is missing.
            let isSample = self.connections.contains {
                $0.download == self.downloads[index].id && $0.order.lease == lease && $0.order.isSample
            }
            if !isSample { self.downloads[index].hasFailedWrite = true }
        default: break
        }
    }

    private mutating func observe(_ index: Int) {
        let id = self.downloads[index].id
        let observations = self.connections.filter { $0.download == id }.map(\.observation)
        self.machine.observe(id, observations, now: self.now)
        if let length = self.machine.machine(id)?.plan?.completeLength { self.downloads[index].length = length }
    }

    mutating func handle(_ event: GroupEvent) {
        if self.isTracing { self.trace.append("\(self.now) \(event)") }
        var actions = self.machine.handle(event, now: self.now)
        while !actions.isEmpty {
            let action = actions.removeFirst()
            if self.isTracing { self.trace.append("    → \(action)") }
            switch action {
            case .fetch(let id, let order): self.open(order, id.rawValue)
            case .download(let id, let action): actions += self.perform(action, id.rawValue)
            }
        }
    }

    package var isTracing = false

    private func connection(_ lease: LeaseID, _ id: DownloadID) -> Int? {
        self.connections.firstIndex { $0.order.lease == lease && $0.download == id }
    }

    private mutating func open(_ order: FetchOrder, _ index: Int) {
        let id = self.downloads[index].id
        if !self.downloads[index].leases.insert(order.lease).inserted {
            self.violate("\(order.lease) of \(id) was issued twice")
        }
        if self.downloads[index].hasConcluded { self.violate("\(id) fetches after its conclusion") }
        if let offset = order.forgetsFrom { self.downloads[index].disk.forget(from: offset) }
        let delay = Duration.milliseconds(Int.random(in: 1...300, using: &self.generator))
        let headAt = self.chance(self.faultiness / 5) ? nil : self.now + delay
        self.connections.append(ModelConnection(download: id, order: order, headAt: headAt))
    }

    private mutating func perform(_ action: DownloadAction, _ index: Int) -> [GroupAction] {
        let id = self.downloads[index].id
        switch action {
        case .answer(let lease, let decision):
            if let index = self.connection(lease, id) { self.answer(decision, index) }
        case .narrow(let lease, let limit):
            let actual = self.connection(lease, id).map { self.narrow(to: limit, $0) } ?? .max
            let event = GroupEvent.download(id, .narrowed(lease, to: actual))
            self.observe(index)
            if self.isTracing { self.trace.append("    \(event)") }
            return self.machine.handle(event, now: self.now)
        case .revoke(let lease):
            if let index = self.connection(lease, id) {
                self.connections[index].isRevoked = true
                self.connections[index].isDismissed = true
            }
        case .survey:
            self.downloads[index].hasFailedWrite = false
            self.downloads[index].mustSetAside = false
            self.later(index, .surveyed(self.survey(index)))
        case .prepare(let preparation):
            guard !self.chance(self.faultiness / 4) else {
                self.later(index, .storageFailed(Failure(.space, "no space")))
                break
            }
            self.checkSettingAside(preparation, index)
            self.downloads[index].disk.perform(preparation, url: self.downloads[index].url)
            self.downloads[index].hasFailedWrite = false
            if preparation.mode == .fresh { self.downloads[index].length = preparation.resource.completeLength }
            self.later(index, .prepared())
        case .checkpoint: self.writeManifest(nil, index)
        case .revise(let revision):
            if !self.hasIdentity { self.violate("\(id) revises its only source") }
            self.writeManifest(revision, index)
        case .place(let length, _): self.place(index, length: length)
        case .replaceExisting:
            if self.downloads[index].disk.finished == nil { self.violate("\(id) replaces a file that does not exist") }
            self.downloads[index].disk.replacesFinished = true
        case .interruptPlacing:
            guard let step = self.steps.firstIndex(where: { $0.id == id && $0.event == .placed }) else { break }
            guard Bool.random(using: &self.generator) else { break }
            let at = self.steps[step].at
            self.steps[step] = DiskStep(id: id, at: at, event: .storageFailed(Failure(.cancelled, "interrupted")))
        case .discard:
            self.downloads[index].disk.discard()
            self.later(index, .discarded)
        case .report(.started(_, let resumedFrom, _)): self.downloads[index].told = resumedFrom == 0 ? [] : nil
        case .report(.restarted): self.downloads[index].told = nil
        case .report(.segmentDone(_, let range, _)): self.downloads[index].told?.append(range)
        case .report(.setAside): self.downloads[index].mustSetAside = true
        case .report: break
        case .conclude(let conclusion): self.conclude(conclusion, index)
        }
        return []
    }

    private mutating func conclude(_ conclusion: DownloadConclusion, _ index: Int) {
        let download = self.downloads[index]
        if conclusion == .alreadyComplete { self.checkAlreadyComplete(index) }
        if download.hasConcluded { self.violate("\(download.id) concluded twice: \(conclusion)") }
        if conclusion == .paused, download.lastWord == .goOn {
            self.violate("\(download.id) paused, but was resumed since")
        }
        if let step = self.steps.first(where: { $0.id == download.id }) {
            self.violate("\(download.id) concluded as \(conclusion) before its disk answered \(step.event)")
        }
        if self.connections.contains(where: { $0.download == download.id && !$0.isDismissed && $0.phase != .over }) {
            self.violate("\(download.id) concluded as \(conclusion) with a lease out")
        }
        self.downloads[index].hasConcluded = true
        self.downloads[index].hasFailedWrite = false
        self.downloads[index].conclusions.append(conclusion)
    }

    // MARK: Disk

    private mutating func later(_ index: Int, _ event: MachineEvent, snapshot: [ModelDisk.Run] = []) {
        let delay = Duration.milliseconds(Int.random(in: 0...400, using: &self.generator))
        self.steps.append(
            DiskStep(
                id: self.downloads[index].id, at: self.now + delay, event: event, snapshot: snapshot,
                generation: self.downloads[index].disk.generation))
    }

    private mutating func writeManifest(_ revision: Revision?, _ index: Int) {
        guard !self.downloads[index].isWritingManifest else {
            self.downloads[index].manifestStepsWaiting.append(revision)
            return
        }
        self.downloads[index].isWritingManifest = true
        self.perform(revision, index)
    }

    private mutating func perform(_ revision: Revision?, _ index: Int) {
        guard !self.chance(self.faultiness / 4) else {
            self.later(index, .checkpointFailed(Failure(.file, "the data could not be synced")))
            return
        }
        if let revision {
            self.downloads[index].disk.perform(revision, url: self.downloads[index].url)
            self.later(index, .revised)
            return
        }
        self.later(index, .checkpointed(bytes: 0), snapshot: self.downloads[index].disk.runs)
    }

    private mutating func post(_ step: DiskStep) {
        let index = step.id.rawValue
        switch step.event {
        case .checkpointed:
            let bytes = self.downloads[index].disk.makeDurable(step.snapshot, generation: step.generation)
            self.inbox.append(.download(step.id, .checkpointed(bytes: bytes)))
            return
        case .checkpointFailed: self.downloads[index].disk.forgetVolatile()
        case .placed: self.downloads[index].disk.finish()
        default: break
        }
        self.inbox.append(.download(step.id, step.event))
    }

    private mutating func beginNextManifestStep(_ event: MachineEvent, _ index: Int) {
        switch event {
        case .checkpointed, .checkpointFailed, .revised:
            guard !self.downloads[index].manifestStepsWaiting.isEmpty else {
                self.downloads[index].isWritingManifest = false
                return
            }
            self.perform(self.downloads[index].manifestStepsWaiting.removeFirst(), index)
        default: break
        }
    }

    private mutating func place(_ index: Int, length: Int64) {
        let download = self.downloads[index]
        if let step = self.steps.first(where: { $0.id == download.id }) {
            self.violate("\(download.id) is placed before its disk answered \(step.event)")
        }
        if download.hasFailedWrite { self.violate("\(download.id) is placed, although a write failed") }
        if let flaw = download.disk.flaw(length: length, lengths: download.origin.lengths) {
            self.violate("\(download.id) is placed, but \(flaw)")
        }
        self.checkPlaced(index)
        // One stream that fetches everything does not report the other segments as done; it always reports the last
        // byte.
        if let told = download.told, length > 0, !told.contains(where: { $0.upperBound == length }) {
            self.violate("\(download.id) is placed, but no segment that ends at \(length) was reported as done")
        }
        self.later(index, self.chance(self.faultiness) ? .storageFailed(Failure(.file, "no rename")) : .placed)
    }

    // MARK: Connections

    private mutating func end(_ index: Int, _ end: LeaseEnd) {
        guard self.connections[index].phase != .over else { return }
        self.connections[index].phase = .over
        let connection = self.connections[index]
        self.inbox.append(.download(connection.download, .ended(connection.order.lease, end)))
    }

    private mutating func answer(_ decision: LeaseDecision, _ index: Int) {
        guard self.connections[index].phase == .waiting else { return }
        switch decision {
        case .stop:
            self.connections[index].isDismissed = true
            self.end(index, .finished)
        case .proceed(let limit, let from):
            self.connections[index].position = max(self.connections[index].position, from ?? 0)
            let connection = self.connections[index]
            if self.connections[index].isRevoked {
                self.end(index, .finished)
                return
            }
            if limit <= connection.position, !connection.order.isSample {
                self.violate("\(connection.order.lease) may proceed by nothing")
            }
            if let end = connection.responseEnd, limit > end { self.violate("\(limit) is past the response's end") }
            self.connections[index].limit = max(connection.limit, limit)
            self.connections[index].phase = .receiving
        }
    }

    private mutating func narrow(to limit: Int64, _ index: Int) -> Int64 {
        let connection = self.connections[index]
        self.connections[index].limit = min(connection.limit, max(limit, connection.position))
        return self.connections[index].limit
    }

    /// One move of one connection: a head arrives, some bytes arrive, or a fault strikes.
    private mutating func move(_ index: Int) {
        let connection = self.connections[index]
        if connection.isRevoked, connection.phase != .over, Bool.random(using: &self.generator) {
            // The last write when a connection ends may fail too.
            let fails = connection.phase == .receiving && self.chance(self.faultiness / 10)
            self.end(index, fails ? .storageFailed(Failure(.file, "input/output error")) : .revoked)
            return
        }
        switch connection.phase {
        case .asking:
            if self.chance(self.faultiness / 2) {
                self.end(index, .failed(Failure(.network, "connection refused", isTransient: true)))
            } else if let headAt = connection.headAt, headAt <= self.now {
                self.answerRequest(index)
            }
        case .receiving where !connection.isStalled: self.receive(index)
        case .waiting, .receiving, .over: break
        }
    }

    private mutating func answerRequest(_ index: Int) {
        let connection = self.connections[index]
        let request = connection.order.request
        var origin = self.downloads[connection.download.rawValue].origin
        if self.chance(self.faultiness / 8), origin.tellsVersions, origin.lengths.count < 4 {
            origin.lengths.append(max(origin.length + Int64.random(in: -3...3, using: &self.generator), 0))
            self.downloads[connection.download.rawValue].origin = origin
        }
        let locator = self.lead(&origin, connection)
        let doesRanges =
            origin.ranges == .always || (origin.ranges == .sometimes && Bool.random(using: &self.generator))
        var answer = origin.answer(request, doesRanges: doesRanges)
        let busy = self.connections.count { $0.body != nil && $0.phase != .over }
        if busy >= self.served {
            answer = .init(head: ResponseHead(status: 429, fields: self.retryAfter()))
        } else if self.chance(self.faultiness) {
            answer = self.badAnswer(answer, total: origin.length)
        }
        self.noteAnswer(answer, of: origin, connection)
        let response = RangeResponse(request: request, head: answer.head, locator: locator)
        self.connections[index].body = answer.body
        self.connections[index].responseEnd = response.bodyEnd
        self.connections[index].bodyStart = response.bodyStart
        self.connections[index].offset = response.bodyStart
        self.connections[index].phase = .waiting
        self.inbox.append(
            .download(connection.download, .responded(connection.order.lease, response, suggestedName: nil)))
    }

    private mutating func retryAfter() -> HTTPFields {
        switch Int.random(in: 0..<4, using: &self.generator) {
        case 0: [.retryAfter: "\(Int.random(in: 0...20, using: &self.generator))"]
        default: [:]
        }
    }

    private mutating func badAnswer(_ good: ModelOrigin.Answer, total: Int64) -> ModelOrigin.Answer {
        var fields = good.head.fields
        switch Int.random(in: 0..<10, using: &self.generator) {
        case 9:
            // A shorter part than requested, of a range or of the whole.
            guard let body = good.body, body.end > body.start else { return good }
            let end = Int64.random(in: (body.start + 1)...body.end, using: &self.generator)
            fields[.contentRange] = "bytes \(body.start)-\(end - 1)/\(total)"
            fields[.contentLength] = nil
            return .init(
                head: ResponseHead(status: 206, fields: fields),
                body: .init(content: body.content, start: body.start, end: end))
        case 0: return .init(head: ResponseHead(status: 503, fields: self.retryAfter()))
        case 1: return .init(head: ResponseHead(status: 500))
        case 2: return .init(head: ResponseHead(status: 502, fields: self.retryAfter()))
        case 3: fields[.contentRange] = nil
        case 4: fields[.contentLength] = "1x"
        case 5: fields[.contentType] = "multipart/byteranges; boundary=x"
        // Where versions are drawn often, two answers without tags would hide a change.
        case 6: fields[.eTag] = self.hasIdentity ? fields[.eTag] : nil
        case 7: return .init(head: ResponseHead(status: 416))
        default: return .init(head: ResponseHead(status: 429, fields: self.retryAfter()))
        }
        return .init(head: ResponseHead(status: good.head.status, fields: fields), body: good.body)
    }

    private mutating func receive(_ index: Int) {
        let connection = self.connections[index]
        guard let body = connection.body else { return }
        if self.chance(self.faultiness / 2) {
            self.end(index, .failed(Failure(.network, "connection reset", isTransient: true)))
            return
        }
        if self.chance(self.faultiness / 5) {
            self.connections[index].isStalled = true
            return
        }
        if self.chance(self.faultiness / 10) {
            self.end(index, .storageFailed(Failure(.file, "input/output error")))
            return
        }
        // The offset of the body's next byte in the origin's file.
        let source = body.start + (connection.offset - connection.bodyStart)
        let left = body.end - source
        guard left > 0 else {
            self.end(index, .finished)
            return
        }
        let download = self.downloads[connection.download.rawValue]
        let chunk = min(left, Int64.random(in: 1...max(download.origin.length / 12, 2), using: &self.generator))
        self.connections[index].bytesReceived += chunk
        self.take(index, chunk, body, source: source)
    }

    /// What the fetcher does with a chunk: compare, write up to the limit, ask for more.
    private mutating func take(_ index: Int, _ chunk: Int64, _ body: ModelConnection.Body, source: Int64) {
        var connection = self.connections[index]
        let id = connection.download.rawValue
        let end = connection.offset + chunk
        var offset = connection.offset
        let compared = min(end, connection.position)
        if offset < compared {
            // Two contents differ in every byte, and so does a byte from another offset.
            if self.downloads[id].disk.content(at: offset) != body.content || source != offset {
                self.end(index, .differs(at: offset, byte: UInt8(truncatingIfNeeded: body.content.file)))
                return
            }
            offset = compared
        }
        let granted = max(min(end, connection.limit) - offset, 0)
        if granted > 0 {
            let range = offset..<(offset + granted)
            let shift = source - connection.offset
            if !self.downloads[id].disk.write(range, body.content, shift: shift, mark: connection.order.mark) {
                self.violate("\(connection.order.lease) writes \(range), which is partly written already")
            }
            self.checkMeeting(of: body.content, id)
            connection.position = range.upperBound
            offset = range.upperBound
        }
        connection.offset = offset
        let isAtLimit = connection.position >= connection.limit
        // While bytes are only compared, the connection does not ask for a higher limit.
        let mayAsk = isAtLimit && offset >= connection.position && offset < connection.responseEnd ?? offset
        if offset < end || mayAsk {
            connection.phase = .waiting
            self.inbox.append(.download(connection.download, .limitReached(connection.order.lease)))
        }
        self.connections[index] = connection
    }
}
