import Foundation
import GRDB
import HTTPTypes
import SystemPackage
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadService

@Suite struct QueueDatabaseTests {
    private static func path(_ directory: String) -> FilePath { FilePath(directory + "/state/segdl/queue.sqlite") }

    /// An entry with every kind of secret.
    private static func record() throws -> QueueRecord {
        var request = DownloadRequest(
            try SourceURL("https://name:word1@host/a?key=1"), to: .directory("/d", name: try NameTemplate("{name}")))
        request.mirrors = [try SourceURL("https://other:word2@mirror/a")]
        request.fields = [.authorization: "word3"]
        request.credentials = .bearer(token: "word4")
        request.userInfo = ["title": "A film"]
        request.segments = .exactly(3)
        return QueueRecord(
            id: QueueEntry.ID(5), position: 7, state: .failed(DownloadError(.server, "503", status: 503)), attempts: 2,
            added: 1_700_000_000, request: try QueuedRequest(request, path: "/d", hasName: false))
    }

    @Test("An entry is read as it was stored, with its secrets")
    func stores() async throws {
        try await withTemporaryDirectory { directory in
            let record = try Self.record()
            let first = try QueueDatabase(at: Self.path(directory))
            try first.apply([.insert(record)])
            try first.close()
            let second = try QueueDatabase(at: Self.path(directory))
            #expect(try second.records() == [record])
            let request = record.request.complete(id: record.id)
            #expect(request.credentials == .bearer(token: "word4") && request.fields[.authorization] == "word3")
            #expect(request.source.credentials == .basic(user: "name", password: "word1"))
            #expect(request.mirrors.first?.credentials == .basic(user: "other", password: "word2"))
            #expect(request.options.segments == .exactly(3) && request.userInfo == ["title": "A film"])
            try second.close()
        }
    }

    @Test("Every change is applied, and an entry that ends leaves a row of history and no secret on disk")
    func changes() async throws {
        try await withTemporaryDirectory { directory in
            var record = try Self.record()
            let database = try QueueDatabase(at: Self.path(directory))
            try database.apply([.insert(record)])
            record.request = try record.request.begun(at: "/d/a")
            (record.state, record.attempts, record.position) = (.cancelling(keepingPartial: false), 3, -9)
            record.hasBegun = true
            try database.apply([
                .begun(record.id, record.request), .state(record.id, record.state, attempts: 3),
                .position(record.id, -9),
            ])
            #expect(try database.records() == [record])
            let row = QueueStateMachineTests.row(5)
            try database.apply([.finish(record.id, row)])
            #expect(try database.records().isEmpty)
            #expect(try database.history(limit: 10) == [row])
            for suffix in ["", "-wal"] {
                let bytes = try Data(contentsOf: URL(fileURLWithPath: Self.path(directory).string + suffix))
                for secret in ["word1", "word2", "word3", "word4"] {
                    #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(secret) is still in the file\(suffix)")
                }
            }
            try database.close()
        }
    }

    @Test("All changes of a transaction are applied, or none")
    func atomic() async throws {
        try await withTemporaryDirectory { directory in
            let database = try QueueDatabase(at: Self.path(directory))
            let record = try Self.record()
            #expect(throws: DownloadError.self) { try database.apply([.insert(record), .insert(record)]) }
            #expect(try database.records().isEmpty)
            try database.close()
        }
    }

