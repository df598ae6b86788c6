import ChildProcess
import Foundation
import Origin
import SegmentedDownloadCore
import Synchronization
import TestSupport

/// One queue through many runs of the daemon: gives commands, and checks that what was acknowledged stays.
final class ServiceSession {
    let bench: ServiceBench
    let report: Report
    /// What happens now, for the text of violations.
    var moment = ""
    var generator: SplitMix64
    /// The files that are to be added next.
    var pending: [ServiceFile] = []
    private(set) var ledger: ServiceLedger
    private let options: [String]
    private let replay: String
    private var filesCount = 0
    /// How long the last start and the last command took, from which random moments within them are drawn.
    private var startTime: Duration = .milliseconds(200)
    private var commandTime: Duration = .milliseconds(50)
    /// The names of files that were compared.
    private var verified: Set<String> = []

    /// 4: if more entries were paused at a time, few bytes would be fetched.
    private static let pausedMax = 4

    /// - Parameter options: Those of the daemon.
    init(_ bench: ServiceBench, options: [String], seed: UInt64, report: Report, replay: String) {
        self.bench = bench
        self.ledger = ServiceLedger(bench)
        self.options = options
        self.generator = SplitMix64(seed: seed)
        self.report = report
        self.replay = replay
    }

    func violation(_ what: String) { self.report.violation("\(self.moment): \(what)", replay: self.replay) }

    // MARK: The daemon

    /// Runs the daemon while `body` does, and kills it at the end.
    ///
    /// - Parameter mayExit: Whether it may end before, because its disk does.
    func withDaemon(mayExit: Bool = false, _ body: (ServiceDaemon) async throws -> Void) async throws {
        let daemon = try self.bench.start(self.options)
        do {
            try await body(daemon)
        } catch {
            _ = await daemon.end()
            throw error
        }
        switch await daemon.end() {
        case .signaled(SIGKILL): break
        case .exited where mayExit: break
        case .exited(let status): self.violation("the daemon exited with \(status): \(self.bench.messages)")
        case .signaled(let number): self.violation("signal \(number) ended the daemon: \(self.bench.messages)")
        }
    }

    /// Waits until the daemon answers, and checks what it has kept.
    func begin(_ daemon: ServiceDaemon) async throws {
        let start = ContinuousClock.now
        guard await daemon.isReady() else {
            throw ServiceBench.Failure("the daemon does not start: \(self.bench.messages)")
        }
        self.startTime = ContinuousClock.now - start
        try await self.check(afterRestart: true)
    }

    /// Waits for a random moment while the daemon starts, or just after it.
    func waitWithinStart() async {
        try? await Task.sleep(for: self.startTime * Double.random(in: 0..<1.25, using: &self.generator))
    }

    // MARK: Commands

    /// A further file, which is not added yet.
    func newFile(
        length: Int64, pace: String, naming: ServiceFile.Naming = .url, serving: ServiceFile.Serving = .ranges,
        isVictim: Bool = false, options: [String] = []
    ) -> ServiceFile {
        self.filesCount += 1
        return ServiceFile(
            self.filesCount, in: self.bench.name, length: length, pace: pace, naming: naming, serving: serving,
            isVictim: isVictim, options: options)
    }

    /// A random command for an entry; nil if the one that was drawn applies to none.
    func draw() -> ServiceCommand? {
        let (running, paused) = (self.ledger.open(.run), self.ledger.open(.pause))
        let entries: [ServiceLedger.Entry]
        let choice = Int.random(in: 0..<8, using: &self.generator)
        switch choice {
        case 0, 1: entries = paused.count < Self.pausedMax ? running : []
        case 2, 3: entries = paused
        case 4: entries = (running + paused).filter(\.file.isVictim)
        default: entries = running + paused
        }
        guard let id = entries.randomElement(using: &self.generator)?.id else { return nil }
        switch choice {
        case 0, 1: return .pause(id)
        case 2, 3: return .resume(id)
        case 4: return .cancel(id)
        case 5, 6: return .move(id, first: Bool.random(using: &self.generator))
        // Exact in binary, so that they are read back unchanged.
        default: return .priority(id, Bool.random(using: &self.generator) ? 0.25 : 0.75)
        }
    }

    /// Runs a command, and notes what was acknowledged.
    ///
    /// - Parameter isInterrupted: Whether the daemon's disk is gone, so that the command may fail.
    func issue(_ command: ServiceCommand, isInterrupted: Bool = false) async throws {
        let start = ContinuousClock.now
        let outcome = try await self.bench.client(command.arguments(self.bench))
        if !isInterrupted { self.commandTime = ContinuousClock.now - start }
        self.note(command, outcome, isInterrupted: isInterrupted)
    }

