import Foundation
import SegmentedDownload
import SegmentedDownloadCore

/// Many tasks of one job (`--shard I/N`) that fetch from one origin with limits.
///
/// Real: every decision of a task. Each shard has a production ``GroupStateMachine`` of its own with the limits of a
/// task, and in it a production ``DownloadStateMachine`` for each file, which gets events and a tick every 100 ms as from
/// the engine. So when to connect, how many connections, when to ask again after a refusal, what is given up, how a file
/// is divided and what is resumed are the production's.
///
/// Modelled: the bytes, as a fluid that the origin shares equally (``FleetFlows``); the origin's limits
/// (``FleetOrigin``); a round trip of 40 ms, and another for a new connection; some milliseconds for each step on disk,
/// which keeps what was checkpointed; the table of notices
/// of a node, which its tasks read within a tick; a scheduler that starts the tasks of a dead node on another one, where they first
/// wait as ``ShardRun`` does. Events are discrete, and a run follows from its seed.
package struct FleetSimulation {
    private static let second: Int64 = 1_000_000_000
    /// The engine's tick, in slots of 1 ms.
    private static let tick = 100
    /// A shard in which nothing has happened for a while gets its ticks more rarely: after a tenth of that time if it
    /// waits, after half of it if it has connections, and every two seconds at least. Ten thousand shards that wait or
    /// receive have nothing to decide at most ticks.
    private static let tickMax = 2000
    private static let slot: Int64 = 1_000_000
    /// `-j`: the default.
    private static let downloadsMax = 5
    /// Ten times as long as the optimum, and an hour.
    private static let patience = 10.0

    private let scenario: FleetScenario
    private var generator: SplitMix64
    private var events = FleetEvents()
    private var flows: FleetFlows
    private var origin: FleetOrigin
    private var shards: [FleetShard]
    private var connections: [FleetConnection] = []
    private var connectionsFree: [Int] = []
    /// In nanoseconds.
    private var now: Int64 = 0
    /// The shards that tick in each slot, with the number of the tick that they await.
    private var ticks: [[(shard: Int, number: Int)]]
    private var slotNext = 0
    private var shardsRunning: Int
    private var bytesDone: Int64 = 0
    private var fairness: Double?
    private var deaths = 0
    private var nodeNext: Int
    private var isOut = false
    private var requests = (second: -1, count: 0, peak: 0)
    private var violations: [String] = []
    private let resource: RemoteResource
    private var trace: [String] = []
    private let tracedShard: Int?

    package init(_ scenario: FleetScenario, seed: UInt64, tracedShard: Int? = nil) {
        self.scenario = scenario
        self.tracedShard = tracedShard
        self.generator = SplitMix64(seed: seed)
        self.flows = FleetFlows(capacity: scenario.capacity, groupMax: scenario.flowMax)
        self.origin = FleetOrigin(scenario)
        self.shards = (0..<scenario.shards).map {
            FleetShard(node: $0 / FleetScenario.shardsPerNode, files: scenario.files)
        }
        self.ticks = Array(repeating: [], count: Self.tickMax)
        self.shardsRunning = scenario.shards
        self.nodeNext = scenario.nodes
        self.resource = RemoteResource(
            completeLength: scenario.length,
            validator: Validator(entityTag: EntityTag(fieldValue: "\"a\""), lastModified: nil))
    }

    // MARK: Running

    /// Runs until every shard has ended.
    package mutating func run() -> FleetReport {
        for shard in self.shards.indices { self.later(.start, self.random(self.scenario.startSpread), shard) }
        if self.scenario.deaths > 0 {
            for node in 0..<self.scenario.nodes { self.planDeath(of: node) }
        }
        if self.scenario.hasOutage {
            self.events.add(.outageBegins, at: Self.time(FleetScenario.outageAt), 0)
            self.events.add(.outageEnds, at: Self.time(FleetScenario.outageAt + FleetScenario.outage), 0)
        }
        let end = Self.time(Self.patience * self.scenario.optimum + 3600)
        while self.shardsRunning > 0, self.violations.isEmpty {
            guard self.now < end else {
                self.violations.append("\(self.shardsRunning) shards had not ended after \(end / Self.second) s")
                break
            }
            self.advance()
        }
        let time = self.shards.compactMap(\.finishedAt).max() ?? self.now
        let completed = self.shards.map(\.completedAt).max() ?? self.now
        return FleetReport(
            self.scenario, shards: self.shards, time: Self.seconds(time), timeCompleted: Self.seconds(completed),
            fairnessHalfway: self.fairness ?? 1,
            deaths: self.deaths, requestsPeak: self.requests.peak, violations: self.violations)
    }

    /// What happened to the traced shard.
    package var traceLines: [String] { self.trace }

    private mutating func advance() {
        let slotTime = Int64(self.slotNext) * Self.slot
        let flowTime = self.flows.timeNext().map { Self.time($0) } ?? .max
        let eventTime = self.events.timeNext ?? .max
        self.now = max(min(slotTime, flowTime, eventTime), self.now)
        self.flows.advance(to: Self.seconds(self.now))
        if flowTime <= min(slotTime, eventTime) {
            while let flow = self.flows.done() { self.arrived(flow) }
        } else if eventTime <= slotTime {
            if let event = self.events.next() { self.perform(event) }
        } else {
            self.tick()
            self.slotNext += 1
        }
    }

    private mutating func tick() {
        let slot = self.slotNext % Self.tickMax
        let due = self.ticks[slot]
        self.ticks[slot] = []
        for (shard, number) in due where self.shards[shard].tickNext == number {
            guard self.shards[shard].machine != nil else { continue }
            self.observe(shard)
            let notices = self.shards[shard].notices
            self.shards[shard].notices = []
            if !notices.isEmpty { self.handle(.noticed(notices), shard) }
            let isActive = self.handle(.tick, shard)
            if isActive { self.shards[shard].changedAt = self.now }
            let isWaiting = self.shards[shard].connections.isEmpty
            let calm = Int((self.now - self.shards[shard].changedAt) / Self.slot) / (isWaiting ? 10 : 2)
            self.planTick(shard, after: min(max(calm / Self.tick * Self.tick, Self.tick), Self.tickMax))
        }
    }

    /// - Parameter slots: At most ``tickMax``.
    private mutating func planTick(_ shard: Int, after slots: Int) {
        self.shards[shard].tickNext += 1
        self.shards[shard].tickSlots = slots
        let slot = (Int(self.now / Self.slot) + slots) % Self.tickMax
        self.ticks[slot].append((shard, self.shards[shard].tickNext))
    }

    private mutating func perform(_ event: FleetEvent) {
        let (subject, detail) = (Int(event.subject), Int(event.detail))
        switch event.kind {
        case .start:
            if self.shards[subject].run == event.run { self.start(subject) }
        case .arrival, .head, .ended:
            guard self.connections[subject].use == detail else { return }
            if event.kind == .arrival {
                self.arrive(subject)
            } else if event.kind == .head {
                self.head(subject)
            } else {
                self.ended(subject)
            }
        case .surveyed, .prepared, .checkpointed, .placed:
            guard self.shards[subject].run == event.run else { return }
            self.stored(event.kind, subject, DownloadID(detail))
        case .placeFreed: self.origin.free(subject)
        case .death: self.die(subject)
        case .outageBegins:
            self.isOut = true
            self.origin.beginOutage()
            if self.scenario.limit == .restart { self.resetAll() }
        case .outageEnds:
            self.isOut = false
            self.origin.endOutage()
        }
    }

    // MARK: The scheduler

    private mutating func start(_ shard: Int) {
        var limits = GroupStateMachine.Limits()
        // As a task of the command has them.
        guard let task = Shard(number: shard + 1, of: self.scenario.shards) else { return }
        limits.downloads = Self.downloadsMax
        limits.tasks = self.scenario.isAlone ? 1 : self.scenario.shards
        limits.connectionsPerHost = Int(task.limit(of: FleetScenario.connectionsPerHost))
        self.shards[shard].machine = GroupStateMachine(limits: limits)
        self.shards[shard].idNext = 0
        self.shards[shard].notices = []
        self.shards[shard].changedAt = self.now
        self.planTick(shard, after: Self.tick)
        self.fill(shard)
    }

    /// Gives the process files, as many as it fetches at once, or all of them if it has to find those that are served.
    private mutating func fill(_ shard: Int) {
        let downloadsMax = self.scenario.limit.isFault ? Int.max : Self.downloadsMax
        while self.shards[shard].machine != nil, self.shards[shard].downloads.count < downloadsMax,
            let file = self.shards[shard].waiting.popLast()
        {
            let id = DownloadID(self.shards[shard].idNext)
            self.shards[shard].idNext += 1
            self.shards[shard].downloads.append(FleetShard.Download(id: id, file: file))
            var settings = DownloadSettings()
            settings.host = self.scenario.limit == .deadHost && file < self.scenario.limit.filesBad ? "dead" : "origin"
            self.handle(.added(id, settings, seed: self.generator.next()), shard)
        }
        guard self.shards[shard].machine != nil, self.shards[shard].downloads.isEmpty else { return }
        for notice in self.shards[shard].machine?.leave(now: .nanoseconds(self.now)) ?? [] {
            self.post(notice, from: shard)
        }
        self.shards[shard].machine = nil
        self.shards[shard].run += 1
        self.shards[shard].finishedAt = self.now
        self.shardsRunning -= 1
    }

    /// Each node lives for a time of its own with the same expectation.
    private mutating func planDeath(of node: Int) {
        let uniform = Double.random(in: 0..<1, using: &self.generator)
        let minutes = -log(1 - uniform) / self.scenario.deaths
        self.later(.death, 60 * minutes, node)
    }

    private mutating func die(_ node: Int) {
        let lost = self.shards.indices.filter { self.shards[$0].node == node && self.shards[$0].finishedAt == nil }
        guard !lost.isEmpty else { return }
        self.deaths += 1
        let next = self.nodeNext
        self.nodeNext += 1
        self.origin.addClient()
        for shard in lost {
            for index in self.shards[shard].connections {
                if self.connections[index].holdsPlace {
                    self.later(.placeFreed, FleetScenario.clientTimeout, self.connections[index].node)
                }
                self.flows.end(index)
                self.recycle(index)
            }
            self.shards[shard].connections = []
            self.shards[shard].idle = 0
            self.shards[shard].waiting += self.shards[shard].downloads.reversed().map(\.file)
            self.shards[shard].downloads = []
            let wasRunning = self.shards[shard].machine != nil
            self.shards[shard].machine = nil
            self.shards[shard].run += 1
            self.shards[shard].node = next
            // The process on the other node waits until it is sure that the first one has ended.
            var delay = self.scenario.restartDelay
            if wasRunning, let task = Shard(number: shard + 1, of: self.scenario.shards) {
                delay += ShardRun.silenceMax(of: task).inSeconds
            }
            self.later(.start, delay, shard, run: self.shards[shard].run)
        }
        self.planDeath(of: next)
    }

    // MARK: The network

    private mutating func open(_ id: DownloadID, _ order: FetchOrder, _ shard: Int) {
        let index = self.connectionsFree.popLast() ?? self.connections.count
        if index == self.connections.count { self.connections.append(FleetConnection()) }
        let use = self.connections[index].use
        self.connections[index] = FleetConnection(
            phase: .asking, use: use, shard: shard, run: self.shards[shard].run, node: self.shards[shard].node,
            download: id, order: order, offset: order.request.lowerBound, position: order.writesFrom,
            limit: order.writesFrom)
        self.shards[shard].connections.append(index)
        var way = FleetScenario.roundTrip / 2
        if self.shards[shard].idle > 0 { self.shards[shard].idle -= 1 } else { way += FleetScenario.roundTrip }
        self.later(.arrival, way, index, detail: use)
    }

    private mutating func arrive(_ index: Int) {
        let second = Int(self.now / Self.second)
        if self.requests.second != second { (self.requests.second, self.requests.count) = (second, 0) }
        self.requests.count += 1
        self.requests.peak = max(self.requests.peak, self.requests.count)
        let connection = self.connections[index]
        let answer = self.fault(of: connection) ?? self.origin.answer(connection.node, at: Self.seconds(self.now))
        self.connections[index].answer = answer
        if answer == .served {
            self.connections[index].holdsPlace = true
            self.shards[connection.shard].noteServed()
        } else {
            self.shards[connection.shard].noteRefused()
        }
        self.later(.head, FleetScenario.roundTrip / 2, index, detail: connection.use)
    }

    /// The answer of a scenario with a fault, if it applies.
    private func fault(of connection: FleetConnection) -> FleetOrigin.Answer? {
        let shard = self.shards[connection.shard]
        let file = shard.downloads.first { $0.id == connection.download }?.file ?? .max
        let isBad = file < self.scenario.limit.filesBad
        return switch self.scenario.limit {
        case .deadHost: isBad ? .unreachable : nil
        case .badFiles: isBad ? .refused(status: 503, retryAfter: nil) : nil
        case .earlyRefusal: shard.served + shard.refused == 0 ? .refused(status: 503, retryAfter: nil) : nil
        case .bandwidth, .clients, .connections, .clientConnections, .rate, .quota, .overload, .restart: nil
        }
    }

    private mutating func head(_ index: Int) {
        let connection = self.connections[index]
        guard let order = connection.order, connection.phase == .asking else { return }
        switch connection.answer {
        case .unreachable:
            self.end(index, .failed(DownloadError(.network, "connection refused", isTransient: true)), after: 0)
        case .refused(let status, let seconds):
            self.connections[index].phase = .waiting
            let retryAfter = seconds.flatMap { RetryAfter(fieldValue: "\($0)", date: nil, fallbackNow: nil) }
            self.tell(
                connection,
                .responded(order.lease, .refused(status: status, retryAfter: retryAfter), suggestedName: nil))
        case .served:
            let request = order.request
            let range = request.lowerBound..<(request.upperBound ?? self.scenario.length)
            self.connections[index].phase = .waiting
            self.connections[index].responseEnd = range.upperBound
            self.tell(
                connection,
                .responded(order.lease, .partial(ByteRange(range), self.resource), suggestedName: nil))
        }
    }

    /// A response has reached the limit of its lease, or its end.
    private mutating func arrived(_ index: Int) {
        self.stopFlow(index)
        let connection = self.connections[index]
        guard let order = connection.order else { return }
        self.observe(connection.shard)
        if connection.offset >= connection.responseEnd {
            self.end(index, .finished, after: 0)
        } else {
            self.connections[index].phase = .waiting
            self.tell(connection, .limitReached(order.lease))
        }
    }

    /// Takes the bytes that have come from the flow.
    private mutating func stopFlow(_ index: Int) {
        self.connections[index].offset += self.flows.end(index)
        self.connections[index].position = max(self.connections[index].position, self.connections[index].offset)
    }

    private mutating func proceed(_ index: Int, to limit: Int64, from: Int64?) {
        self.connections[index].position = max(self.connections[index].position, from ?? 0)
        self.connections[index].limit = limit
        self.connections[index].phase = .receiving
        let connection = self.connections[index]
        // Equal treatment of addresses: their connections are one group.
        let group = self.scenario.limit == .clients ? connection.node : index
        self.flows.begin(
            index, in: group, length: max(min(limit, connection.responseEnd) - connection.offset, 0))
    }

    /// Closes a connection, or keeps it idle, and reports the end of its fetch.
    private mutating func end(_ index: Int, _ end: LeaseEnd, after seconds: Double = 1e-4) {
        if self.connections[index].phase == .receiving { self.stopFlow(index) }
        if case .ending = self.connections[index].phase { return }
        let connection = self.connections[index]
        let isWhole = connection.answer != .unreachable && connection.offset >= connection.responseEnd
        if connection.holdsPlace {
            self.connections[index].holdsPlace = false
            self.later(.placeFreed, isWhole ? 0 : FleetScenario.roundTrip / 2, connection.node)
        }
        // The connection of a refusal stays open, as with nginx.
        if isWhole, end == .finished || end == .stopped { self.shards[connection.shard].idle += 1 }
        self.connections[index].phase = .ending(end)
        self.later(.ended, seconds, index, detail: connection.use)
    }

    private mutating func ended(_ index: Int) {
        let connection = self.connections[index]
        guard case .ending(let end) = connection.phase, let order = connection.order else { return }
        self.observe(connection.shard)
        self.shards[connection.shard].connections.removeAll { $0 == index }
        self.recycle(index)
        self.handle(.download(connection.download, .ended(order.lease, end)), connection.shard)
    }

    private mutating func recycle(_ index: Int) {
        self.connections[index] = FleetConnection(use: self.connections[index].use + 1)
        self.connectionsFree.append(index)
    }

    /// The origin stops: every connection is reset.
    private mutating func resetAll() {
        for index in self.connections.indices {
            switch self.connections[index].phase {
            case .receiving, .waiting:
                self.end(index, .failed(DownloadError(.network, "connection reset", isTransient: true)))
            case .asking:
                self.connections[index].answer = .unreachable
                if self.connections[index].holdsPlace {
                    self.connections[index].holdsPlace = false
                    self.origin.free(self.connections[index].node)
                }
            case .ending, .free: break
            }
        }
        for shard in self.shards.indices { self.shards[shard].idle = 0 }
    }

    private mutating func tell(_ connection: FleetConnection, _ event: MachineEvent) {
        self.observe(connection.shard)
        self.handle(.download(connection.download, event), connection.shard)
    }

    // MARK: The engine

    /// Reports the progress of a shard's connections, as the engine does before each event.
    private mutating func observe(_ shard: Int) {
        for index in self.shards[shard].connections {
            let connection = self.connections[index]
            guard let order = connection.order, connection.phase == .receiving else { continue }
            let offset = connection.offset + self.flows.received(index)
            self.shards[shard].machine?.observe(
                connection.download,
                [
                    LeaseObservation(
                        lease: order.lease, position: max(offset, connection.position),
                        bytesReceived: offset - order.request.lowerBound, isWriting: false)
                ], now: .nanoseconds(self.now))
        }
        for index in self.shards[shard].connections {
            let connection = self.connections[index]
            guard let order = connection.order else { continue }
            switch connection.phase {
            case .waiting where connection.offset > order.request.lowerBound, .ending(.finished), .ending(.stopped):
                self.shards[shard].machine?.observe(
                    connection.download,
                    [
                        LeaseObservation(
                            lease: order.lease, position: connection.position,
                            bytesReceived: connection.offset - order.request.lowerBound, isWriting: false)
                    ], now: .nanoseconds(self.now))
            case .asking, .waiting, .receiving, .ending, .free: break
            }
        }
    }

    /// Returns whether the event led to an action.
    @discardableResult
    private mutating func handle(_ event: GroupEvent, _ shard: Int) -> Bool {
        if case .tick = event {
        } else if self.shards[shard].machine != nil {
            self.shards[shard].changedAt = self.now
            if self.shards[shard].tickSlots > Self.tick { self.planTick(shard, after: Self.tick) }
        }
        if shard == self.tracedShard {
            if case .tick = event {} else { self.trace.append("\(Self.seconds(self.now)) receives \(event)") }
        }
        var actions = self.shards[shard].machine?.handle(event, now: .nanoseconds(self.now)) ?? []
        var next = 0
        while next < actions.count {
            let action = actions[next]
            next += 1
            if shard == self.tracedShard { self.trace.append("\(Self.seconds(self.now)) orders \(action)") }
            switch action {
            case .fetch(let id, let order): self.open(id, order, shard)
            case .download(let id, let action): actions += self.perform(action, id, shard)
            case .post(let notice): self.post(notice, from: shard)
            }
        }
        return !actions.isEmpty
    }

    /// The other processes of the node read the record at their next ticks, unless it was replaced before.
    private mutating func post(_ notice: HostNotice, from shard: Int) {
        let node = self.shards[shard].node
        let first = shard / FleetScenario.shardsPerNode * FleetScenario.shardsPerNode
        for other in first..<min(first + FleetScenario.shardsPerNode, self.shards.count)
        where other != shard && self.shards[other].node == node && self.shards[other].machine != nil {
            if self.shards[other].notices.isEmpty {
                self.planTick(other, after: Int(self.random(Double(Self.tick))) + 1)
            }
            if let known = self.shards[other].notices.firstIndex(where: { $0.subject == notice.subject }) {
                guard notice.replaces(self.shards[other].notices[known]) else { continue }
                self.shards[other].notices.remove(at: known)
            }
            self.shards[other].notices.append(notice)
        }
    }

    private func connection(_ lease: LeaseID, _ id: DownloadID, _ shard: Int) -> Int? {
        self.shards[shard].connections.first {
            self.connections[$0].order?.lease == lease && self.connections[$0].download == id
        }
    }

    private mutating func perform(_ action: DownloadAction, _ id: DownloadID, _ shard: Int) -> [GroupAction] {
        switch action {
        case .answer(let lease, .proceed(let limit, let from)):
            if let index = self.connection(lease, id, shard) { self.proceed(index, to: limit, from: from) }
        case .answer(let lease, .stop):
            if let index = self.connection(lease, id, shard) { self.end(index, .stopped) }
        case .narrow(let lease, let limit):
            var actual = Int64.max
            if let index = self.connection(lease, id, shard), self.connections[index].phase == .receiving {
                let connection = self.connections[index]
                let offset = connection.offset + self.flows.received(index)
                actual = min(connection.limit, max(limit, offset, connection.position))
                self.connections[index].limit = actual
                self.flows.limit(index, to: min(actual, connection.responseEnd) - connection.offset)
            }
            return self.shards[shard].machine?.handle(
                .download(id, .narrowed(lease, to: actual)), now: .nanoseconds(self.now)) ?? []
        case .revoke(let lease):
            if let index = self.connection(lease, id, shard) { self.end(index, .revoked) }
        case .survey: self.store(.surveyed, id, shard)
        case .prepare: self.store(.prepared, id, shard)
        case .checkpoint:
            // What is written now is durable when the checkpoint is done.
            if let place = self.shards[shard].downloads.firstIndex(where: { $0.id == id }) {
                self.shards[shard].downloads[place].missing =
                    self.shards[shard].machine?.ask(id) { $0.plan?.missing ?? [] } ?? []
            }
            self.store(.checkpointed, id, shard)
        case .place: self.store(.placed, id, shard)
        case .conclude(let conclusion): self.conclude(conclusion, id, shard)
        case .revise, .replaceExisting, .require, .discard:
            self.violations.append("shard \(shard) orders \(action)")
        case .interrupt, .report: break
        }
        return []
    }

    // MARK: The disk

    /// A step on disk takes up to 5 ms.
    private mutating func store(_ kind: FleetEvent.Kind, _ id: DownloadID, _ shard: Int) {
        self.later(
            kind, 0.0005 + self.random(0.0045), shard, detail: id.rawValue, run: self.shards[shard].run)
    }

    private mutating func stored(_ kind: FleetEvent.Kind, _ shard: Int, _ id: DownloadID) {
        guard let place = self.shards[shard].downloads.firstIndex(where: { $0.id == id }) else { return }
        let download = self.shards[shard].downloads[place]
        self.observe(shard)
        switch kind {
        case .surveyed:
            let missing = self.shards[shard].parts[download.file] ?? []
            let survey: Survey =
                missing.isEmpty
                ? .nothing
                : .partial(
                    SavedPartial(
                        resource: self.resource, completeLength: self.scenario.length, missing: missing))
            self.handle(.download(id, .surveyed(survey)), shard)
        case .prepared: self.handle(.download(id, .prepared()), shard)
        case .checkpointed:
            self.shards[shard].parts[download.file] = download.missing
            let bytes = download.missing.reduce(self.scenario.length) { $0 - ($1.upperBound - $1.lowerBound) }
            self.handle(.download(id, .checkpointed(bytes: bytes)), shard)
        case .placed: self.handle(.download(id, .placed(.simulated(length: self.scenario.length))), shard)
        case .start, .arrival, .head, .ended, .placeFreed, .death, .outageBegins, .outageEnds: break
        }
    }

    private mutating func conclude(_ conclusion: DownloadConclusion, _ id: DownloadID, _ shard: Int) {
        guard let place = self.shards[shard].downloads.firstIndex(where: { $0.id == id }) else { return }
        let file = self.shards[shard].downloads.remove(at: place).file
        switch conclusion {
        case .completed(let verified) where !verified.wasThere:
            self.shards[shard].completedAt = self.now
            self.shards[shard].parts[file] = nil
            self.shards[shard].bytesDone += self.scenario.length
            self.bytesDone += self.scenario.length
            self.measureFairness()
        case .failed: self.shards[shard].filesFailed += 1
        case .completed, .paused, .cancelled:
            self.violations.append("shard \(shard): \(conclusion)")
        }
        self.handle(.removed(id), shard)
        self.fill(shard)
    }

    /// Measures how equally the shards have been served when half of all bytes are there.
    private mutating func measureFairness() {
        let total = Int64(self.scenario.shards * self.scenario.files) * self.scenario.length
        guard self.fairness == nil, 2 * self.bytesDone >= total else { return }
        let bytes = self.shards.indices.map { shard -> Double in
            let partial = self.shards[shard].connections.reduce(Int64(0)) { sum, index in
                sum + self.connections[index].offset + self.flows.received(index)
            }
            return Double(self.shards[shard].bytesDone + partial)
        }
        self.fairness = SharingWorld.fairness(bytes, weights: bytes.map { _ in 1 })
    }

    // MARK: Time

    private mutating func later(
        _ kind: FleetEvent.Kind, _ seconds: Double, _ subject: Int, detail: Int = 0, run: Int = 0
    ) {
        self.events.add(kind, at: self.now + Self.time(seconds), subject, detail: detail, run: run)
    }

    private mutating func random(_ most: Double) -> Double {
        most > 0 ? Double.random(in: 0..<most, using: &self.generator) : 0
    }

    /// Rounded up: at that time the bytes have come.
    private static func time(_ seconds: Double) -> Int64 { Int64((seconds * Double(self.second)).rounded(.up)) }
    private static func seconds(_ time: Int64) -> Double { Double(time) / Double(self.second) }
}
