import SegmentedDownloadCore
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What a ``ServerMemory`` holds, read when it is first asked.
final class ServerBook: Sendable {
    private struct Record: Codable {
        var connections: Int
        /// When it was found, in seconds since 1970.
        var time: Int64
    }

    /// The oldest ones are forgotten.
    static let recordsMax = 256
    /// 1 MiB: more is not ours.
    private static let readMaximum = 1 << 20

    let memory: ServerMemory
    private let records = Mutex<[String: Record]?>(nil)

    init(_ memory: ServerMemory) {
        self.memory = memory
    }

    func connections(to origin: SourceURL.Origin) -> Int? {
        guard self.memory.includesLoopback || !origin.isLoopback else { return nil }
        return self.records.withLock { records in
            let known = records ?? self.read()
            records = known
            return known[origin.text].map { max($0.connections, 1) }
        }
    }

    func learn(_ connections: Int, to origin: SourceURL.Origin) {
        guard self.memory.includesLoopback || !origin.isLoopback else { return }
        self.records.withLock { records in
            // Others may have written since.
            var known = self.read()
            known[origin.text] = Record(connections: connections, time: HistoryFile.now)
            if known.count > Self.recordsMax, let oldest = known.min(by: { $0.value.time < $1.value.time })?.key {
                known[oldest] = nil
            }
            records = known
            try? self.write(known)
        }
    }

    /// What is not too old. What cannot be read is not there.
    private func read() -> [String: Record] {
        let storage = POSIXStorage()
        guard let file = try? storage.open(self.memory.path, .read) else { return [:] }
        defer { file.close() }
        guard let bytes = try? file.contents(limit: Self.readMaximum),
            let records = try? JSONDecoder().decode([String: Record].self, from: Data(bytes))
        else { return [:] }
        // Whoever wrote the file may have written any number.
        let now = Double(HistoryFile.now)
        return records.filter { _, record in
            let age = now - Double(record.time)
            return age >= 0 && age <= self.memory.lifetime.inSeconds
        }
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
