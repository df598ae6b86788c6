package import SegmentedDownloadCore

/// Many downloads that share connections and bandwidth, from origins without faults.
///
/// Time advances in steps. Every connection receives bytes at the same rate, at the rate that a limit allows, or at the
/// rate of a ``Link``.
package struct SharingWorld {
    package struct Download {
        package let id: DownloadID
        package let length: Int64
        package fileprivate(set) var bytes: Int64 = 0
        package fileprivate(set) var conclusion: DownloadConclusion?
        package fileprivate(set) var startedAt: Duration?
        package fileprivate(set) var connectedAt: Duration?
        /// When the last byte was received.
        package fileprivate(set) var receivedAt: Duration?
        package fileprivate(set) var concludedAt: Duration?
    }

    private struct Connection {
        let download: DownloadID
        let order: FetchOrder
        let host: String
        var phase = Phase.asking
        var headAt: Duration
        /// The connection's number on the link, if there is one.
        var flow: Int?
        /// The next byte of the response.
        var offset: Int64
        /// The next byte to write.
        var position: Int64
        var limit: Int64
        var responseEnd: Int64 = 0
        var isRevoked = false
        var ticket: RateBudget.Ticket?

        var observation: LeaseObservation {
            LeaseObservation(
                lease: self.order.lease, position: self.position,
                bytesReceived: self.offset - self.order.request.lowerBound, isWriting: false,
                isHeld: self.ticket != nil)
        }
    }

    private enum Phase: Hashable { case asking, waiting, receiving, stopped, over }

    private let step: Duration
    package private(set) var now: Duration = .zero
    private var machine: GroupStateMachine
    private var rates = RateBudget()
    private var limits: GroupStateMachine.Limits
    private var generator: SplitMix64
    private var isLimited = false
    package private(set) var downloads: [Download] = []
    private var connections: [Connection] = []
    private var answers: [(at: Duration, event: GroupEvent)] = []
    /// Bytes per second of each connection.
    private let connectionRate: Int64
    private let latency: Duration
    private var link: Link?
    /// The bytes that the link delivers in this step, by its connections' numbers.
    private var brought: [Int: Int64] = [:]
    /// Bytes received that were written already.
    package private(set) var duplicated: Int64 = 0
    /// Bytes in flight when their connection was closed.
    package private(set) var abandoned: Int64 = 0
    /// Requests refused because the server had too many.
    package private(set) var refusals = 0
    /// Connections revoked before their download had all its bytes.
    package private(set) var revocations = 0
    package private(set) var connectionsPeak = 0
    package private(set) var violations: [String] = []
    /// The events and actions, if `isTracing`.
    package private(set) var trace: [String] = []
    private let isTracing: Bool

    package init(
        seed: UInt64, limits: GroupStateMachine.Limits, connectionRate: Int64 = 1 << 20,
        latency: Duration = .milliseconds(40), link: Link? = nil, step: Duration = .milliseconds(10),
        isTracing: Bool = false
    ) {
        self.isTracing = isTracing
        self.link = link
        self.step = step
        self.generator = SplitMix64(seed: seed)
        self.limits = limits
        self.machine = GroupStateMachine(limits: limits)
        self.connectionRate = connectionRate
        self.latency = latency
    }

    // MARK: The user's actions

    @discardableResult
    package mutating func add(
        _ length: Int64, priority: Double = 0.5, segments: DownloadOptions.Segments = .exactly(16),
        host: String = "host"
    ) -> Int {
        let number = self.downloads.count
        var settings = DownloadSettings()
        settings.segments = segments
        settings.priority = priority
        settings.host = host
        self.downloads.append(Download(id: DownloadID(number), length: length))
        self.rates.update(DownloadID(number), weight: GroupStateMachine.weight(of: priority))
        self.take(.added(DownloadID(number), settings, seed: self.generator.next()))
        return number
    }

    package mutating func update(_ limits: GroupStateMachine.Limits) {
        self.limits = limits
        self.take(.limits(limits))
    }

    package mutating func update(bytesPerSecond: Int64?) {
        self.isLimited = bytesPerSecond != nil
        self.rates.update(.init(total: bytesPerSecond), now: self.now)
        self.take(.rateChanged)
    }

    package mutating func update(_ number: Int, priority: Double) {
        self.rates.update(DownloadID(number), weight: GroupStateMachine.weight(of: priority))
        self.take(.priority(DownloadID(number), priority))
    }

    package mutating func update(_ number: Int, segments: DownloadOptions.Segments) {
        self.take(.segments(DownloadID(number), segments))
    }

    package mutating func pause(_ number: Int) { self.take(.download(DownloadID(number), .pause)) }
    package mutating func resume(_ number: Int) {
        self.downloads[number].conclusion = nil
        self.take(.download(DownloadID(number), .resume))
    }

    // MARK: Observations

    package func connections(_ number: Int) -> Int {
        self.connections.count { $0.download.rawValue == number && !$0.isRevoked && $0.phase != .over }
    }

    package var connectionsOpen: Int { self.connections.count }

    package func connectionsOpen(host: String) -> Int { self.connections.count { $0.host == host } }

    package var isOver: Bool { self.machine.isIdle && self.connections.isEmpty && self.answers.isEmpty }

    /// Jain's index: 1 if every download has exactly its share, 1/n if one has everything.
    package static func fairness(_ shares: [Double], weights: [Double]) -> Double {
        let normed = zip(shares, weights).map { $0 / $1 }
        let sum = normed.reduce(0, +)
        let squares = normed.reduce(0) { $0 + $1 * $1 }
        return squares == 0 ? 1 : sum * sum / (Double(normed.count) * squares)
    }

    /// Advances the time; calls `look` after every step.
    package mutating func run(for time: Duration, _ look: (SharingWorld) -> Void = { _ in }) {
        let end = self.now + time
        while self.now < end, self.violations.isEmpty {
            self.advance()
            look(self)
        }
    }

    /// Advances the time until everything is at rest, or until the patience ends.
    package mutating func runToEnd(patience: Duration) {
        let end = self.now + patience
        while !self.isOver, self.now < end, self.violations.isEmpty { self.advance() }
        if !self.isOver { self.violations.append("not at rest after \(patience)") }
    }

    private mutating func advance() {
        self.now += self.step
        let due = self.answers.filter { $0.at <= self.now }
        self.answers.removeAll { $0.at <= self.now }
        for answer in due { self.take(answer.event) }
        self.bring()
        for index in self.connections.indices.shuffled(using: &self.generator) { self.move(index) }
        self.grant()
        self.connections.removeAll { $0.phase == .over }
        if self.now.components.attoseconds % 100_000_000_000_000_000 == 0 { self.take(.tick) }
    }

    // MARK: The network's part

    private mutating func bring() {
        guard self.link != nil else { return }
        let flows = self.connections.filter { $0.phase == .receiving && !$0.isRevoked }.compactMap(\.flow)
        let bytes = self.link?.advance(by: self.step.inSeconds, flows) ?? []
        self.brought = Dictionary(uniqueKeysWithValues: zip(flows, bytes))
    }

    private mutating func move(_ index: Int) {
        let connection = self.connections[index]
        guard connection.phase != .over else { return }
        if connection.isRevoked { return self.end(index, .revoked) }
        switch connection.phase {
        case .asking:
            if connection.headAt <= self.now { self.answerRequest(index) }
        case .receiving:
            guard connection.offset < connection.responseEnd else { return self.end(index, .finished) }
            if let flow = connection.flow {
                self.receive(index, self.brought[flow] ?? 0)
            } else if !self.isLimited, connection.ticket == nil {
                self.receive(index, Int64(Double(self.connectionRate) * self.step.inSeconds))
            } else if connection.ticket == nil {
                let length = self.rates.chunkLength(connection.download, host: connection.host)
                self.connections[index].ticket = self.rates.request(
                    length, for: connection.download, host: connection.host)
            }
        case .stopped: self.end(index, .stopped)
        case .waiting, .over: break
        }
    }

    private mutating func grant() {
        // Each granted piece is requested again at once, so that only the limit restricts the rate.
        for grant in self.rates.grant(now: self.now) {
            guard let index = self.connections.firstIndex(where: { $0.ticket == grant.ticket }) else { continue }
            self.connections[index].ticket = nil
            if !self.connections[index].isRevoked { self.receive(index, Int64(grant.length)) }
        }
    }

    private mutating func answerRequest(_ index: Int) {
        let connection = self.connections[index]
        let download = self.downloads[connection.download.rawValue]
        let request = connection.order.request
        let range = request.lowerBound..<(request.upperBound ?? download.length)
        let resource = RemoteResource(
            completeLength: download.length,
            validator: Validator(entityTag: EntityTag(fieldValue: "\"a\""), lastModified: nil))
        self.connections[index].phase = .waiting
        if let served = self.link?.model.servedMax, self.serving(connection.host) > served {
            self.refusals += 1
            return self.tell(
                connection,
                .responded(connection.order.lease, .refused(status: 503, retryAfter: nil), suggestedName: nil))
        }
        self.connections[index].responseEnd = range.upperBound
        self.tell(
            connection, .responded(connection.order.lease, .partial(ByteRange(range), resource), suggestedName: nil))
    }

    /// Requests that the server has begun to answer.
    private func serving(_ host: String) -> Int {
        self.connections.count { $0.host == host && [.waiting, .receiving].contains($0.phase) }
    }

    private mutating func receive(_ index: Int, _ count: Int64) {
        let connection = self.connections[index]
        let end = max(min(connection.offset + count, connection.limit), connection.offset)
        let written = max(end - max(connection.position, connection.offset), 0)
        self.connections[index].offset = end
        self.connections[index].position = max(end, connection.position)
        let number = connection.download.rawValue
        self.downloads[number].bytes += written
        if written > 0, self.downloads[number].bytes >= self.downloads[number].length {
            self.downloads[number].receivedAt = self.now
        }
        self.duplicated += end - connection.offset - written
        if end >= connection.limit, end < connection.responseEnd {
            self.connections[index].phase = .waiting
            self.tell(connection, .limitReached(connection.order.lease))
        }
    }

    private mutating func end(_ index: Int, _ end: LeaseEnd) {
        let connection = self.connections[index]
        self.connections[index].phase = .over
        if let ticket = connection.ticket { self.rates.withdraw(ticket) }
        self.connections[index].ticket = nil
        if let flow = connection.flow {
            if !connection.isRevoked, connection.offset >= connection.responseEnd {
                self.link?.keep(flow)
            } else {
                self.abandoned += max(
                    min(self.link?.inFlight(flow) ?? 0, connection.responseEnd - connection.offset), 0)
            }
        }
        self.tell(connection, .ended(connection.order.lease, end))
    }

    private mutating func tell(_ connection: Connection, _ event: MachineEvent) {
        self.take(.download(connection.download, event))
    }

    // MARK: What the engine does

    private mutating func note(_ what: () -> String) {
        guard self.isTracing else { return }
        let bytes = self.downloads.reduce(0) { $0 + $1.bytes }
        let counts = "\(self.connections.count { $0.phase == .receiving }) of \(self.connections.count)"
        self.trace.append("\(self.now) \(bytes) B, \(counts): \(what())")
    }

    private mutating func take(_ event: GroupEvent) {
        if case .tick = event {} else { self.note { "receives \(event)" } }
        for download in self.downloads where download.startedAt != nil && download.conclusion == nil {
            let observations = self.connections.filter { $0.download == download.id }.map(\.observation)
            self.machine.observe(download.id, observations, now: self.now)
        }
        var actions = self.machine.handle(event, now: self.now)
        while !actions.isEmpty {
            let action = actions.removeFirst()
            self.note { "orders \(action)" }
            switch action {
            case .fetch(let id, let order): self.open(id, order)
            case .download(let id, let action): actions += self.perform(action, id)
            case .post: break
            }
        }
    }

    private mutating func open(_ id: DownloadID, _ order: FetchOrder) {
        let host = self.machine.machine(id)?.settings.host ?? ""
        let request = self.link?.request()
        let latency = request.map { $0.delay.isFinite ? .seconds($0.delay) : .seconds(1 << 20) } ?? self.latency
        self.connections.append(
            Connection(
                download: id, order: order, host: host, headAt: self.now + latency, flow: request?.flow,
                offset: order.request.lowerBound, position: order.writesFrom, limit: order.writesFrom))
        let number = id.rawValue
        self.downloads[number].connectedAt = self.downloads[number].connectedAt ?? self.now
        let open = self.connections.count { $0.phase != .over }
        self.connectionsPeak = max(self.connectionsPeak, open)
        if open > self.limits.connections { self.violations.append("\(open) connections at \(self.now)") }
        let perHost = self.connections.count { $0.host == host && $0.phase != .over }
        if perHost > self.limits.connectionsPerHost {
            self.violations.append("\(perHost) connections to \(host) at \(self.now)")
        }
    }

    private func index(_ lease: LeaseID, _ id: DownloadID) -> Int? {
        self.connections.firstIndex { $0.order.lease == lease && $0.download == id && $0.phase != .over }
    }

    private mutating func perform(_ action: DownloadAction, _ id: DownloadID) -> [GroupAction] {
        switch action {
        case .answer(let lease, .proceed(let limit, let from)):
            guard let index = self.index(lease, id) else { break }
            self.connections[index].position = max(self.connections[index].position, from ?? 0)
            self.connections[index].limit = limit
            self.connections[index].phase = .receiving
        case .answer(let lease, .stop):
            if let index = self.index(lease, id) { self.connections[index].phase = .stopped }
        case .narrow(let lease, let limit):
            var actual = Int64.max
            if let index = self.index(lease, id) {
                actual = min(self.connections[index].limit, max(limit, self.connections[index].position))
                self.connections[index].limit = actual
            }
            return self.machine.handle(.download(id, .narrowed(lease, to: actual)), now: self.now)
        case .revoke(let lease):
            guard let index = self.index(lease, id) else { break }
            self.connections[index].isRevoked = true
            if self.downloads[id.rawValue].bytes < self.downloads[id.rawValue].length { self.revocations += 1 }
        case .survey:
            self.downloads[id.rawValue].startedAt = self.now
            self.later(id, .surveyed(.nothing))
        case .prepare: self.later(id, .prepared())
        case .checkpoint: self.later(id, .checkpointed(bytes: self.downloads[id.rawValue].bytes))
        case .place:
            let download = self.downloads[id.rawValue]
            if download.bytes != download.length {
                self.violations.append("\(download.bytes) of \(download.length) bytes are placed")
            }
            self.later(id, .placed(.simulated(length: download.length)))
        case .revise: self.violations.append("a download revises its only source")
        case .require: self.violations.append("a download compares a file that does not exist")
        case .replaceExisting: self.violations.append("a download replaces a file that does not exist")
        case .interrupt, .report: break
        case .discard: self.later(id, .discarded)
        case .conclude(let conclusion):
            self.downloads[id.rawValue].conclusion = conclusion
            self.downloads[id.rawValue].concludedAt = self.now
        }
        return []
    }

    private mutating func later(_ id: DownloadID, _ event: MachineEvent) {
        let delay = Duration.milliseconds(Int.random(in: 1...20, using: &self.generator))
        self.answers.append((self.now + delay, .download(id, event)))
    }
}
