import TestSupport

/// What the background service has acknowledged. The queue and its history must agree with it at any time.
struct ServiceLedger {
    /// What the last acknowledged command wants of an entry.
    enum Wish: Hashable, Sendable {
        case run, pause, cancel
        /// A command was not answered. It may have been carried out or not.
        case unknown
    }

    struct Entry: Sendable {
        let id: String
        let file: ServiceFile
        fileprivate(set) var wish: Wish
        /// Whether it was paused when a daemon started. Before that, it may complete while it is being paused.
        fileprivate var isPauseCertain = false
        /// The priority that was acknowledged last.
        fileprivate var priority: Double?
        /// Its state in the history.
        fileprivate(set) var ending: String?
    }

    let bench: ServiceBench
    private var entries: [String: Entry] = [:]
    /// The IDs that may be in the queue, in their order.
    private var order: [String] = []
    /// Whether every command that changes the order was answered.
    private var isOrderKnown = true
    /// The files whose `add` was not answered. They may be in the queue.
    private var unanswered: [ServiceFile] = []
    /// Reported once, and ignored from then on.
    private var dropped: Set<String> = []

    init(_ bench: ServiceBench) {
        self.bench = bench
    }

    /// The entries that have not ended, by the name of their file.
    func open(_ wish: Wish) -> [Entry] {
        self.entries.values.filter { $0.wish == wish && $0.ending == nil }.sorted { $0.file.name < $1.file.name }
    }

    /// The entries with this row in the history.
    func ended(_ state: String) -> [Entry] { self.entries.values.filter { $0.ending == state } }

    /// The files that were added and have not ended.
    var filesOpen: [ServiceFile] {
        self.entries.values.filter { $0.ending == nil }.map(\.file) + self.unanswered
    }

    var files: [ServiceFile] { self.entries.values.map(\.file) + self.unanswered }

    func id(of file: ServiceFile) -> String? { self.entries.values.first { $0.file == file }?.id }

    // MARK: Commands

    /// Notes how a command ended.
    ///
    /// - Parameter isInterrupted: Whether the daemon or its disk ended meanwhile, so that the command may fail.
    /// - Returns: What is wrong with the answer.
    mutating func note(_ command: ServiceCommand, _ outcome: Child.Outcome, isInterrupted: Bool) -> String? {
        if outcome.status == 0 { return self.acknowledge(command, outcome.output) }
        // 1 is an internal error, and below 0 is a signal.
        if isInterrupted, outcome.status > 1 {
            self.doubt(command)
            return nil
        }
        switch command {
        case .add: break
        // A command for an entry that has just ended is refused, and changes nothing.
        case .pause, .cancel, .move, .priority: if outcome.status == 2 { return nil }
        // This one then looks for a manifest.
        case .resume: if outcome.status == 14 { return nil }
        }
        self.doubt(command)
        return "\(command) ended with \(outcome)"
    }

    private mutating func acknowledge(_ command: ServiceCommand, _ output: String) -> String? {
        switch command {
        case .add(let file, let isPaused, let isFirst):
            let ids = output.split(whereSeparator: \.isWhitespace).map { String($0) }
            guard ids.count == 1 else { return "\(command) printed \(output)" }
            guard self.entries[ids[0]] == nil else { return "\(command) has an ID that was used before, \(ids[0])" }
            self.entries[ids[0]] = Entry(id: ids[0], file: file, wish: isPaused ? .pause : .run)
            self.order.insert(ids[0], at: isFirst ? 0 : self.order.count)
        case .pause(let id): self.entries[id]?.wish = .pause
        case .resume(let id):
            self.entries[id]?.wish = .run
            self.entries[id]?.isPauseCertain = false
        case .cancel(let id): self.entries[id]?.wish = .cancel
        case .move(let id, let isFirst):
            self.order.removeAll { $0 == id }
            self.order.insert(id, at: isFirst ? 0 : self.order.count)
        case .priority(let id, let value): self.entries[id]?.priority = value
        }
        return nil
    }

    /// Notes that a command may have been carried out or not.
    mutating func doubt(_ command: ServiceCommand) {
        switch command {
        case .add(let file, _, _): self.unanswered.append(file)
        case .pause(let id), .cancel(let id): self.entries[id]?.wish = .unknown
        case .resume(let id):
            self.entries[id]?.wish = .unknown
            self.entries[id]?.isPauseCertain = false
        case .move: self.isOrderKnown = false
        case .priority(let id, _): self.entries[id]?.priority = nil
        }
    }

