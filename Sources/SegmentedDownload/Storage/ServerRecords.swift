import SegmentedDownloadCore
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What a ``ServerMemory`` holds, read when it is first asked.
final class ServerRecords: Sendable {
    private struct Record: Codable {
        var connections: Int
        /// When it was found, in seconds since 1970.
        var time: Int64
    }

    /// The oldest ones are forgotten.
    static let recordsMax = 256
    /// 1 MiB: more is not ours.
    private static let readMaximum = 1 << 20

    private struct State {
        /// What was found before, by whomever; absent until it is asked for.
        var known: [String: Record]?
        /// What was found since.
        var observed: [String: Record] = [:]
    }

    private let memory: ServerMemory
    private let state = Mutex(State())

    init(_ memory: ServerMemory) {
        self.memory = memory
    }

    func connections(to origin: SourceURL.Origin) -> Int? {
        guard self.memory.includesLoopback || !origin.isLoopback else { return nil }
        return self.state.withLock { state in
            let known = state.known ?? self.read()
            state.known = known
            let record = state.observed[origin.text] ?? known[origin.text]
            return record.flatMap { self.isFresh($0) ? max($0.connections, 1) : nil }
        }
    }

    func learn(_ connections: Int, to origin: SourceURL.Origin) {
        guard self.memory.includesLoopback || !origin.isLoopback else { return }
        self.state.withLock { state in
            state.observed[origin.text] = Record(connections: connections, time: HistoryFile.now)
        }
    }

    /// Writes what was found, to be called where nobody is kept waiting. What goes wrong with it is nobody's loss.
    func save() {
        let observed = self.state.withLock { $0.observed }
        guard !observed.isEmpty else { return }
        // Others may have written since.
        let records = self.read().merging(observed) { $0.time > $1.time ? $0 : $1 }
        let newest = records.sorted { $0.value.time > $1.value.time }.prefix(Self.recordsMax)
        try? self.write(Dictionary(uniqueKeysWithValues: newest.map { ($0.key, $0.value) }))
    }

    /// What is not too old. What cannot be read is not there.
    private func read() -> [String: Record] {
        let storage = POSIXStorage()
        guard let file = try? storage.open(self.memory.path, .read) else { return [:] }
        defer { file.close() }
        guard let bytes = try? file.contents(limit: Self.readMaximum),
            let records = try? JSONDecoder().decode([String: Record].self, from: Data(bytes))
        else { return [:] }
        return records.filter { self.isFresh($0.value) }
    }

    private func isFresh(_ record: Record) -> Bool {
        // Whoever wrote the file may have written any number.
        let age = Double(HistoryFile.now) - Double(record.time)
        return age >= 0 && age <= self.memory.lifetime.inSeconds
    }

    /// Another process reads the old file or the new one, whole.
    private func write(_ records: [String: Record]) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = try encoder.encode(records)
        if let slash = self.memory.path.lastIndex(of: "/"), slash > self.memory.path.startIndex {
            // Where somebody fetched from is nobody else's business.
            try FileManager.default.createDirectory(
                atPath: String(self.memory.path[..<slash]), withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
        }
        try bytes.write(to: URL(filePath: self.memory.path), options: .atomic)
    }
}
