import SegmentedDownload
import SegmentedDownloadCore
import SegmentedDownloadService

/// A user of a queue, who adds files and sends commands, and notes in a ledger what must be so.
final class QueueUser: @unchecked Sendable {
    // Unchecked: the whole simulation runs on one thread.
    private let ledger: QueueLedger
    private let clock: SimulatedClock
    private let fileCount: Int
    private var generator: SplitMix64
    private var idNext: UInt64 = 1
    private(set) var commands = 0
    /// The entries of commands that are under way: what two commands at once do depends on which one is first.
    private var busy: Set<QueueEntry.ID> = []
    /// Whether the process has ended: a command that fails may then have taken effect.
    var isCrashed = false
    var log: ((String) -> Void)?

    init(_ ledger: QueueLedger, clock: SimulatedClock, fileCount: Int, seed: UInt64) {
        self.ledger = ledger
        self.clock = clock
        self.fileCount = fileCount
        self.generator = SplitMix64(seed: seed)
    }

    // MARK: Scripts

    /// Sends commands with pauses between them.
    func act(on queue: DownloadQueue, _ count: Int) async {
        for _ in 0..<count {
            let pause = Duration.milliseconds(Int.random(in: 0...3000, using: &self.generator))
            guard (try? await self.clock.sleep(until: self.clock.now + pause)) != nil, !self.isCrashed else { return }
            self.commands += 1
            do throws(DownloadError) {
                try await self.command(queue)
            } catch {
                self.log?("\(self.clock.now) a command failed: \(error)")
            }
        }
    }

    private func command(_ queue: DownloadQueue) async throws(DownloadError) {
        let id = self.ledger.expectations.keys.filter { !self.busy.contains($0) }.sorted { $0.number < $1.number }
            .randomElement(using: &self.generator)
        guard let id, Int.random(in: 0..<3, using: &self.generator) > 0 else { return try await self.add(to: queue) }
        switch Int.random(in: 0..<12, using: &self.generator) {
        case 0, 1, 2: try await self.pause(id, queue)
        case 3, 4, 5: try await self.resume(id, queue)
        case 6: try await self.cancel(id, queue)
        case 7: try await queue.move(id, to: Int.random(in: 0...5, using: &self.generator))
        case 8:
            var limits = DownloadLimits()
            limits.connections = Int.random(in: 1...12, using: &self.generator)
            limits.downloads = Int.random(in: 1...4, using: &self.generator)
            try await queue.update(limits)
        case 9:
            try await queue.hold(true)
            try? await self.clock.sleep(until: self.clock.now + .seconds(2))
            try await queue.hold(false)
        case 10: try await self.changeURL(of: id, queue)
        default:
            let priority = Double.random(in: 0.1...1, using: &self.generator)
            let count = Int.random(in: 1...4, using: &self.generator)
            _ = try await queue.update(id) { (request) throws(DownloadError) in
                request.priority = priority
                request.segments = .exactly(count)
            }
        }
    }

    /// Runs everything that is paused or failed, again and again, until nothing is left.
    ///
    /// - Returns: What is left.
    func finish(_ queue: DownloadQueue, attempts: Int) async -> [String] {
        do throws(DownloadError) {
            for _ in 0..<attempts {
                for entry in try await queue.entries() {
                    // A wrong length that a server stated is in the manifest. The error tells the user to start over.
                    if entry.error?.code == .changed {
                        try await queue.update(entry.id) { (request) throws(DownloadError) in
                            request.onChange = .restart
                        }
                    }
                    try await self.resume(entry.id, queue)
                }
                for await _ in queue.changes {
                    let entries = try await queue.entries()
                    if !entries.contains(where: { [.waiting, .active, .cancelling].contains($0.state) }) { break }
                }
            }
            // Without a stated length, a file of another entry, or one that a crash left unrecorded, proves nothing.
            return try await queue.entries().filter { $0.error?.code != .exists }
                .map { "entry \($0.id.number), \($0.state), \($0.error?.message ?? "")" }
        } catch {
            return ["the queue fails: \(error)"]
        }
    }

    // MARK: Commands

