import GRDB
import SegmentedDownload
import Synchronization
import SystemPackage

/// The entries of a queue and its history, in a SQLite database that only one process opens at a time. Its functions block
/// the thread.
///
/// `synchronous=FULL`: a transaction is durable once it has been committed, also after a power cut
/// (https://sqlite.org/pragma.html#pragma_synchronous). Only its owner can read the file, because it may hold secrets.
/// Deleted rows are overwritten, and the write-ahead log is emptied once a secret has been deleted.
struct QueueDatabase: Sendable {
    let queue: DatabaseQueue
    private let directories: QueueDirectories
    private let directoriesKnown = KnownDirectories()

    /// Marks the file as a queue of segdl: `sgdl` in ASCII (https://sqlite.org/pragma.html#pragma_application_id).
    private static let applicationID: Int32 = 0x7367_646C
    /// 1,000,000 rows, about 400 MB.
    private static let historyMax: Int64 = 1_000_000

    /// Opens the database, and creates it with its directory if it is missing.
    ///
    /// - Throws: ``DownloadError`` with code `exists` if another process has it, `state` if it is damaged or was written
    ///   by a later version, `file` if it cannot be opened, or other users can write to it.
    ///
    /// - Parameter owner: The database whose list of directories is used; nil for this one.
    init(at path: FilePath, for owner: FilePath? = nil) throws(DownloadError) {
        do {
            try self.init(opening: path, directories: QueueDirectories(of: owner ?? path))
        } catch {
            throw Self.error(error, "open", path.string)
        }
    }

    /// Opens the database and reads its entries.
    ///
    /// - Parameter isSuspect: Whether all of it is examined, which takes a second for a million rows: an error of the disk
    ///   looks like damage to SQLite, and may be over.
    /// - Returns: Nil if it is damaged.
    /// - Throws: ``DownloadError`` as ``init(at:)``, except for damage.
    static func openIfIntact(
        at path: FilePath, isSuspect: Bool = false
    ) throws(DownloadError) -> (QueueDatabase, [QueueRecord])? {
        do {
            let database = try QueueDatabase(opening: path, directories: QueueDirectories(of: path))
            do {
                return (
                    database,
                    try database.queue.read { connection in
                        if isSuspect, try String.fetchOne(connection, sql: "PRAGMA integrity_check(1)") != "ok" {
                            throw QueueDamage(what: "a check of the database has failed")
                        }
                        return try Self.records(in: connection)
                    }
                )
            } catch {
                try? database.close()
                throw error
            }
        } catch {
            if Self.isDamage(error) { return nil }
            throw Self.error(error, "open", path.string)
        }
    }

    /// Throws what SQLite and the decoders throw.
    private init(opening path: FilePath, directories: QueueDirectories) throws {
        try QueueFile.prepare(path)
        self.directories = directories
        var configuration = Configuration()
        configuration.label = "segdl queue"
        configuration.prepareDatabase { database in
            // In this mode the first access locks the database until it is closed.
            try database.execute(
                sql: """
                    PRAGMA locking_mode = EXCLUSIVE;
                    PRAGMA secure_delete = ON;
                    PRAGMA trusted_schema = OFF;
                    """)
        }
        self.queue = try DatabaseQueue(path: path.string, configuration: configuration)
        do {
            try Self.check(self.queue, path)
            try QueueFile.guardMode(path)
            try self.queue.writeWithoutTransaction { database in
                try database.execute(sql: "PRAGMA application_id = \(Self.applicationID)")
                let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
                guard mode == "wal" else { throw DownloadError(.file, "\(path.string) cannot have a write-ahead log") }
                try database.execute(sql: "PRAGMA synchronous = FULL")
            }
            try Self.migrator.migrate(self.queue)
            // It may still hold a secret that was deleted before a crash.
            try self.emptyLog()
        } catch {
            try? self.queue.close()
            throw error
        }
    }

    /// Refuses a database of another program and of a later version, and changes neither.
    private static func check(_ queue: DatabaseQueue, _ path: FilePath) throws {
        let migrator = self.migrator
        try queue.read { database in
            let application = try Int32.fetchOne(database, sql: "PRAGMA application_id") ?? 0
            let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0
            guard application == Self.applicationID || application == 0 && isEmpty else {
                throw DownloadError(.file, "\(path.string) is a database of another program")
            }
            guard try !migrator.hasBeenSuperseded(database) else {
                throw DownloadError(
                    .state, "the queue \(path.string) was written by a later version of segdl",
                    hint: "Use that version, or another queue")
            }
        }
    }

