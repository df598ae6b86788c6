import GRDB
import SegmentedDownload
public import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What became of a damaged database when its queue was opened: see ``DownloadQueue/repair``.
public struct QueueRepair: Hashable, Sendable {
    /// Where the damaged database is now.
    public let setAside: FilePath
    /// The number of entries that could be read from it. They are as they were.
    public let readCount: Int
    /// The number of entries that are there and cannot be read.
    public let unreadableCount: Int
    /// The number of other entries, made from manifests that the queue's downloads have left. They are paused, because the user may
    /// have paused or cancelled them.
    public let foundCount: Int
}

/// Sets a damaged database aside, and makes another one from what can be read of it and from the manifests of its
/// downloads. Blocks the thread.
///
/// A kill or an error at any moment leaves the damaged database or its complete replacement, and the next start goes on.
struct QueueRebuilding {
    let path: FilePath
    /// The directory of the queue's files.
    let directory: FilePath

    /// 10,000 rows of the history, the newest, are taken over: a million would take minutes.
    private static let historyMax = 10_000

    /// Replaces the database.
    ///
    /// - Throws: ``DownloadError`` with code `file`, `space` or `exists`. Then the damaged database is where it was.
    func run() throws(DownloadError) -> QueueRepair {
        let old = try Remains(of: self.path)
        var records = old.records
        let readCount = records.count
        let directories = QueueDirectories(of: self.path).all
            .union(records.compactMap(\.request.directory))
            .union(old.history.map { $0.path.removingLastComponent() }).union([self.directory])
        records += self.found(in: directories, besides: records)
        let draft = try QueueFile.newDraft(of: self.path)
        let database = try QueueDatabase(at: draft, for: self.path)
        do throws(DownloadError) {
            try database.apply(records.map { .insert($0) })
            for (name, value) in old.settings { try database.set(name, to: value) }
            try database.insert(old.history)
        } catch {
            try? database.close()
            throw error
        }
        try database.close()
        let target = try QueueFile.exchange(self.path, for: draft)
        return QueueRepair(
            setAside: target, readCount: readCount, unreadableCount: old.unreadableCount,
            foundCount: records.count - readCount)
    }

    /// The interrupted downloads of the queue in these directories. Those of other programs have no ID of a queue.
    private func found(in directories: Set<FilePath>, besides known: [QueueRecord]) -> [QueueRecord] {
        var ids = Set(known.map(\.id))
        var position = known.last?.position ?? 0
        var found: [QueueRecord] = []
        for directory in directories.sorted(by: { $0.string < $1.string }) {
            for path in (try? SavedDownload.paths(reading: directory)) ?? [] {
                guard let saved = try? SavedDownload(reading: path.string),
                    let id = saved.id.flatMap({ QueueEntry.ID(rawValue: $0.rawValue) }), ids.insert(id).inserted,
                    let request = try? saved.request(),
                    let queued = try? QueuedRequest(request, path: path, hasName: true)
                else { continue }
                position += 1 << 20
                found.append(
                    QueueRecord(
                        id: id, position: position, state: .paused, added: SystemClock().secondsSinceEpoch,
                        hasBegun: true, request: queued))
            }
        }
        return found
    }

    /// What can be read of a damaged database.
    private struct Remains {
        private(set) var records: [QueueRecord] = []
        private(set) var unreadableCount = 0
        private(set) var settings: [String: String] = [:]
        /// The oldest row first.
        private(set) var history: [HistoryEntry] = []

        /// - Throws: ``DownloadError`` if the disk fails: then more may be read later.
        init(of path: FilePath) throws(DownloadError) {
            var configuration = Configuration()
            configuration.readonly = true
            do {
                let queue = try DatabaseQueue(path: path.string, configuration: configuration)
                defer { try? queue.close() }
                try self.read(queue)
            } catch {
                guard QueueDatabase.isDamage(error) else { throw QueueDatabase.error(error, "read", path.string) }
            }
        }

        private mutating func read(_ queue: DatabaseQueue) throws {
            // A damaged page ends a query. Queries from both ends read what is before and behind it.
            var byID: [QueueEntry.ID: QueueRecord] = [:]
            var unreadable: Set<String> = []
            for order in ["ASC", "DESC"] {
                try Self.read(queue, QueueDatabase.selection + " ORDER BY entry.id \(order)") { row in
                    do {
                        let record = try QueueDatabase.record(row)
                        byID[record.id] = record
                    } catch {
                        unreadable.insert("\(row["id"] as DatabaseValue? ?? .null)")
                    }
                }
            }
            self.unreadableCount = unreadable.count
            self.records = byID.values.sorted { ($0.position, $0.id.number) < ($1.position, $1.id.number) }
            var rows: [Int64: HistoryEntry] = [:]
            for order in ["DESC", "ASC"] {
                let limit = QueueRebuilding.historyMax - rows.count
                try Self.read(queue, "SELECT number, record FROM history ORDER BY number \(order) LIMIT \(limit)") {
                    row in
                    guard let number: Int64 = row["number"], let text: String = row["record"] else { return }
                    rows[number] = try? HistoryEntry(jsonText: text)
                }
            }
            self.history = rows.sorted { $0.key < $1.key }.map(\.value)
            var settings: [String: String] = [:]
            try Self.read(queue, "SELECT name, value FROM setting") { row in
                if let name: String = row["name"], let value: String = row["value"] { settings[name] = value }
            }
            self.settings = settings
        }

        /// Passes rows to `body` until one is damaged.
        private static func read(_ queue: DatabaseQueue, _ sql: String, _ body: (Row) -> Void) throws {
            do {
                try queue.read { database in
                    let rows = try Row.fetchCursor(database, sql: sql)
                    while let row = try rows.next() { body(row) }
                }
            } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
                // The schema is damaged: there is no such table.
            } catch {
                guard QueueDatabase.isDamage(error) else { throw error }
            }
        }
    }
}

/// The directories into which a queue's downloads write, in a file beside the database, so that their manifests can be
/// found without it. Each line is a JSON text.
struct QueueDirectories: Sendable {
    private let path: String

    init(of database: FilePath) { self.path = database.string + "-directories" }

    /// The directories that were recorded.
    var all: Set<FilePath> {
        let data = (try? Data(contentsOf: URL(fileURLWithPath: self.path))) ?? Data()
        let texts = data.split(separator: UInt8(ascii: "\n")).compactMap {
            try? JSONDecoder().decode(String.self, from: Data($0))
        }
        return Set(texts.map { FilePath($0) })
    }

    /// Adds directories. If they cannot be written, only a repair misses them.
    func add(_ directories: some Sequence<FilePath>) {
        let lines = directories.compactMap { try? $0.string.jsonText }.map { $0 + "\n" }.joined()
        QueueFile.append(Array(lines.utf8), to: self.path)
    }
}
