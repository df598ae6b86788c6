import SegmentedDownloadCore
import Synchronization
import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The content of a ``ServerMemory``, read on first use.
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
        /// The records read from the file; `nil` until first use.
        var known: [String: Record]?
        /// The records measured since.
        var observed: [String: Record] = [:]
    }

    private let memory: ServerMemory
    private let clock: any EngineClock
    private let state = Mutex(State())

    init(_ memory: ServerMemory, clock: any EngineClock = SystemClock()) {
        self.memory = memory
        self.clock = clock
    }

    func connections(to origin: SourceURL.Origin) -> Int? {
        guard self.memory.includesLoopback || !origin.isLoopback else { return nil }
        // Read without the lock, which the engine's loop takes too when a download is complete.
        let read = self.state.withLock { $0.known } ?? self.read()
        return self.state.withLock { state in
            let known = state.known ?? read
            state.known = known
            let record = state.observed[origin.text] ?? known[origin.text]
            return record.flatMap { self.isFresh($0) ? max($0.connections, 1) : nil }
        }
    }

    func learn(_ connections: Int, to origin: SourceURL.Origin) {
        guard self.memory.includesLoopback || !origin.isLoopback else { return }
        let record = Record(connections: connections, time: self.clock.secondsSinceEpoch)
        self.state.withLock { $0.observed[origin.text] = record }
    }

    /// Writes the measured records to the file. Errors are ignored. Call it where the delay does not matter.
    func save() {
        let observed = self.state.withLock { $0.observed }
        guard !observed.isEmpty else { return }
        // Read again: another process may have written since.
        let records = self.read().merging(observed) { $0.time > $1.time ? $0 : $1 }
        let newest = records.sorted { $0.value.time > $1.value.time }.prefix(Self.recordsMax)
        try? self.write(Dictionary(uniqueKeysWithValues: newest.map { ($0.key, $0.value) }))
    }

    /// The records that have not expired. An unreadable or malformed file counts as empty.
    private func read() -> [String: Record] {
        let storage = POSIXStorage()
        guard let file = try? storage.open(self.memory.path.string, .read) else { return [:] }
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
    private func write(_ records: [String: Record]) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = try encoder.encode(records)
        let directory = self.memory.path.removingLastComponent()
        if directory.lastComponent != nil {
            // Private, because the records show which servers the user has fetched from.
            try FileManager.default.createDirectory(
                atPath: directory.string, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        }
        try bytes.write(to: URL(filePath: self.memory.path.string), options: .atomic)
    }
}
