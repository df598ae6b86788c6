import SegmentedDownloadCore
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The content of a ``ServerMemory``.
///
/// Only ``load(on:)`` and ``save()`` use the file.
final class ServerRecords: Sendable {
    private struct Record: Codable {
        var connections: Int
        /// When the number was measured, in seconds since 1970.
        var time: Int64
    }

    /// 256: the oldest records beyond this are dropped.
    static let recordsMax = 256
    /// 1 MiB: at most this much is read of the file.
    private static let readMaximum = 1 << 20

    private struct State {
        /// The records read from the file; `nil` until ``ServerRecords/load(on:)``.
        var known: [String: Record]?
        /// Whether a caller reads the file, or has read it.
        var isLoadBegun = false
        /// Callers that wait until another has read the file.
        var waiting: [CheckedContinuation<Void, Never>] = []
        /// The records measured since.
        var observed: [String: Record] = [:]
        /// The number of calls of ``ServerRecords/save()``.
        var saves = 0
    }

    private let memory: ServerMemory
    private let storage: any Storage
    private let clock: any EngineClock
    /// Part of the name of the file that replaces the memory's, so that no other process chooses the same name.
    private let seed: UInt64
    private let state = Mutex(State())

    init(_ memory: ServerMemory, in storage: any Storage, clock: any EngineClock, seed: UInt64) {
        self.memory = memory
        self.storage = storage
        self.clock = clock
        self.seed = seed
    }

    /// Reads the file, once, and returns when it is read.
    func load(on threads: EngineThreads) async {
        let isFirst = self.state.withLock { state in
            defer { state.isLoadBegun = true }
            return !state.isLoadBegun
        }
        guard !isFirst else { return await threads.run(.stepping) { self.load() } }
        await withCheckedContinuation { continuation in
            let isLoaded = self.state.withLock { state in
                if state.known == nil { state.waiting.append(continuation) }
                return state.known != nil
            }
            if isLoaded { continuation.resume() }
        }
    }

    /// Reads the file on the calling thread. Blocks.
    func load() {
        guard self.state.withLock({ $0.known == nil }) else { return }
        let read = self.read()
        let waiting = self.state.withLock { state in
            state.known = state.known ?? read
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// The number of connections that was best for a server; `nil` if there is no record of it.
    func connections(to origin: SourceURL.Origin) -> Int? {
        guard self.memory.includesLoopback || !origin.isLoopback else { return nil }
        return self.state.withLock { state in
            let record = state.observed[origin.text] ?? state.known?[origin.text]
            return record.flatMap { self.isFresh($0) ? max($0.connections, 1) : nil }
        }
    }

    func record(_ connections: Int, for origin: SourceURL.Origin) {
        guard self.memory.includesLoopback || !origin.isLoopback else { return }
        let record = Record(connections: connections, time: self.clock.secondsSinceEpoch)
        self.state.withLock { $0.observed[origin.text] = record }
    }

    /// Writes the measured records to the file. Errors are ignored. Blocks the thread.
    func save() async {
        let (observed, number) = self.state.withLock { state in
            state.saves += 1
            return (state.observed, state.saves)
        }
        guard !observed.isEmpty else { return }
        // Read again: another process may have written since.
        let records = self.read().merging(observed) { $0.time > $1.time ? $0 : $1 }
        let newest = records.sorted { $0.value.time > $1.value.time }.prefix(Self.recordsMax)
        try? await self.write(Dictionary(uniqueKeysWithValues: newest.map { ($0.key, $0.value) }), number)
    }

    /// The records that have not expired. An unreadable or malformed file counts as empty.
    private func read() -> [String: Record] {
        guard let path = try? self.memory.path.text, let file = try? self.storage.open(path, .read) else { return [:] }
        defer { file.close() }
        guard let bytes = try? file.contents(limit: Self.readMaximum),
            let records = try? JSONDecoder().decode([String: Record].self, from: Data(bytes))
        else { return [:] }
        return records.filter { self.isFresh($0.value) }
    }

    private func isFresh(_ record: Record) -> Bool {
        // The file may hold any number, so the difference is computed in floating point.
        let age = Double(self.clock.secondsSinceEpoch) - Double(record.time)
        return age >= 0 && age <= self.memory.lifetime.inSeconds
    }

    /// Replaces the file atomically, so that other processes read either version as a whole.
    private func write(_ records: [String: Record], _ number: Int) async throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = Array(try encoder.encode(records))
        let path = try self.memory.path.text
        // Private, because the records show which servers the user has fetched from.
        try self.storage.makeDirectory(DestinationPaths(path: path).directory, isPrivate: true)
        let draft = "\(path).\(self.seed)-\(number)"
        let file = try self.storage.open(draft, .createPrivate)
        defer { file.close() }
        do throws(StorageError) {
            try file.writeFully(bytes, at: 0)
            try await file.synchronize(metadata: false)
            try self.storage.rename(draft, to: path, replacing: true)
        } catch {
            try? self.storage.remove(draft)
            throw error
        }
    }
}