    private func add(to queue: DownloadQueue) async throws(DownloadError) {
        var files: [(id: QueueEntry.ID, file: Int, path: String)] = []
        var requests: [DownloadRequest] = []
        for _ in 0..<[1, 1, 2, 4][Int.random(in: 0..<4, using: &self.generator)] {
            let id = QueueEntry.ID(self.idNext)
            self.idNext += 1
            let file = Int.random(in: 0..<self.fileCount, using: &self.generator)
            // Every third file goes where another entry's may go.
            let copy = Int.random(in: 0..<3, using: &self.generator) == 0 ? 0 : id.number
            let name = "copy\(copy)-file\(file)"
            files.append((id, file, "\(QueueSimulation.directory)/\(name)"))
            var request = DownloadRequest(
                try SourceURL("http://origin/file\(file)"), to: .file(FilePath(name)))
            request.segments = [.automatic, .exactly(2)].randomElement(using: &self.generator) ?? .automatic
            request.splitLengthMinimum = 1 << Int64.random(in: 8...16, using: &self.generator)
            request.stallTimeout = .seconds(5)
            request.headTimeout = .seconds(4)
            requests.append(request)
        }
        let isPaused = Int.random(in: 0..<4, using: &self.generator) == 0
        let isFirst = Bool.random(using: &self.generator)
        let after: Set<QueueLedger.Place> = isPaused ? [.paused] : Self.running
        self.ledger.expect(files)
        self.busy.formUnion(files.map(\.id))
        defer { self.busy.subtract(files.map(\.id)) }
        for (id, _, _) in files { _ = self.ledger.send(id, after) }
        self.log?("\(self.clock.now) add \(files.map(\.id.number)) of \(files.map(\.file))")
        let ids = Dictionary(uniqueKeysWithValues: files.enumerated().map { ($0, $1.id) })
        do throws(DownloadError) {
            try await queue.add(requests, ids: ids, paused: isPaused, first: isFirst)
        } catch {
            if !self.isCrashed { for (id, _, _) in files { self.ledger.answer(id, [.absent]) } }
            throw error
        }
        for (id, _, _) in files { self.ledger.answer(id, after) }
    }

    /// Where an entry may be that is to run.
    private static let running: Set<QueueLedger.Place> = [.queued, .failed, .completed]

    private func pause(_ id: QueueEntry.ID, _ queue: DownloadQueue) async throws(DownloadError) {
        try await self.send(id, "pause", to: [.paused, .completed]) { () throws(DownloadError) in
            try await queue.pause([id])
        }
    }

    private func resume(_ id: QueueEntry.ID, _ queue: DownloadQueue) async throws(DownloadError) {
        try await self.send(id, "resume", to: Self.running) { () throws(DownloadError) in
            try await queue.resume([id])
        }
    }

    /// Changes the URL of an entry, which may run.
    private func changeURL(of id: QueueEntry.ID, _ queue: DownloadQueue) async throws(DownloadError) {
        let file = Int.random(in: 0..<self.fileCount, using: &self.generator)
        // Where other entries' files may go, theirs would be taken for it.
        guard let path = self.ledger.expectations[id]?.path, !path.contains("/copy0-") else { return }
        let source = try SourceURL("http://origin/file\(file)")
        let before = self.ledger.sendChange(id, to: file)
        self.busy.insert(id)
        defer { self.busy.remove(id) }
        self.log?("\(self.clock.now) change \(id.number) to file \(file)")
        do throws(DownloadError) {
            let isChanged = try await queue.update(id) { (request) throws(DownloadError) in request.source = source }
            self.ledger.answerChange(id, from: before, to: isChanged ? file : nil)
        } catch {
            if !self.isCrashed { self.ledger.answerChange(id, from: before, to: nil) }
            throw error
        }
    }

    private func cancel(_ id: QueueEntry.ID, _ queue: DownloadQueue) async throws(DownloadError) {
        let keepingPartial = Bool.random(using: &self.generator)
        // Failed: a partial file that cannot be deleted.
        let places: Set<QueueLedger.Place> = [.cancelling, .cancelled, .completed, .failed]
        let word = keepingPartial ? "cancel" : "delete"
        try await self.send(id, word, to: places, deletes: !keepingPartial) { () throws(DownloadError) in
            try await queue.cancel([id], keepingPartial: keepingPartial)
        }
    }

    /// Sends a command about one entry.
    private func send(
        _ id: QueueEntry.ID, _ word: String, to places: Set<QueueLedger.Place>, deletes: Bool = false,
        _ command: () async throws(DownloadError) -> [QueueEntry.ID]
    ) async throws(DownloadError) {
        let before = self.ledger.send(id, places)
        self.busy.insert(id)
        defer { self.busy.remove(id) }
        self.log?("\(self.clock.now) \(word) \(id.number)")
        do throws(DownloadError) {
            // Without an effect, the entry was in another state, or has left the queue.
            let changed = try await command().contains(id)
            self.ledger.answer(id, changed ? places : before, deletes: changed ? deletes : nil)
        } catch {
            if !self.isCrashed { self.ledger.answer(id, before) }
            throw error
        }
    }
}
