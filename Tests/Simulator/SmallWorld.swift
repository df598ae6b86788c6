import HTTPTypes
package import SegmentedDownloadCore

/// A world small enough to try everything that can happen in it: one file of three segments, two connections, every
/// order of events, and up to a few failures.
///
/// Time passes only by a move of its own, so that most orders lead to the same few states.
package struct SmallWorld: Hashable, Sendable {
    /// What may happen next.
    package enum Move: Hashable, Sendable {
        case head(LeaseID, Head)
        case bytes(LeaseID)
        case end(LeaseID)
        case reset(LeaseID)
        case stall(LeaseID)
        case noSpace(LeaseID)
        case disk(fails: Bool)
        case pause
        case tick
    }

    package enum Head: Hashable, Sendable, CaseIterable {
        case good, short, refused, whole, changed
    }

    private enum Phase: Hashable { case asking, waiting, receiving, stalled, over }

    private struct Connection: Hashable {
        let order: FetchOrder
        var phase = Phase.asking
        var position: Int64
        var limit: Int64
        var responseEnd: Int64 = 0
        var received: Int64 = 0
        var isRevoked = false
        var isDismissed = false

        var observation: LeaseObservation {
            LeaseObservation(
                lease: self.order.lease, position: self.position, bytesReceived: self.received, isWriting: false)
        }
    }

    /// 12 bytes in pieces of 2.
    static let length: Int64 = 12
    private static let pieceLength: Int64 = 2
    private static let connectionsMax = 2
    private static let id = DownloadID(0)
    private static let resource = RemoteResource(
        completeLength: Self.length, validator: Validator(entityTag: EntityTag(fieldValue: "\"a\""), lastModified: nil))

    private let resumes: Bool
    private var machine: GroupStateMachine
    private var now: Duration = .zero
    private var connections: [Connection] = []
    /// The disk's answers to come, in order.
    private var steps: [MachineEvent] = []
    private var written: UInt32
    private var conclusion: DownloadConclusion?
    private var faultsLeft: Int
    private var ticksLeft = 1
    private var pausesLeft = 1
    /// Whether an answer showed a changed resource.
    private var hasChanged = false
    package private(set) var violation: String?

    /// - Parameter resumes: Whether an earlier run left three gaps; otherwise nothing has been fetched.
    package init(faults: Int, resumes: Bool) {
        var limits = GroupStateMachine.Limits()
        limits.connections = Self.connectionsMax
        self.machine = GroupStateMachine(limits: limits)
        self.faultsLeft = faults
        self.written = resumes ? 0b0000_1000_1000 : 0
        var settings = DownloadSettings()
        settings.segments = .exactly(Self.connectionsMax)
        settings.splitLengthMinimum = 2
        settings.stealLengthMinimum = 2
        settings.stallTimeout = .seconds(3)
        settings.headTimeout = .seconds(3)
        settings.host = "host"
        self.resumes = resumes
        self.take(.added(Self.id, settings, seed: 1))
    }

    // MARK: Moves

    package var isOver: Bool { self.machine.isIdle && self.connections.isEmpty && self.steps.isEmpty }

    package var moves: [Move] {
        var moves: [Move] = []
        for connection in self.connections {
            let lease = connection.order.lease
            switch connection.phase {
            case _ where connection.isRevoked || connection.isDismissed: moves.append(.end(lease))
            case .asking:
                moves.append(.head(lease, .good))
                if self.faultsLeft > 0 {
                    moves += Head.allCases.dropFirst().map { .head(lease, $0) } + [.reset(lease), .stall(lease)]
                }
            case .receiving:
                // Of a sample nothing is written.
                let place = connection.order.isSample ? connection.received : connection.position
                moves.append(place < connection.responseEnd ? .bytes(lease) : .end(lease))
                if self.faultsLeft > 0 { moves += [.reset(lease), .stall(lease), .noSpace(lease)] }
            case .waiting, .stalled, .over: break
            }
        }
        if !self.steps.isEmpty {
            moves.append(.disk(fails: false))
            if self.faultsLeft > 0 { moves.append(.disk(fails: true)) }
        }
        if self.faultsLeft > 0, self.pausesLeft > 0, self.conclusion == nil { moves.append(.pause) }
        if moves.allSatisfy({ $0 == .pause }) || self.ticksLeft > 0 { moves.append(.tick) }
        return moves
    }

    /// The world after a move.
    package func after(_ move: Move) -> SmallWorld {
        var world = self
        let isQuiet = self.moves.allSatisfy { $0 == .pause || $0 == .tick }
        world.perform(move, isQuiet: isQuiet)
        world.check()
        return world
    }

    private mutating func perform(_ move: Move, isQuiet: Bool) {
        switch move {
        case .head(let lease, let head): self.answer(lease, head)
        case .bytes(let lease): self.receive(lease)
        case .end(let lease):
            guard let connection = self.connection(lease) else { return }
            self.end(lease, connection.isRevoked ? .revoked : connection.isDismissed ? .stopped : .finished)
        case .reset(let lease):
            self.faultsLeft -= 1
            self.end(lease, .failed(DownloadError(.network, "reset", isTransient: true)))
        case .stall(let lease):
            self.faultsLeft -= 1
            self.update(lease) { $0.phase = .stalled }
        case .noSpace(let lease):
            self.faultsLeft -= 1
            self.end(lease, .storageFailed(DownloadError(.space, "full")))
        case .disk(let fails):
            let event = self.steps.removeFirst()
            if fails {
                self.faultsLeft -= 1
                if case .checkpointed = event {
                    self.take(.download(Self.id, .checkpointFailed(DownloadError(.file, "no sync"))))
                } else {
                    self.take(.download(Self.id, .storageFailed(DownloadError(.file, "no step"))))
                }
            } else {
                self.take(.download(Self.id, event))
            }
        case .pause:
            self.pausesLeft -= 1
            self.take(.download(Self.id, .pause))
        case .tick:
            if !isQuiet { self.ticksLeft -= 1 }
            self.now += .seconds(1)
            self.take(.tick)
        }
    }

    private func connection(_ lease: LeaseID) -> Connection? { self.connections.first { $0.order.lease == lease } }

    private mutating func update(_ lease: LeaseID, _ body: (inout Connection) -> Void) {
        guard let index = self.connections.firstIndex(where: { $0.order.lease == lease }) else { return }
        body(&self.connections[index])
    }

    private mutating func end(_ lease: LeaseID, _ end: LeaseEnd) {
        self.update(lease) { $0.phase = .over }
        self.take(.download(Self.id, .ended(lease, end)))
        self.connections.removeAll { $0.order.lease == lease }
    }

    private mutating func answer(_ lease: LeaseID, _ head: Head) {
        guard let connection = self.connection(lease) else { return }
        if head != .good { self.faultsLeft -= 1 }
        let request = connection.order.request
        let end = min(request.upperBound ?? Self.length, Self.length)
        var fields: HTTPFields = [.eTag: "\"a\""]
        var status = 206
        switch head {
        case .good, .short:
            let end = head == .short ? min(request.lowerBound + Self.pieceLength, end) : end
            fields[.contentRange] = "bytes \(request.lowerBound)-\(end - 1)/\(Self.length)"
        case .changed:
            self.hasChanged = true
            fields = [.eTag: "\"b\"", .contentRange: "bytes \(request.lowerBound)-\(end - 1)/\(Self.length)"]
        case .whole:
            status = 200
            fields[.contentLength] = "\(Self.length)"
        case .refused:
            status = 503
            fields = [:]
        }
        if !request.isRanged, head == .good || head == .short {
            (status, fields) = (200, [.eTag: "\"a\"", .contentLength: "\(Self.length)"])
        }
        let response = RangeResponse(request: request, head: ResponseHead(status: status, fields: fields))
        self.update(lease) {
            $0.phase = .waiting
            $0.responseEnd = response.bodyEnd ?? 0
            $0.received = response.bodyStart
        }
        self.take(.download(Self.id, .responded(lease, response, suggestedName: nil)))
    }

    /// What the fetcher does with a piece: skips bytes before its position, writes up to the limit, asks for more.
    private mutating func receive(_ lease: LeaseID) {
        guard var connection = self.connection(lease) else { return }
        let end = min(connection.received + Self.pieceLength, connection.responseEnd)
        let start = max(connection.received, connection.position)
        let stop = max(min(end, connection.limit), start)
        for offset in start..<stop {
            if self.written & (1 << UInt32(offset)) != 0 { self.violate("byte \(offset) is written twice") }
            self.written |= 1 << UInt32(offset)
        }
        connection.received = stop
        connection.position = max(connection.position, stop)
        let isAtLimit = connection.position >= connection.limit && connection.position < connection.responseEnd
        if isAtLimit { connection.phase = .waiting }
        self.update(lease) { $0 = connection }
        if isAtLimit { self.take(.download(Self.id, .limitReached(lease))) }
    }

    // MARK: What the engine does

    private mutating func take(_ event: GroupEvent) {
        self.machine.observe(Self.id, self.connections.map(\.observation), now: self.now)
        var actions = self.machine.handle(event, now: self.now)
        while !actions.isEmpty {
            switch actions.removeFirst() {
            case .fetch(_, let order):
                if let offset = order.forgetsFrom { self.written &= (1 << UInt32(offset)) - 1 }
                self.connections.append(
                    Connection(order: order, position: order.writesFrom, limit: order.writesFrom))
            case .download(_, let action): actions += self.perform(action)
            case .post: break
            }
        }
    }

    private mutating func perform(_ action: DownloadAction) -> [GroupAction] {
        switch action {
        case .answer(let lease, .proceed(let limit, let from)):
            self.update(lease) { connection in
                guard connection.phase == .waiting else { return }
                connection.position = max(connection.position, from ?? 0)
                connection.limit = max(connection.limit, limit)
                connection.phase = .receiving
            }
        case .answer(let lease, .stop): self.update(lease) { $0.isDismissed = true }
        case .narrow(let lease, let limit):
            var actual = Int64.max
            self.update(lease) {
                $0.limit = min($0.limit, max(limit, $0.position))
                actual = $0.limit
            }
            return self.machine.handle(.download(Self.id, .narrowed(lease, to: actual)), now: self.now)
        case .revoke(let lease): self.update(lease) { $0.isRevoked = true }
        case .survey: self.steps.append(.surveyed(self.survey))
        case .prepare(let preparation):
            switch preparation.mode {
            case .fresh: self.written = 0
            case .adopted: break
            case .adoptedUp(let limit): self.written &= (1 << UInt32(limit)) - 1
            }
            self.steps.append(.prepared())
        case .checkpoint: self.steps.append(.checkpointed(bytes: 0))
        case .revise: self.violate("it revises its only source")
        case .place:
            if self.written != (1 << UInt32(Self.length)) - 1 { self.violate("a file with holes is placed") }
            self.steps.append(.placed(.simulated(length: Int64(Self.length))))
        case .replaceExisting: self.violate("it replaces a file that does not exist")
        case .require: self.violate("it compares a file that does not exist")
        case .interrupt: break
        case .discard: self.steps.append(.discarded)
        case .report: break
        case .conclude(let conclusion):
            if self.conclusion != nil { self.violate("it concludes twice") }
            self.conclusion = conclusion
        }
        return []
    }

    private var survey: Survey {
        guard self.resumes else { return .nothing }
        // Bytes 3 and 7 are present.
        return .partial(
            SavedPartial(resource: Self.resource, completeLength: Self.length, missing: [0..<3, 4..<7, 8..<12]))
    }

    // MARK: Invariants

    private mutating func violate(_ what: String) { self.violation = self.violation ?? what }

    private mutating func check() {
        if self.connections.count > Self.connectionsMax {
            self.violate("\(self.connections.count) connections of \(Self.connectionsMax)")
        }
        let windows = self.connections.map { $0.position..<max($0.position, $0.limit) }.filter { !$0.isEmpty }
        for (index, window) in windows.enumerated() where windows[(index + 1)...].contains(where: window.overlaps) {
            self.violate("two connections may write to \(window)")
        }
        if self.now > .seconds(3600) { self.violate("it does not end") }
        guard self.isOver else {
            if self.moves.isEmpty { self.violate("nothing can happen any more") }
            return
        }
        switch self.conclusion {
        case .completed: break
        case .failed(let failure):
            // Two faults never make a network failure final.
            let mayFail = [.space, .file].contains(failure.code) || (failure.code == .changed && self.hasChanged)
            if !mayFail { self.violate("it fails with \(failure.code): \(failure.message)") }
        case .paused where self.pausesLeft == 0: break
        case let other: self.violate("it ends with \(String(describing: other))")
        }
    }
}

/// Tries everything that can happen in a small world.
package struct Exploration: Sendable {
    package private(set) var states = 0
    package private(set) var ends = 0
    /// The first violation, and the moves that led to it.
    package private(set) var violation: (String, [SmallWorld.Move])?

    /// - Parameter statesMax: The number of states after which to stop, so that a large world ends too.
    package init(of world: SmallWorld, statesMax: Int) {
        var seen: Set<SmallWorld> = [world]
        var stack: [(SmallWorld, [SmallWorld.Move])] = [(world, [])]
        while let (world, path) = stack.popLast(), self.violation == nil, self.states < statesMax {
            self.states += 1
            if let violation = world.violation {
                self.violation = (violation, path)
                return
            }
            if world.isOver {
                self.ends += 1
                continue
            }
            for move in world.moves {
                let next = world.after(move)
                if seen.insert(next).inserted { stack.append((next, path + [move])) }
            }
        }
        self.isComplete = stack.isEmpty
    }

    /// Whether every state was visited.
    package private(set) var isComplete = false
}
