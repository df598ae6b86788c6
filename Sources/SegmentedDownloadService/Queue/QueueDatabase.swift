import GRDB
import SegmentedDownload
import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The entries of a queue and its history, in a SQLite database.
///
/// `synchronous=FULL`: a transaction is durable once it has been committed, also after a power cut
/// (https://sqlite.org/pragma.html#pragma_synchronous). Only its owner can read the file, because it may hold secrets.
/// Deleted rows are overwritten, and the write-ahead log is emptied once a secret has been deleted.
struct QueueDatabase: Sendable {
    private let pool: DatabasePool

    /// Opens the database, and creates it with its directory if it is missing. Blocks the thread.
    ///
    /// - Throws: ``DownloadError`` with code `state` if the database is damaged or was written by a later version, `file`
    ///   if it cannot be opened, or other users can write to it.
    init(at path: FilePath) throws(DownloadError) {
        try GuardedDirectory.prepare(for: path)
        var configuration = Configuration()
        configuration.label = "segdl queue"
        // One process has the queue. A second one fails at once instead of waiting.
        configuration.busyMode = .immediateError
        configuration.maximumReaderCount = 2
        configuration.prepareDatabase { database in
            try database.execute(
                sql: "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA trusted_schema = OFF")
        }
        do {
            self.pool = try DatabasePool(path: path.string, configuration: configuration)
            let migrator = Self.migrator
            let isLater = try self.pool.read { try migrator.hasBeenSuperseded($0) }
            guard !isLater else {
                throw DownloadError(
                    .state, "the queue \(path.string) was written by a later version of segdl",
                    hint: "Use that version, or another queue")
            }
            try migrator.migrate(self.pool)
        } catch {
            throw Self.error(error, "open", path.string)
        }
    }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(
                sql: """
                    CREATE TABLE entry (
                        id TEXT NOT NULL PRIMARY KEY,
                        position INTEGER NOT NULL,
                        wish TEXT NOT NULL,
                        error TEXT,
                        attempts INTEGER NOT NULL,
                        added INTEGER NOT NULL,
                        request TEXT NOT NULL
                    ) STRICT, WITHOUT ROWID;
                    CREATE TABLE secrets (
                        entry TEXT NOT NULL PRIMARY KEY REFERENCES entry(id) ON DELETE CASCADE,
                        secrets TEXT NOT NULL
                    ) STRICT, WITHOUT ROWID;
                    CREATE TABLE history (
                        number INTEGER PRIMARY KEY,
                        id TEXT NOT NULL,
                        record TEXT NOT NULL
                    ) STRICT;
                    CREATE INDEX history_id ON history(id);
                    """)
        }
        return migrator
    }

    // MARK: Entries

    /// All entries, in the order of their positions.
    ///
    /// - Throws: ``DownloadError`` with code `state` if a row cannot be decoded, `file` if the database cannot be read.
    func records() throws(DownloadError) -> [QueueRecord] {
        do {
            return try self.pool.read { database in
                let rows = try Row.fetchCursor(
                    database,
                    sql: """
                        SELECT id, position, wish, error, attempts, added, request, secrets
                        FROM entry LEFT JOIN secrets ON secrets.entry = entry.id ORDER BY position, id
                        """)
                var records: [QueueRecord] = []
                while let row = try rows.next() { records.append(try Self.record(row)) }
                return records
            }
        } catch {
            throw Self.error(error, "read", self.pool.path)
        }
    }

    private static func record(_ row: Row) throws -> QueueRecord {
        guard let id = QueueEntry.ID(rawValue: row["id"]) else { throw damaged("an entry has no valid ID") }
        let error: DownloadError? = try (row["error"] as String?).map { try Self.decoded($0) }
        let secrets: RequestSecrets? = try (row["secrets"] as String?).map { try Self.decoded($0) }
        return QueueRecord(
            id: id, position: row["position"], wish: try QueueRecord.Wish(text: row["wish"], error: error),
            attempts: row["attempts"], added: row["added"], request: try Self.decoded(row["request"]),
            secrets: secrets ?? RequestSecrets())
    }

    /// Applies the changes in one transaction. They are durable when the call returns.
    ///
    /// - Throws: ``DownloadError`` with code `file`. Then none of them is applied.
    func apply(_ changes: [QueueChange]) async throws(DownloadError) {
        let deletesSecrets: Bool
        do {
            deletesSecrets = try await self.pool.write { database in
                try changes.reduce(false) { try Self.apply($1, to: database) || $0 }
            }
        } catch {
            throw Self.error(error, "write", self.pool.path)
        }
        // While another connection reads, this fails. Then the log is emptied later, at the latest when the queue closes.
        if deletesSecrets { try? await self.pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) } }
    }

    /// Returns whether secrets were deleted.
    private static func apply(_ change: QueueChange, to database: Database) throws -> Bool {
        switch change {
        case .insert(let record):
            try database.cachedStatement(sql: "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)").execute(arguments: [
                record.id.rawValue, record.position, record.wish.text, try record.wish.error.map { try encoded($0) },
                record.attempts, record.added, try encoded(record.request),
            ])
            guard !record.secrets.isEmpty else { break }
            try database.cachedStatement(sql: "INSERT INTO secrets VALUES (?, ?)").execute(arguments: [
                record.id.rawValue, try encoded(record.secrets),
            ])
        case .position(let id, let position):
            try database.cachedStatement(sql: "UPDATE entry SET position = ? WHERE id = ?").execute(arguments: [
                position, id.rawValue,
            ])
        case .wish(let id, let wish, let attempts):
            try database.cachedStatement(sql: "UPDATE entry SET wish = ?, error = ?, attempts = ? WHERE id = ?")
                .execute(
                    arguments: [wish.text, try wish.error.map { try encoded($0) }, attempts, id.rawValue])
        case .request(let id, let request):
            try database.cachedStatement(sql: "UPDATE entry SET request = ? WHERE id = ?").execute(arguments: [
                try encoded(request), id.rawValue,
            ])
        case .finish(let id, let row):
            try database.cachedStatement(sql: "DELETE FROM secrets WHERE entry = ?").execute(arguments: [id.rawValue])
            let hadSecrets = database.changesCount > 0
            try database.cachedStatement(sql: "DELETE FROM entry WHERE id = ?").execute(arguments: [id.rawValue])
            try database.cachedStatement(sql: "INSERT INTO history (id, record) VALUES (?, ?)").execute(arguments: [
                id.rawValue, try encoded(row),
            ])
            return hadSecrets
        }
        return false
    }

    // MARK: History

    /// The latest rows of the history, the newest first.
    ///
    /// - Throws: ``DownloadError`` with code `file` or `state`.
    func history(limit: Int) async throws(DownloadError) -> [HistoryEntry] {
        do {
            return try await self.pool.read { database in
                try String.fetchAll(
                    database, sql: "SELECT record FROM history ORDER BY number DESC LIMIT ?", arguments: [limit]
                ).map { try Self.decoded($0) }
            }
        } catch {
            throw Self.error(error, "read", self.pool.path)
        }
    }

    /// Closes the database. Blocks the thread.
    func close() throws(DownloadError) {
        do {
            // The connection that closes last cannot do this, because it only reads.
            try self.pool.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
            try self.pool.close()
        } catch {
            throw Self.error(error, "close", self.pool.path)
        }
    }

    // MARK: Text

    private static func encoded(_ value: some Encodable) throws -> String {
        String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
    }

    private static func decoded<Value: Decodable>(_ text: String) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(text.utf8))
    }

    static func damaged(_ what: String) -> DownloadError {
        DownloadError(.state, "the queue is damaged: \(what)", hint: "Move the database away; parts can be restored")
    }

    private static func error(_ error: any Error, _ verb: String, _ path: String) -> DownloadError {
        switch error {
        case let error as DownloadError: error
        case let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode):
            damaged("\(error.message ?? "SQLite cannot read it") (\(path))")
        case let error as DatabaseError:
            DownloadError(
                .file, "cannot \(verb) the queue \(path): \(error.message ?? error.resultCode.description)",
                isTransient: error.resultCode == .SQLITE_BUSY)
        case is DecodingError: damaged("an entry cannot be decoded (\(path))")
        default: DownloadError(.file, "cannot \(verb) the queue \(path): \(error)")
        }
    }
}

extension QueueRecord.Wish {
    /// The word that the database stores.
    var text: String {
        switch self {
        case .run: "run"
        case .pause: "pause"
        case .retryLater: "failed"
        case .cancel(keepingPartial: true): "cancel"
        case .cancel(keepingPartial: false): "delete"
        }
    }

    var error: DownloadError? {
        if case .retryLater(let error) = self { error } else { nil }
    }

    fileprivate init(text: String, error: DownloadError?) throws(DownloadError) {
        switch (text, error) {
        case ("run", _): self = .run
        case ("pause", _): self = .pause
        case ("failed", let error?): self = .retryLater(error)
        case ("cancel", _): self = .cancel(keepingPartial: true)
        case ("delete", _): self = .cancel(keepingPartial: false)
        default: throw QueueDatabase.damaged("an entry is neither running, paused, failed nor cancelled")
        }
    }
}