    private func emptyLog() throws {
        try self.queue.writeWithoutTransaction { _ = try $0.checkpoint(.truncate) }
    }

    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { database in
            try database.execute(
                sql: """
                    CREATE TABLE entry (
                        id TEXT NOT NULL PRIMARY KEY,
                        position INTEGER NOT NULL,
                        state TEXT NOT NULL,
                        error TEXT,
                        attempts INTEGER NOT NULL,
                        added INTEGER NOT NULL,
                        begun INTEGER NOT NULL,
                        request TEXT NOT NULL
                    ) STRICT, WITHOUT ROWID;
                    CREATE TABLE secrets (
                        entry TEXT NOT NULL PRIMARY KEY REFERENCES entry(id) ON DELETE CASCADE,
                        secrets TEXT NOT NULL
                    ) STRICT, WITHOUT ROWID;
                    CREATE TABLE history (
                        number INTEGER PRIMARY KEY,
                        record TEXT NOT NULL
                    ) STRICT;
                    """)
        }
        migrator.registerMigration("2") { database in
            try database.execute(
                sql: """
                    ALTER TABLE history ADD COLUMN id TEXT;
                    UPDATE history SET id = json_extract(record, '$.id');
                    CREATE INDEX history_id ON history (id);
                    CREATE TABLE setting (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
                    """)
        }
        return migrator
    }

    // MARK: Entries

    /// Entries and their secrets, in any order.
    static let selection = """
        SELECT id, position, state, error, attempts, added, begun, request, secrets
        FROM entry LEFT JOIN secrets ON secrets.entry = entry.id
        """

    /// All entries, in the order of their positions.
    static func records(in database: Database) throws -> [QueueRecord] {
        let rows = try Row.fetchCursor(database, sql: self.selection + " ORDER BY position, id")
        var records: [QueueRecord] = []
        var ids: Set<QueueEntry.ID> = []
        while let row = try rows.next() {
            let record = try Self.record(row)
            // A lost write can leave a row on two pages.
            guard ids.insert(record.id).inserted else { throw QueueDamage(what: "an entry is there twice") }
            records.append(record)
        }
        return records
    }

    static func record(_ row: Row) throws -> QueueRecord {
        guard let id = QueueEntry.ID(rawValue: try row.decode(forColumn: "id")) else {
            throw QueueDamage(what: "an entry has no valid ID")
        }
        let (position, attempts): (Int64, Int) = (
            try row.decode(forColumn: "position"), try row.decode(forColumn: "attempts")
        )
        // Beyond what a queue ever has, so that sums cannot overflow.
        guard position.magnitude < 1 << 61, (0..<(1 << 31)).contains(attempts) else {
            throw QueueDamage(what: "an entry has an impossible number")
        }
        let error = try row.decode(String?.self, forColumn: "error").map { try DownloadError(jsonText: $0) }
        let secrets = try row.decode(String?.self, forColumn: "secrets").map { try RequestSecrets(jsonText: $0) }
        return QueueRecord(
            id: id, position: position,
            state: try QueueRecord.State(text: try row.decode(forColumn: "state"), error: error),
            attempts: attempts, added: try row.decode(forColumn: "added"),
            hasBegun: try row.decode(forColumn: "begun"),
            request: try Self.request(try row.decode(forColumn: "request"), secrets ?? RequestSecrets()))
    }

    private static func request(_ text: String, _ secrets: RequestSecrets) throws -> QueuedRequest {
        do {
            return try QueuedRequest(text: text, secrets: secrets)
        } catch let error as DownloadError {
            throw QueueDamage(what: "a request is invalid: \(error.message)")
        }
    }

    /// Applies the changes in one transaction. They are durable when the call returns.
    ///
    /// - Throws: ``DownloadError`` with code `space` or `file`. Then none of them is applied.
    func apply(_ changes: [QueueChange]) throws(DownloadError) {
        self.noteDirectories(of: changes)
        let deletesSecrets = try self.write { database in
            try changes.reduce(false) { try Self.apply($1, to: database) || $0 }
        }
        // If this fails, the log is emptied when the database is opened again.
        if deletesSecrets { try? self.emptyLog() }
    }

    /// Records directories of new entries, before manifests can be in them.
    private func noteDirectories(of changes: [QueueChange]) {
        var named: Set<FilePath> = []
        for change in changes {
            switch change {
            case .insert(let record): record.request.directory.map { _ = named.insert($0) }
            case .begun(_, let request), .request(_, let request): request.directory.map { _ = named.insert($0) }
            case .position, .state, .finish: break
            }
        }
        let new = self.directoriesKnown.add(named) { self.directories.all }
        if !new.isEmpty { self.directories.add(new) }
    }

    /// Returns whether secrets were deleted.
    private static func apply(_ change: QueueChange, to database: Database) throws -> Bool {
        func execute(_ sql: String, _ arguments: StatementArguments) throws {
            try database.cachedStatement(sql: sql).execute(arguments: arguments)
        }
        func insertSecrets(of id: QueueEntry.ID, _ request: QueuedRequest) throws {
            guard !request.secrets.isEmpty else { return }
            try execute("INSERT INTO secrets VALUES (?, ?)", [id.rawValue, try request.secrets.jsonText])
        }
        func deleteSecrets(of id: QueueEntry.ID) throws -> Bool {
            try execute("DELETE FROM secrets WHERE entry = ?", [id.rawValue])
            return database.changesCount > 0
        }
        switch change {
        case .insert(let record):
            try execute(
                "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    record.id.rawValue, record.position, record.state.text, try record.state.error?.jsonText,
                    record.attempts, record.added, record.hasBegun, record.request.text,
                ])
            try insertSecrets(of: record.id, record.request)
        case .position(let id, let position):
            try execute("UPDATE entry SET position = ? WHERE id = ?", [position, id.rawValue])
        case .state(let id, let state, let attempts):
            try execute(
                "UPDATE entry SET state = ?, error = ?, attempts = ? WHERE id = ?",
                [state.text, try state.error?.jsonText, attempts, id.rawValue])
        case .begun(let id, let request):
            try execute("UPDATE entry SET begun = 1, request = ? WHERE id = ?", [request.text, id.rawValue])
        case .request(let id, let request):
            try execute("UPDATE entry SET request = ? WHERE id = ?", [request.text, id.rawValue])
            let hadSecrets = try deleteSecrets(of: id)
            try insertSecrets(of: id, request)
            return hadSecrets
        case .finish(let id, let row):
            let hadSecrets = try deleteSecrets(of: id)
            // A query may be secret, such as that of a signed URL.
            let hadQuery =
                try Bool.fetchOne(
                    database, sql: "SELECT instr(request, '?') FROM entry WHERE id = ?", arguments: [id.rawValue])
                ?? false
            try execute("DELETE FROM entry WHERE id = ?", [id.rawValue])
            try Self.insert(row, into: database)
            try execute("DELETE FROM history WHERE number <= ?", [database.lastInsertedRowID - self.historyMax])
            return hadSecrets || hadQuery
        }
        return false
    }

    // MARK: History and settings

    /// Adds rows to the history, the oldest first.
    ///
    /// - Throws: ``DownloadError`` with code `space` or `file`.
    func insert(_ rows: [HistoryEntry]) throws(DownloadError) {
        try self.write { database in
            for row in rows { try Self.insert(row, into: database) }
        }
    }

    private static func insert(_ row: HistoryEntry, into database: Database) throws {
        try database.cachedStatement(sql: "INSERT INTO history (record, id) VALUES (?, ?)")
            .execute(arguments: [try row.jsonText, row.id])
    }

    /// The latest rows of the history, the newest first, without those that cannot be decoded.
    ///
    /// - Parameter offset: How many of the newest rows are skipped.
    /// - Throws: ``DownloadError`` with code `file` or `state`.
    func history(limit: Int, offset: Int = 0) throws(DownloadError) -> [HistoryEntry] {
        try self.read { database in
            try String.fetchAll(
                database, sql: "SELECT record FROM history ORDER BY number DESC LIMIT ? OFFSET ?",
                arguments: [max(limit, 0), max(offset, 0)]
            ).compactMap { try? HistoryEntry(jsonText: $0) }
        }
    }

    /// The number of rows in the history.
    ///
    /// - Throws: ``DownloadError`` with code `file` or `state`.
    func historyCount() throws(DownloadError) -> Int {
        try self.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM history") ?? 0 }
    }

    /// The latest row of an entry; nil if there is none.
    ///
    /// - Throws: ``DownloadError`` with code `file` or `state`.
    func history(of id: QueueEntry.ID) throws(DownloadError) -> HistoryEntry? {
        try self.read { database in
            try String.fetchOne(
                database,
                sql: "SELECT record FROM history WHERE id = ? ORDER BY number DESC LIMIT 1", arguments: [id.rawValue]
            ).flatMap { try? HistoryEntry(jsonText: $0) }
        }
    }

    /// Deletes rows of the history: those of these entries, or all.
    ///
    /// - Returns: The number of deleted rows.
    /// - Throws: ``DownloadError`` with code `space` or `file`.
    func deleteHistory(of ids: [QueueEntry.ID]?) throws(DownloadError) -> Int {
        try self.write { database in
            guard let ids else {
                try database.execute(sql: "DELETE FROM history")
                return database.changesCount
            }
            return try ids.reduce(0) { count, id in
                try database.cachedStatement(sql: "DELETE FROM history WHERE id = ?").execute(arguments: [id.rawValue])
                return count + database.changesCount
            }
        }
    }

    /// A value that ``set(_:to:)`` stored; nil if there is none.
    ///
    /// - Throws: ``DownloadError`` with code `file` or `state`.
    func setting(_ name: String) throws(DownloadError) -> String? {
        try self.read { try String.fetchOne($0, sql: "SELECT value FROM setting WHERE name = ?", arguments: [name]) }
    }

    /// Stores a value under a name.
    ///
    /// - Throws: ``DownloadError`` with code `space` or `file`.
    func set(_ name: String, to value: String) throws(DownloadError) {
        try self.write {
            try $0.execute(sql: "INSERT OR REPLACE INTO setting VALUES (?, ?)", arguments: [name, value])
        }
    }

    private func read<Value: Sendable>(_ body: @Sendable (Database) throws -> Value) throws(DownloadError) -> Value {
        do {
            return try self.queue.read(body)
        } catch {
            throw Self.error(error, "read", self.queue.path)
        }
    }

    private func write<Value: Sendable>(_ body: @Sendable (Database) throws -> Value) throws(DownloadError) -> Value {
        do {
            return try self.queue.write(body)
        } catch {
            throw Self.error(error, "write", self.queue.path)
        }
    }

    /// Closes the database.
    func close() throws(DownloadError) {
        do {
            try self.queue.close()
        } catch {
            throw Self.error(error, "close", self.queue.path)
        }
    }

    // MARK: Errors

    /// Whether an error means that the database itself is wrong.
    static func isDamage(_ error: any Error) -> Bool {
        switch error {
        case is QueueDamage, is DecodingError, is RowDecodingError: true
        case let error as DatabaseError: [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode)
        default: false
        }
    }

    static func error(_ error: any Error, _ verb: String, _ path: String) -> DownloadError {
        if self.isDamage(error) {
            let what =
                (error as? QueueDamage)?.what ?? (error as? DatabaseError)?.message ?? "an entry cannot be decoded"
            return DownloadError(
                .state, "the queue \(path) is damaged: \(what)",
                hint: "Start the queue again: it sets the database aside, and makes another from what can be read")
        }
        switch error {
        case let error as DownloadError: return error
        case let error as DatabaseError:
            let what = error.message ?? error.resultCode.description
            switch error.resultCode {
            case .SQLITE_BUSY, .SQLITE_LOCKED:
                return DownloadError(
                    .exists, "another process has the queue \(path)", hint: "Stop it, or use another queue",
                    isTransient: true)
            case .SQLITE_FULL:
                return DownloadError(
                    .space, "cannot \(verb) the queue \(path): no space is left", hint: "Free space, and try again",
                    isTransient: true)
            default: return DownloadError(.file, "cannot \(verb) the queue \(path): \(what)")
            }
        default: return DownloadError(.file, "cannot \(verb) the queue \(path): \(error)")
        }
    }
}

