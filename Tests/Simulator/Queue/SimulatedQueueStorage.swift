package import SegmentedDownload
import SegmentedDownloadCore
package import SegmentedDownloadService

/// A queue's database in memory. Its transactions take time, may fail, and survive crashes as those of SQLite do with
/// `synchronous=FULL`: whole or not at all, and surely once they have been acknowledged.
package final class SimulatedQueueDatabase: @unchecked Sendable {
    // Unchecked: the whole simulation runs on one thread.

    /// What the database contains.
    package struct Content: Hashable, Sendable {
        package var records: [QueueEntry.ID: QueueRecord] = [:]
        /// The latest row last.
        package var history: [HistoryEntry] = []
        package var settings: [String: String] = [:]
    }

    /// What a process reads.
    package private(set) var content = Content()
    /// What survives a power cut.
    private var durable = Content()
    private var epoch = 0
    private var generator: SplitMix64
    private let clock: SimulatedClock
    package var faults: Faults = []
    /// Failing transactions per thousand.
    package var faultiness = 0
    /// Called after each transaction that changes something.
    package var onCommit: () -> Void = {}
    package private(set) var transactions = 0
    /// Called with each change, for a replay's log.
    package var log: ((String) -> Void)?

    package init(seed: UInt64, clock: SimulatedClock) {
        self.generator = SplitMix64(seed: seed)
        self.clock = clock
    }

    /// Opens the database for one process; every call fails after that process has ended.
    package func open() -> SimulatedQueueStorage { SimulatedQueueStorage(database: self, epoch: self.epoch) }

    /// All entries, in the order of their positions.
    fileprivate func records(_ epoch: Int) async throws(DownloadError) -> [QueueRecord] {
        try await self.read(epoch) { content in
            content.records.values.sorted { ($0.position, $0.id.number) < ($1.position, $1.id.number) }
        }
    }

    /// Ends the process: what it committed stays.
    package func killProcess() { self.epoch += 1 }

    /// Cuts the power: a transaction that is committed and not acknowledged may survive.
    package func cutPower() {
        self.epoch += 1
        if Bool.random(using: &self.generator) { self.durable = self.content } else { self.content = self.durable }
    }

    /// Applies a change to the content, and returns when it is durable.
    fileprivate func commit<Value: Sendable>(
        _ epoch: Int, _ body: (inout Content) -> Value
    ) async throws(DownloadError) -> Value {
        await self.pass()
        try self.check(epoch)
        if self.faults.contains(.noSpace), self.fails() {
            throw DownloadError(.space, "the simulated database is full", isTransient: true)
        }
        if self.faults.contains(.diskErrors), self.fails() {
            throw DownloadError(.file, "the simulated database cannot be written")
        }
        let value = body(&self.content)
        self.transactions += 1
        self.onCommit()
        await self.pass()
        try self.check(epoch)
        // A sync covers earlier transactions as well.
        self.durable = self.content
        await self.pass()
        try self.check(epoch)
        return value
    }

    fileprivate func read<Value: Sendable>(
        _ epoch: Int, _ body: (Content) -> Value
    ) async throws(DownloadError) -> Value {
        await self.pass()
        try self.check(epoch)
        return body(self.content)
    }

    private func pass() async {
        let time = Duration.microseconds(Int.random(in: 0...20_000, using: &self.generator))
        await self.clock.wait(until: self.clock.now + time)
    }

    private func fails() -> Bool { Int.random(in: 0..<1000, using: &self.generator) < self.faultiness }

    private func check(_ epoch: Int) throws(DownloadError) {
        guard epoch == self.epoch else { throw DownloadError(.file, "the process has ended") }
    }
}

/// A queue's storage in one simulated process.
package struct SimulatedQueueStorage: QueueStorage {
    fileprivate let database: SimulatedQueueDatabase
    fileprivate let epoch: Int

    package func opening() async throws(DownloadError) -> QueueOpening {
        QueueOpening(self, try await self.database.records(self.epoch))
    }

    package func apply(_ changes: [QueueChange]) async throws(DownloadError) {
        try await self.database.commit(self.epoch) { content in
            for change in changes {
                self.database.log?(change.text)
                content.apply(change)
            }
        }
    }

    package func history(limit: Int, offset: Int) async throws(DownloadError) -> [HistoryEntry] {
        try await self.database.read(self.epoch) { Array($0.history.reversed().dropFirst(offset).prefix(limit)) }
    }

    package func historyCount() async throws(DownloadError) -> Int {
        try await self.database.read(self.epoch) { $0.history.count }
    }

    package func history(of id: QueueEntry.ID) async throws(DownloadError) -> HistoryEntry? {
        try await self.database.read(self.epoch) { $0.history.last { $0.id == id.rawValue } }
    }

    package func deleteHistory(of ids: [QueueEntry.ID]?) async throws(DownloadError) -> Int {
        let names = ids.map { Set($0.map(\.rawValue)) }
        return try await self.database.commit(self.epoch) { content in
            let before = content.history.count
            content.history.removeAll { names?.contains($0.id) ?? true }
            return before - content.history.count
        }
    }

    package func setting(_ name: String) async throws(DownloadError) -> String? {
        try await self.database.read(self.epoch) { $0.settings[name] }
    }

    package func set(_ name: String, to value: String) async throws(DownloadError) {
        try await self.database.commit(self.epoch) { $0.settings[name] = value }
    }

    package func close() async throws(DownloadError) {}
}

extension SimulatedQueueDatabase.Content {
    package mutating func apply(_ change: QueueChange) {
        switch change {
        case .insert(let record): self.records[record.id] = record
        case .position(let id, let position): self.records[id]?.position = position
        case .state(let id, let state, let attempts):
            self.records[id]?.state = state
            self.records[id]?.attempts = attempts
        case .begun(let id, let request):
            self.records[id]?.request = request
            self.records[id]?.hasBegun = true
        case .request(let id, let request): self.records[id]?.request = request
        case .finish(let id, let row):
            self.records[id] = nil
            self.history.append(row)
        }
    }
}

extension QueueChange {
    /// A few words for a log.
    fileprivate var text: String {
        switch self {
        case .insert(let record): "stores entry \(record.id.number)"
        case .position(let id, let position): "stores entry \(id.number) at \(position)"
        case .state(let id, let state, _): "stores entry \(id.number) as \(state)"
        case .begun(let id, _): "stores entry \(id.number) as begun"
        case .request(let id, _): "stores another request of entry \(id.number)"
        case .finish(let id, let row): "stores the end of entry \(id.number): \(row.outcome)"
        }
    }
}
