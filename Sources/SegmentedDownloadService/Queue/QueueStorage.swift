package import SegmentedDownload

/// Where a queue keeps its entries and its history: a database, or a simulated one.
///
/// Every change is durable when the call returns: it survives a killed process and a power cut. A change that a crash
/// interrupts is applied whole or not at all.
package protocol QueueStorage: Sendable {
    /// Applies the changes in one transaction.
    ///
    /// - Throws: ``DownloadError`` with code `space` or `file`, or `state` if the storage is damaged. Then none of them is
    ///   applied.
    func apply(_ changes: [QueueChange]) async throws(DownloadError)

    /// The latest rows of the history, the newest first, after `offset` newer ones.
    func history(limit: Int, offset: Int) async throws(DownloadError) -> [HistoryEntry]

    /// The number of rows in the history.
    func historyCount() async throws(DownloadError) -> Int

    /// The latest row of an entry; nil if there is none.
    func history(of id: QueueEntry.ID) async throws(DownloadError) -> HistoryEntry?

    /// Deletes rows of the history: those of these entries, or all.
    ///
    /// - Returns: The number of deleted rows.
    func deleteHistory(of ids: [QueueEntry.ID]?) async throws(DownloadError) -> Int

    /// The text that ``set(_:to:)`` stored under a name; nil if there is none.
    func setting(_ name: String) async throws(DownloadError) -> String?

    /// Stores a text under a name.
    func set(_ name: String, to value: String) async throws(DownloadError)

    /// Ends the use of the storage.
    func close() async throws(DownloadError)
}

/// What there is once a queue's storage has been opened.
package struct QueueOpening: Sendable {
    package let storage: any QueueStorage
    /// All entries, in the order of their positions.
    package let records: [QueueRecord]
    /// What was done if the storage was damaged.
    package let repair: QueueRepair?

    package init(_ storage: any QueueStorage, _ records: [QueueRecord], repair: QueueRepair? = nil) {
        self.storage = storage
        self.records = records
        self.repair = repair
    }
}

/// A queue's database on a thread of its own: SQLite blocks the thread that calls it, and a disk that does not answer
/// blocks the process's other threads.
struct DatabaseStorage: QueueStorage {
    let database: QueueDatabase
    private let path: FilePath
    private let thread = EngineThreads.serial()

    /// Opens the database. A damaged one is set aside, and replaced by one that has what could be read.
    ///
    /// - Parameter directory: The directory of the queue's files.
    /// - Throws: ``DownloadError`` with code `exists` if another process has it, `state` if it was written by a later
    ///   version, `file` or `space` if it cannot be opened or replaced.
    static func open(at path: FilePath, directory: FilePath) async throws(DownloadError) -> QueueOpening {
        try await EngineThreads.aside { () throws(DownloadError) in
            try QueueFile.finishExchange(path)
            let isSuspect = QueueFile.isMarked(path)
            if let (database, records) = try QueueDatabase.openIfIntact(at: path, isSuspect: isSuspect) {
                if isSuspect { QueueFile.unmark(path) }
                return QueueOpening(DatabaseStorage(database: database, path: path), records)
            }
            let repair = try QueueRebuilding(path: path, directory: directory).run()
            guard let (database, records) = try QueueDatabase.openIfIntact(at: path) else {
                throw DownloadError(.file, "the queue \(path.string) is damaged again: the disk may be failing")
            }
            return QueueOpening(DatabaseStorage(database: database, path: path), records, repair: repair)
        }
    }

    func apply(_ changes: [QueueChange]) async throws(DownloadError) {
        try await self.aside { (database) throws(DownloadError) in try database.apply(changes) }
    }

    func history(limit: Int, offset: Int) async throws(DownloadError) -> [HistoryEntry] {
        try await self.aside { (database) throws(DownloadError) in
            try database.history(limit: limit, offset: offset)
        }
    }

    func historyCount() async throws(DownloadError) -> Int {
        try await self.aside { (database) throws(DownloadError) in try database.historyCount() }
    }

    func history(of id: QueueEntry.ID) async throws(DownloadError) -> HistoryEntry? {
        try await self.aside { (database) throws(DownloadError) in try database.history(of: id) }
    }

    func deleteHistory(of ids: [QueueEntry.ID]?) async throws(DownloadError) -> Int {
        try await self.aside { (database) throws(DownloadError) in try database.deleteHistory(of: ids) }
    }

    func setting(_ name: String) async throws(DownloadError) -> String? {
        try await self.aside { (database) throws(DownloadError) in try database.setting(name) }
    }

    func set(_ name: String, to value: String) async throws(DownloadError) {
        try await self.aside { (database) throws(DownloadError) in try database.set(name, to: value) }
    }

    func close() async throws(DownloadError) {
        let result: Result<Void, DownloadError>
        do throws(DownloadError) {
            try await self.aside { (database) throws(DownloadError) in try database.close() }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await self.thread.end()
        try result.get()
    }

    private func aside<Value: Sendable>(
        _ body: @escaping @Sendable (QueueDatabase) throws(DownloadError) -> Value
    ) async throws(DownloadError) -> Value {
        let (database, path) = (self.database, self.path)
        return try await self.thread.aside { () throws(DownloadError) in
            do throws(DownloadError) {
                return try body(database)
            } catch {
                // The next start repairs it, also if what is damaged is not read then.
                if error.code == .state { QueueFile.mark(path) }
                throw error
            }
        }
    }
}