    /// Runs a command, and calls `interrupt` at a random moment meanwhile.
    ///
    /// - Parameter trustsLateAnswer: Whether an answer that comes after the interruption counts. After a power cut there
    ///   would be none: it comes only because the file system is shut down and the machine is not, and a sync that runs
    ///   at that moment has reported success without being durable (once in 1,300 cuts).
    func issue(
        _ command: ServiceCommand, trustsLateAnswer: Bool, interrupt: () throws -> Void
    ) async throws {
        let delay = self.commandTime * Double.random(in: 0..<1.25, using: &self.generator)
        let (bench, arguments) = (self.bench, command.arguments(self.bench))
        let isAnswered = Atomic(false)
        async let answer = {
            let outcome = try await bench.client(arguments)
            isAnswered.store(true, ordering: .sequentiallyConsistent)
            return outcome
        }()
        try? await Task.sleep(for: delay)
        let isEarly = isAnswered.load(ordering: .sequentiallyConsistent)
        try interrupt()
        let outcome = try await answer
        if outcome.status == 0, !isEarly, !trustsLateAnswer {
            self.report.count("commands answered after the cut")
            self.ledger.doubt(command)
        } else {
            self.note(command, outcome, isInterrupted: true)
        }
    }

    private func note(_ command: ServiceCommand, _ outcome: Child.Outcome, isInterrupted: Bool) {
        self.report.count(outcome.status == 0 ? "commands acknowledged" : "commands not acknowledged")
        if let problem = self.ledger.note(command, outcome, isInterrupted: isInterrupted) { self.violation(problem) }
    }

    /// Adds all files that are still to be added.
    func addPending() async throws {
        let files = self.pending
        self.pending = []
        for file in files { try await self.issue(.add(file)) }
    }

    /// Resumes all paused entries but some, and waits until the others have ended.
    ///
    /// - Parameters:
    ///   - count: The number of entries that may stay paused.
    ///   - limit: How long the downloads may take.
    func settle(keepingPaused count: Int = 0, atMost limit: Duration) async throws {
        try await self.addPending()
        for entry in self.ledger.open(.pause).dropFirst(count) { try await self.issue(.resume(entry.id)) }
        try await self.waitForCancelled()
        try await self.check(afterRestart: false)
        let ids = self.ledger.open(.run).map(\.id)
        let paused = self.ledger.open(.pause)
        if !ids.isEmpty || paused.isEmpty {
            let entries = paused.isEmpty ? ["--all"] : ids
            let outcome = try await self.bench.client(["wait", "--no-autostart"] + entries, deadline: limit)
            if outcome.status != 0 { self.violation("wait \(entries.joined(separator: " ")) ended with \(outcome)") }
        }
        try await self.check(afterRestart: false)
        let rest: [ServiceLedger.Entry] =
            self.ledger.open(.run) + self.ledger.open(.cancel) + Array(self.ledger.open(.pause).dropFirst(count))
        for entry in rest {
            self.violation("\(entry.id) (\(entry.file)) has not ended")
        }
    }

    /// Waits until no entry is being cancelled: `wait` would report it as failed.
    private func waitForCancelled() async throws {
        // 1,000 lists take half a minute, and a cancellation takes a moment.
        for _ in 0..<1_000 where try await self.bench.list("cancelling").isEmpty { return }
        self.violation("an entry is being cancelled for ever")
    }

    // MARK: Checks

    /// Compares the queue and its history with what was acknowledged.
    ///
    /// - Parameter afterRestart: Whether no command was given since the daemon has started.
    func check(afterRestart: Bool) async throws {
        let snapshot = try await self.bench.snapshot()
        let (violations, unstored) = self.ledger.check(snapshot, afterRestart: afterRestart)
        for violation in violations { self.violation(violation) }
        self.pending = unstored + self.pending
    }

    /// Compares every file that has appeared under its final name.
    func checkNames() {
        for file in self.ledger.files + self.pending
        where !self.verified.contains(file.name) && self.exists(file) {
            let mismatch = OriginContent(seed: file.seed)
                .firstMismatch(inFileAt: "\(self.bench.files)/\(file.name)", length: file.length)
            if let mismatch { self.violation("\(file) is wrong at \(mismatch)") }
            self.verified.insert(file.name)
        }
    }

    func exists(_ file: ServiceFile) -> Bool {
        FileManager.default.fileExists(atPath: "\(self.bench.files)/\(file.name)")
    }

    /// The names in the directory that belong to no entry which has not ended.
    func namesOfEnded() throws -> [String] {
        let open = self.ledger.filesOpen.map(\.name)
        return try FileManager.default.contentsOfDirectory(atPath: self.bench.files).filter { name in
            !open.contains { name.hasPrefix($0) }
        }.sorted()
    }
}

/// Runs `body`, and cancels it when the time is over.
func within(_ limit: Duration, _ body: @escaping @Sendable () async -> Void) async {
    await withTaskGroup(of: Void.self) { group in
        group.addTask { await body() }
        group.addTask { try? await Task.sleep(for: limit) }
        await group.next()
        group.cancelAll()
    }
}