    @Test("A transaction is durable when it is committed, and no other process can open the database meanwhile")
    func durable() async throws {
        try await withTemporaryDirectory { directory in
            let path = Self.path(directory)
            let database = try QueueDatabase(at: path)
            #expect(try database.pragma("synchronous") == 2 && database.pragma("secure_delete") == 1)
            let error = #expect(throws: DownloadError.self) { try QueueDatabase(at: path) }
            #expect(error?.code == .exists, "\(String(describing: error))")
            #expect(throws: DatabaseError.self) {
                try DatabaseQueue(path: path.string).read { try Int.fetchOne($0, sql: "SELECT count(*) FROM entry") }
            }
            try database.apply([.insert(try Self.record())])
            try database.close()
            try QueueDatabase(at: path).close()
        }
    }

    @Test("A database of another program is refused and not changed")
    func foreign() async throws {
        try await withTemporaryDirectory { directory in
            let path = FilePath(directory + "/other.sqlite")
            let other = try DatabaseQueue(path: path.string)
            try await other.write { try $0.execute(sql: "CREATE TABLE entry (id INTEGER)") }
            try other.close()
            let before = try Data(contentsOf: URL(fileURLWithPath: path.string))
            let error = #expect(throws: DownloadError.self) { try QueueDatabase(at: path) }
            #expect(error?.code == .file && error?.message.contains("another program") == true)
            #expect(try Data(contentsOf: URL(fileURLWithPath: path.string)) == before)
        }
    }

    @Test("Only the owner can read the database and its directory, and a directory of others is refused")
    func modes() async throws {
        try await withTemporaryDirectory { directory in
            let path = Self.path(directory)
            let database = try QueueDatabase(at: path)
            try database.apply([.insert(try Self.record())])
            let manager = FileManager.default
            for (path, mode) in [
                (path.string, 0o600), (path.string + "-wal", 0o600), (path.removingLastComponent().string, 0o700),
            ] {
                #expect(try manager.attributesOfItem(atPath: path)[.posixPermissions] as? Int == mode, "\(path)")
            }
            try database.close()
            let parent = path.removingLastComponent().string
            // A sticky directory as well: another user could put SQLite's other files into it.
            for mode in [0o777, 0o1777, 0o770] {
                try manager.setAttributes([.posixPermissions: mode], ofItemAtPath: parent)
                let error = #expect(throws: DownloadError.self) { try QueueDatabase(at: path) }
                #expect(error?.code == .file && error?.hint?.contains("chmod") == true)
            }
            try manager.setAttributes([.posixPermissions: 0o700], ofItemAtPath: parent)
            for suffix in ["", "-wal", "-journal"] {
                _ = manager.createFile(
                    atPath: path.string + suffix, contents: nil, attributes: [.posixPermissions: 0o666])
                try manager.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path.string + suffix)
                let error = #expect(throws: DownloadError.self) { try QueueDatabase(at: path) }
                #expect(error?.code == .file && error?.message.contains("only this user") == true)
                try manager.removeItem(atPath: path.string + suffix)
            }
        }
    }

    @Test("A database of a later version is refused and not changed")
    func later() async throws {
        try await withTemporaryDirectory { directory in
            let path = Self.path(directory)
            let database = try QueueDatabase(at: path)
            try database.apply([.insert(try Self.record())])
            try database.close()
            let later = try DatabaseQueue(path: path.string)
            try await later.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99')") }
            try later.close()
            let error = #expect(throws: DownloadError.self) { try QueueDatabase(at: path) }
            #expect(error?.code == .state && error?.message.contains("later version") == true)
            let rows = try await DatabaseQueue(path: path.string).read { database in
                try Row.fetchAll(database, sql: "SELECT id FROM entry UNION SELECT identifier FROM grdb_migrations")
                    .map { $0[0] as String }
            }
            #expect(Set(rows) == ["0000000000000005", "1", "2", "99"])
        }
    }

    @Test("A database of the first version is migrated, and its history is found by ID")
    func migrated() async throws {
        try await withTemporaryDirectory { directory in
            let path = Self.path(directory)
            let database = try QueueDatabase(at: path)
            try database.apply([.insert(try Self.record())])
            try database.close()
            let first = try DatabaseQueue(path: path.string)
            let row = HistoryEntry(
                time: 1, id: "000000000000000a", url: "http://x/", path: "/a", bytes: 1, outcome: .completed, code: nil,
                message: nil, userInfo: [:])
            let text = try row.jsonText
            try await first.write { database in
                try database.execute(
                    sql: """
                        DROP TABLE setting;
                        DROP INDEX history_id;
                        ALTER TABLE history DROP COLUMN id;
                        DELETE FROM grdb_migrations WHERE identifier <> '1';
                        """)
                try database.execute(sql: "INSERT INTO history (record) VALUES (?)", arguments: [text])
            }
            try first.close()
            let migrated = try QueueDatabase(at: path)
            defer { try? migrated.close() }
            #expect(try migrated.history(of: QueueEntry.ID(10)) == row)
            #expect(try migrated.records().count == 1)
            try migrated.set("name", to: "value")
            #expect(try migrated.setting("name") == "value")
            #expect(try migrated.deleteHistory(of: [QueueEntry.ID(10), QueueEntry.ID(11)]) == 1)
            #expect(try migrated.history(limit: 9).isEmpty)
        }
    }

    @Test("A damaged database is recognised", arguments: [0, 100, 4096])
    func damaged(at offset: Int) async throws {
        try await withTemporaryDirectory { directory in
            let path = Self.path(directory)
            let database = try QueueDatabase(at: path)
            let records = try (1...100).map { try QueueStateMachineTests.record($0) }
            try database.apply(records.map { .insert($0) })
            try database.close()
            let file = try #require(FileHandle(forUpdatingAtPath: path.string))
            try file.seek(toOffset: UInt64(offset))
            try file.write(contentsOf: Data(repeating: 0xA5, count: 4096))
            try file.close()
            #expect(try QueueDatabase.openIfIntact(at: path) == nil)
        }
    }
}

extension QueueDatabase {
    fileprivate func records() throws -> [QueueRecord] { try self.queue.read { try Self.records(in: $0) } }

    fileprivate func pragma(_ name: String) throws -> Int? {
        try self.queue.writeWithoutTransaction { try Int.fetchOne($0, sql: "PRAGMA \(name)") }
    }
}