    // MARK: Checks

    /// Compares the queue and its history with what was acknowledged, and finds out what became of the other commands.
    ///
    /// - Parameter afterRestart: Whether no command was given since the daemon has started.
    /// - Returns: What is wrong, and the files whose unanswered `add` was not carried out.
    mutating func check(
        _ snapshot: ServiceSnapshot, afterRestart: Bool
    ) -> (violations: [String], unstored: [ServiceFile]) {
        var violations = snapshot.doubled.map { "\($0) is there more than once" }
        violations += self.checkOrder(of: snapshot.queue)
        for line in snapshot.queue + snapshot.history
        where self.entries[line.id] == nil && !self.dropped.contains(line.id) {
            violations += self.adopt(line)
        }
        let unstored = self.unanswered
        self.unanswered = []
        let queue = Dictionary(snapshot.queue.map { ($0.id, $0) }) { first, _ in first }
        let history = Dictionary(snapshot.history.map { ($0.id, $0) }) { first, _ in first }
        for id in self.entries.keys.sorted() {
            let problem: String?
            if let line = queue[id] {
                problem = self.entries[id]?.check(line, isEnded: false, afterRestart: afterRestart)
            } else if let line = history[id] {
                problem = self.entries[id]?.check(line, isEnded: true, afterRestart: afterRestart)
            } else {
                problem = "it is lost"
            }
            guard let problem, let entry = self.entries[id] else { continue }
            violations.append("\(id) (\(entry.file)): \(problem)")
            self.dropped.insert(id)
            self.entries[id] = nil
        }
        return (violations, unstored)
    }

    private mutating func checkOrder(of queue: [ServiceSnapshot.Line]) -> [String] {
        let ids = queue.map(\.id)
        let there = Set(ids)
        let expected = self.order.filter { self.entries[$0] != nil && there.contains($0) }
        let found = ids.filter { self.entries[$0] != nil }
        defer { (self.order, self.isOrderKnown) = (ids, true) }
        return self.isOrderKnown && found != expected ? ["the queue has the order \(found), not \(expected)"] : []
    }

    /// Finds the unanswered `add` of an entry with an unknown ID.
    private mutating func adopt(_ line: ServiceSnapshot.Line) -> [String] {
        let (directory, origin) = (self.bench.files, self.bench.lab.origin)
        guard let index = self.unanswered.firstIndex(where: { $0.matches(line, in: directory, from: origin) }) else {
            self.dropped.insert(line.id)
            let same = self.entries.values.filter { $0.file.matches(line, in: directory, from: origin) }
            let known = same.map { "\($0.id) for the same file, \($0.wish), \($0.ending ?? "open")" }
            return ["\(line) was not added; there is \(known); without an answer \(self.unanswered)"]
        }
        self.entries[line.id] = Entry(id: line.id, file: self.unanswered.remove(at: index), wish: .unknown)
        return []
    }
}

extension ServiceLedger.Entry {
    /// Compares the entry with its line in the queue or the history.
    fileprivate mutating func check(
        _ line: ServiceSnapshot.Line, isEnded: Bool, afterRestart: Bool
    ) -> String? {
        if let ending = self.ending {
            return isEnded && line.state == ending ? nil : "it was \(ending), and now it is \(line)"
        }
        guard self.states.contains(line.state) else { return "\(self.wish) was acknowledged, and it is \(line)" }
        if let priority = self.priority, !isEnded, line.priority != priority {
            return "the priority \(priority) was acknowledged, and it is \(line.priority ?? 0)"
        }
        if isEnded { self.ending = line.state }
        if line.state == "paused", afterRestart { self.isPauseCertain = true }
        if self.wish == .unknown { self.wish = Self.wish(of: line.state) }
        return nil
    }

    /// The states that agree with the wish. A download may complete before a command reaches it. None may fail.
    private var states: Set<String> {
        switch self.wish {
        case .run: ["waiting", "active", "completed"]
        case .pause: self.isPauseCertain ? ["paused"] : ["paused", "completed"]
        case .cancel: ["cancelling", "cancelled", "completed"]
        case .unknown: ["waiting", "active", "paused", "cancelling", "cancelled", "completed"]
        }
    }

    private static func wish(of state: String) -> ServiceLedger.Wish {
        switch state {
        case "paused": .pause
        case "cancelling", "cancelled": .cancel
        default: .run
        }
    }
}