/// The directories that the file beside the database has, read when they are first needed.
private final class KnownDirectories: Sendable {
    private let known = Mutex<Set<FilePath>?>(nil)

    /// Returns those of the directories that are new.
    func add(_ directories: Set<FilePath>, read: () -> Set<FilePath>) -> Set<FilePath> {
        guard !directories.isEmpty else { return [] }
        return self.known.withLock { known in
            let before = known ?? read()
            known = before.union(directories)
            return directories.subtracting(before)
        }
    }
}

/// A row that no version of this program writes.
private struct QueueDamage: Error {
    let what: String
}

extension QueueRecord.State {
    /// The word that the database stores.
    fileprivate var text: String {
        switch self {
        case .queued: "queued"
        case .paused: "paused"
        case .failed: "failed"
        case .cancelling(keepingPartial: true): "cancelling"
        case .cancelling(keepingPartial: false): "deleting"
        }
    }

    var error: DownloadError? { if case .failed(let error) = self { error } else { nil } }

    fileprivate init(text: String, error: DownloadError?) throws(QueueDamage) {
        switch (text, error) {
        case ("queued", _): self = .queued
        case ("paused", _): self = .paused
        case ("failed", let error?): self = .failed(error)
        case ("cancelling", _): self = .cancelling(keepingPartial: true)
        case ("deleting", _): self = .cancelling(keepingPartial: false)
        default: throw QueueDamage(what: "an entry has no valid state")
        }
    }
}
